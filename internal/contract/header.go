package contract

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"

	"deed.dev/deed/internal/action"
)

// maxHeader bounds one header value.
const maxHeader = 4 << 10

var (
	fieldName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	jsonMedia = regexp.MustCompile(`^application/([a-z0-9.+-]+\+)?json(;.*)?$`)
)

// reserved names the header fields that a contract cannot set, with the reason.
var reserved = map[string]string{
	"Host":                "the host comes from the URL",
	"Content-Length":      "deed counts the body itself",
	"Transfer-Encoding":   "deed frames the body itself",
	"Content-Encoding":    "the body goes out as it was recorded",
	"Accept-Encoding":     "deed reads answers with a bound",
	"Connection":          "the connection is deed's",
	"Keep-Alive":          "the connection is deed's",
	"Upgrade":             "the connection is deed's",
	"Te":                  "the connection is deed's",
	"Trailer":             "the connection is deed's",
	"Expect":              "the connection is deed's",
	"Traceparent":         "trace context is deed's",
	"Tracestate":          "trace context is deed's",
	"Baggage":             "trace context is deed's",
	"Authorization":       "secrets come from the vault: name a credential",
	"Proxy-Authorization": "secrets come from the vault: name a credential",
	"Cookie":              "secrets come from the vault: name a credential",
	"Idempotency-Key":     "a key is never made by a contract: name the field under on_lost_response.key",
	"X-Idempotency-Key":   "a key is never made by a contract: name the field under on_lost_response.key",
}

// field is one header field of the contract.
type field struct {
	name  string
	value *text
}

// headers reads the header fields, in the order of their names. The media type is given apart when they state it.
func (f *faults) headers(path string, raw map[string]string, in scope, key string) (fields []field, media string) {
	seen := map[string]string{}
	for _, name := range sortedKeys(raw) {
		at := child(path, name)
		canonicalName := textproto.CanonicalMIMEHeaderKey(name)
		why, taken := reserved[canonicalName]
		other, twice := seen[canonicalName]
		seen[canonicalName] = name
		switch {
		case !fieldName.MatchString(name):
			f.addAt(f.places.key(at), at, "this is no name of a header field", "use letters, digits and -")
		case twice:
			f.addAt(f.places.key(at), at, fmt.Sprintf("this is the same field as %s", other), "keep one of them")
		case canonicalName == key:
			f.addAt(f.places.key(at), at, "this field carries the key, which deed sets", "leave it out here")
		case taken:
			f.addAt(f.places.key(at), at, "this field is reserved", why)
		case canonicalName == "Content-Type":
			media = f.mediaType(at, raw[name])
		default:
			t := f.text(at, raw[name], in)
			f.headerLiterals(at, t)
			fields = append(fields, field{canonicalName, t})
		}
	}
	return fields, media
}

// headerLiterals checks what the contract itself puts into a header value.
func (f *faults) headerLiterals(path string, t *text) {
	for _, p := range t.parts {
		literal := p.literal
		if len(t.parts) > 1 {
			literal = strings.Trim(literal, " ") // what an expression gives may stand beside a space
		}
		if err := checkHeader(literal); err != nil {
			f.add(path, "the value "+err.Error(), "")
		}
	}
}

func (f *faults) mediaType(path, raw string) string {
	if !jsonMedia.MatchString(raw) {
		f.add(path, "the media type has to be one of JSON and literal, such as application/merge-patch+json",
			"leave it out: json and form state their own")
	}
	return raw
}

// checkHeader says what keeps a text from being a header value. It never repeats the text.
func checkHeader(value string) error {
	switch {
	case strings.ContainsFunc(value, control):
		return errors.New("has a control character, which a header must not carry")
	case strings.ContainsFunc(value, func(r rune) bool { return r > 0x7e }):
		return errors.New("has characters outside ASCII, which a header must not carry")
	case strings.TrimSpace(value) != value:
		return errors.New("begins or ends with a space, which would be lost")
	case len(value) > maxHeader:
		return fmt.Errorf("is longer than %d bytes", maxHeader)
	}
	return nil
}

// expandHeaders computes the header fields. A field whose whole value gives nothing is left out.
func expandHeaders(fields []field, variables map[string]any) ([]action.Header, error) {
	var list []action.Header
	for _, h := range fields {
		value, present, err := h.value.value(variables)
		if err != nil {
			return nil, fmt.Errorf("the header %s %w", h.name, err)
		}
		if !present {
			continue
		}
		text, err := scalarText(value)
		if err == nil {
			err = checkHeader(text)
		}
		if err != nil {
			return nil, fmt.Errorf("the header %s %w", h.name, err)
		}
		list = append(list, action.Header{Name: h.name, Value: text})
	}
	return list, nil
}
