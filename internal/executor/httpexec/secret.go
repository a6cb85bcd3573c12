package httpexec

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// fill puts the operation's secret arguments into the body, each in the place of its reference, and gives what to look for
// in the answer. It refuses a body that has no place for one of them, or a reference that nothing belongs to.
func fill(d *action.Dispatch) ([]vault.Secret, error) {
	op := &d.Operation
	var secrets []vault.Secret
	for _, s := range op.Secrets {
		if d.Secret == nil {
			return nil, errRequest
		}
		value, err := d.Secret(s.Name)
		if err != nil || value == "" {
			return nil, errRequest
		}
		body, placed := put(op.Body, op.MediaType, action.SecretReference(s.Name), value)
		if !placed {
			return nil, errRequest
		}
		op.Body = body
		secrets = append(secrets, vault.NewSecret(value))
	}
	return secrets, nil
}

// put replaces a reference that is a whole value: a JSON string, or the value of a form's field. What it writes instead is
// one value too, whatever is in it.
func put(body []byte, media, reference, value string) ([]byte, bool) {
	if media == "application/x-www-form-urlencoded" {
		fields, placed := strings.Split(string(body), "&"), false
		for i, f := range fields {
			if name, v, ok := strings.Cut(f, "="); ok && v == url.QueryEscape(reference) {
				fields[i], placed = name+"="+url.QueryEscape(value), true
			}
		}
		return []byte(strings.Join(fields, "&")), placed
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return body, false
	}
	old := []byte(`"` + reference + `"`)
	return bytes.ReplaceAll(body, old, bytes.TrimSuffix(text.Bytes(), []byte("\n"))), bytes.Contains(body, old)
}
