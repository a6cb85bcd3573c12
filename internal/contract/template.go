package contract

import (
	"fmt"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// template is a part of a URL with arguments in it: the simple and the query expressions of RFC 6570.
//
// The library checks the syntax, and the expansion is done here: the library's writes the bytes of a code point where the
// RFC wants those of its UTF-8 form, so that U+2E2E would come out as %2E%2E, a dot segment.
type template []templatePart

type templatePart struct {
	literal  string
	operator string // "", "?" or "&" of an expression
	names    []templateName
}

type templateName struct {
	name    string
	explode bool // a list repeats its parameter
}

func newTemplate(raw string) (template, error) {
	if _, err := uritemplate.New(raw); err != nil {
		return nil, err
	}
	var t template
	for raw != "" {
		literal, rest, found := strings.Cut(raw, "{")
		if literal != "" {
			t = append(t, templatePart{literal: literal})
		}
		if !found {
			break
		}
		inner, after, _ := strings.Cut(rest, "}")
		p := templatePart{}
		if strings.HasPrefix(inner, "?") || strings.HasPrefix(inner, "&") {
			p.operator, inner = inner[:1], inner[1:]
		}
		for name := range strings.SplitSeq(inner, ",") {
			bare := strings.TrimSuffix(name, "*")
			p.names = append(p.names, templateName{bare, bare != name})
		}
		t, raw = append(t, p), after
	}
	return t, nil
}

// expand puts values into the template. A name without a value leaves nothing behind, and so does an empty list.
func (t template) expand(values map[string][]string) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.literal)
		separator := p.operator
		for _, n := range p.names {
			list := values[n.name]
			if len(list) == 0 {
				continue
			}
			b.WriteString(separator)
			if p.operator != "" {
				b.WriteString(n.name + "=")
				separator = "&"
			}
			between := ","
			if n.explode {
				between = "&" + n.name + "="
			}
			for i, v := range list {
				if i > 0 {
					b.WriteString(between)
				}
				b.WriteString(percent(v))
			}
		}
	}
	return b.String()
}

// percent encodes every byte of the text that is not unreserved in RFC 3986.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(unreserved, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}

const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
