package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Opened is one credential with its value, for one request. Keep it no longer than that.
type Opened struct {
	credential Credential
	value      Secret
	forms      func() []string // what to look for in answers; a function, so that no printer reads it
}

// Format prints the reference and [secret].
func (o *Opened) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "%s %s", o.credential.Ref, Redacted)
}

func open(c Credential, value string) (*Opened, error) {
	if err := checkValue(value); err != nil {
		return nil, err
	}
	secret := value
	if c.Kind == Basic {
		user, password, ok := strings.Cut(value, ":")
		switch {
		case !ok:
			return nil, errors.New("a basic credential is user:password")
		case password == "":
			secret = user // an API key as user name
		default:
			secret = password
		}
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("its secret part is shorter than %d bytes", MinSecret)
		}
	}
	forms := sync.OnceValue(func() []string { return formsOf(value, secret) })
	return &Opened{credential: c, value: NewSecret(value), forms: forms}, nil
}

// checkValue refuses what could not be redacted, or would leave its place in the request.
func checkValue(value string) error {
	switch {
	case value == "":
		return errors.New("it is empty")
	case len(value) < MinSecret:
		return fmt.Errorf("it is shorter than %d bytes", MinSecret)
	case len(value) > MaxSecret:
		return fmt.Errorf("it is longer than %d bytes", MaxSecret)
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return errors.New("it holds a control character")
		}
	}
	return nil
}

// Apply puts the credential into the request. It is the last thing done before sending, and fails where the request has
// something in that place already.
func (o *Opened) Apply(req *http.Request) error {
	value := o.value.Reveal()
	switch o.credential.Kind {
	case Bearer:
		return setOnce(req.Header, "Authorization", "Bearer "+value)
	case Basic:
		return setOnce(req.Header, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
	case Header:
		return setOnce(req.Header, o.credential.Header, value)
	case Query:
		return addParameter(req.URL, o.credential.Header, value)
	default:
		return fmt.Errorf("credential %q has no known kind", o.credential.Ref)
	}
}

func setOnce(h http.Header, name, value string) error {
	if len(h.Values(name)) > 0 {
		return fmt.Errorf("the request has a header %s already", name)
	}
	h.Set(name, value)
	return nil
}

func addParameter(u *url.URL, name, value string) error {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the request's query cannot be read")
	}
	if values.Has(name) {
		return fmt.Errorf("the request has a query parameter %s already", name)
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += url.QueryEscape(name) + "=" + url.QueryEscape(value)
	return nil
}
