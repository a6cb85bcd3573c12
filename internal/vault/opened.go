package vault

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// Opened is one credential with its value, for one request. Keep it no longer than that.
type Opened struct {
	credential Credential
	value      Secret
	forms      func() []string // what to look for in answers; a function, so that no printer reads it
	still      func() error    // nil where nothing can have changed
}

// Format prints the reference and [secret].
func (o *Opened) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "%s %s", o.credential.Ref, Redacted)
}

func open(c Credential, value string) (*Opened, error) {
	if err := natures[c.Kind].check(c, value); err != nil {
		return nil, err
	}
	o := &Opened{credential: c, value: NewSecret(value)}
	o.forms = sync.OnceValue(func() []string { return formsOf(travelling(c.Kind, value)...) })
	return o, nil
}

// travelling are the texts that a target gets to see of a value, and could send back. A private key is none of them.
func travelling(kind Kind, value string) []string {
	switch kind {
	case TLSClient, SSHKey, SSHCertificate:
		return nil
	case Basic:
		return []string{value, secretPart(value)}
	case Database:
		if password := passwordOf(value); password != "" {
			return []string{value, password}
		}
	}
	return []string{value}
}

// With gives an Opened that also looks for other secrets in answers, for those that a request carries beside a credential.
// It is to be used for that alone. o may be nil.
func (o *Opened) With(secrets ...Secret) *Opened {
	if len(secrets) == 0 {
		return o
	}
	more := &Opened{}
	if o != nil {
		*more = *o
	}
	more.forms = sync.OnceValue(func() []string {
		var values []string
		for _, s := range secrets {
			values = append(values, s.Reveal())
		}
		forms := formsOf(values...)
		if o != nil {
			forms = append(forms, o.forms()...)
		}
		return forms
	})
	return more
}

// Still reports whether what was opened may be sent now: it returns ErrLocked when the vault was locked since, even if it
// is open again.
func (o *Opened) Still() error {
	if o.still == nil {
		return nil
	}
	return o.still()
}

// Ref is the reference of the credential.
func (o *Opened) Ref() string { return o.credential.Ref }

// Apply puts the credential into the request. It is the last thing done before sending, and fails where the request has
// something in that place already.
func (o *Opened) Apply(req *http.Request) error {
	value := o.value.Reveal()
	switch o.credential.Kind {
	case Bearer, OAuth:
		return setOnce(req.Header, "Authorization", "Bearer "+value)
	case Basic:
		return setOnce(req.Header, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
	case Header:
		return setOnce(req.Header, o.credential.Header, value)
	case Query:
		return addParameter(req.URL, o.credential.Header, value)
	case TLSClient: // it was shown in the handshake
		return nil
	default:
		return fmt.Errorf("credential %q is none that a request carries", o.credential.Ref)
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
