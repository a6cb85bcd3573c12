package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// OpenBao names one field of one secret in a key-value store, version 2, of OpenBao or HashiCorp Vault.
type OpenBao struct {
	URL       string // of the server, without a path
	Namespace string // "" for none
	Mount     string
	Path      string
	Field     string
	Auth      string // reference of the credential that is shown to the server
}

// plain keeps mount and path to what can stand in a URL as it is.
func (b OpenBao) plain() bool {
	for _, part := range append(strings.Split(b.Mount, "/"), strings.Split(b.Path, "/")...) {
		if !name(part) || strings.Trim(part, ".") == "" {
			return false
		}
	}
	return b.Namespace == "" || !strings.ContainsAny(b.Namespace, "\r\n\x00")
}

// fromOpenBao asks for a secret. The token that it shows goes to the server that its own credential names, and nowhere else.
func (v *Vault) fromOpenBao(ctx context.Context, b OpenBao) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	auth, _ := v.Find(b.Auth)
	base, target, err := targetOf(b.URL, auth.InsecureLoopback)
	if err != nil {
		return "", errors.New("the URL of its OpenBao is none")
	}
	shown, err := v.Open(ctx, b.Auth, target)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("v1", b.Mount, "data", b.Path).String(), http.NoBody)
	if err != nil {
		return "", errors.New("the URL of its OpenBao is none")
	}
	req.Header.Set("X-Vault-Request", "true")
	if b.Namespace != "" {
		req.Header.Set("X-Vault-Namespace", b.Namespace)
	}
	if err := shown.Apply(req); err != nil {
		return "", errors.New("the token for its OpenBao cannot be shown")
	}
	res, err := v.client().Do(req)
	if err != nil {
		return "", errors.New("its OpenBao cannot be reached")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("its OpenBao answered %d%s", res.StatusCode, baoMeaning[res.StatusCode])
	}
	return b.field(res.Body)
}

var baoMeaning = map[int]string{
	http.StatusForbidden: ": the token may not read this", http.StatusNotFound: ": there is no such secret, or its newest version is deleted",
	http.StatusServiceUnavailable: ": it is sealed or in maintenance", http.StatusTooManyRequests: ": this server is a standby",
}

// field picks the value out of the answer.
func (b OpenBao) field(body io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(body, 1<<20))
	defer clear(raw)
	if err != nil {
		return "", errors.New("the answer of its OpenBao broke off")
	}
	var answer struct {
		Data struct {
			Data map[string]json.RawMessage `json:"data"`
		} `json:"data"`
	}
	var value string
	if json.Unmarshal(raw, &answer) != nil {
		return "", errors.New("its OpenBao answered something else than a secret")
	}
	if json.Unmarshal(answer.Data.Data[b.Field], &value) != nil {
		return "", errors.New("its secret in OpenBao has no such field, or one that is no text")
	}
	return value, nil
}
