package contract

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"deed.dev/deed/internal/canonical"
)

// maxURL bounds path and query together. Many servers take no more.
const maxURL = 8 << 10

// unprintable marks characters that must not reach a terminal, a log or a page as they are.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// control marks the characters that have no place in a URL or a header field, however they are encoded.
func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// expand puts arguments into the URL. The error names the argument and never its value.
func (a *address) expand(args map[string]any) (path, query string, err error) {
	var b strings.Builder
	for _, s := range a.segments {
		b.WriteByte('/')
		text, err := s.expand(args)
		if err != nil {
			return "", "", err
		}
		b.WriteString(text)
	}
	path = b.String()
	values := map[string][]string{}
	for _, name := range a.names {
		if values[name], err = queryValue(args, name); err != nil {
			return "", "", err
		}
	}
	query = strings.TrimPrefix(a.query.expand(values), "?")
	if len(path)+len(query) > maxURL {
		return "", "", fmt.Errorf("the arguments make the URL longer than %d bytes", maxURL)
	}
	return path, query, nil
}

func (s segment) expand(args map[string]any) (string, error) {
	if s.template == nil {
		return s.literal, nil
	}
	values := map[string][]string{}
	for _, name := range s.names {
		value, present := lookUp(args, name)
		text, err := urlText(value)
		switch {
		case !present:
			return "", fmt.Errorf("%s is missing and stands in the path", argument(name))
		case err != nil:
			return "", fmt.Errorf("%s %w", argument(name), err)
		case text == "":
			return "", fmt.Errorf("%s is empty and stands in the path", argument(name))
		case escapes(text):
			return "", fmt.Errorf("%s has a dot segment, which could lead to another path", argument(name))
		}
		values[name] = []string{text}
	}
	text := s.template.expand(values)
	if leavesPlace(text) {
		return "", fmt.Errorf("%s makes a dot segment, which could lead to another path", argument(s.names[0]))
	}
	return text, nil
}

// queryValue gives the values of one query parameter: none when the argument is absent.
func queryValue(args map[string]any, name string) ([]string, error) {
	value, present := lookUp(args, name)
	if !present {
		return nil, nil
	}
	elements, isList := value.([]any)
	if !isList {
		elements = []any{value}
	}
	texts := make([]string, len(elements))
	for i, element := range elements {
		text, err := urlText(element)
		if err != nil {
			at := argument(name)
			if isList {
				at = item(at, i)
			}
			return nil, fmt.Errorf("%s %w", at, err)
		}
		texts[i] = text
	}
	return texts, nil
}

// urlText is the text of a value in a URL.
func urlText(value any) (string, error) {
	switch v := value.(type) {
	case canonical.Number:
		return string(v), nil
	case string:
		if strings.ContainsFunc(v, control) {
			return "", errors.New("has a control character, which a URL must not carry")
		}
		return v, nil
	case bool:
		return scalarText(v)
	default:
		return "", errors.New("is no text, number or truth value, and stands in the URL")
	}
}

// lookUp finds an argument by its name in a URL template: a.b is the member b of a.
func lookUp(args map[string]any, name string) (any, bool) {
	var v any = args
	for token := range strings.SplitSeq(name, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[token]; !ok {
			return nil, false
		}
	}
	return v, true
}

// argument is the JSON pointer of an argument that a URL template names.
func argument(name string) string { return "/" + strings.ReplaceAll(name, ".", "/") }

// escapes reports whether some server, decoding the value more often than it should, would find a dot segment in it.
func escapes(text string) bool {
	for range 4 {
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
			if dotted(part) {
				return true
			}
		}
		decoded := decode(text)
		if decoded == text {
			return false
		}
		text = decoded
	}
	return true // nobody encodes a name four times
}

// leavesPlace reports whether a path segment is a dot segment in any of the spellings that servers accept.
func leavesPlace(segment string) bool { return escapes(decode(segment)) }

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// decode is percent-decoding as a lenient server does it: what is no escape stays.
func decode(s string) string {
	return escape.ReplaceAllStringFunc(s, func(e string) string {
		b, _ := strconv.ParseUint(e[1:], 16, 8)
		return string([]byte{byte(b)})
	})
}

// dotted recognises ".", ".." and what some servers make of "..;x".
func dotted(part string) bool {
	name, _, _ := strings.Cut(part, ";")
	name = strings.TrimFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
	return name == "." || name == ".."
}
