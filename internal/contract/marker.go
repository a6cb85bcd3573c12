package contract

import (
	"bytes"

	"deed.dev/deed/internal/action"
)

// carries reports whether the answer shows the action's id or its idem_key, which only this action brought to the target.
func carries(r action.Response, id Identity) bool {
	for _, marker := range []string{string(id.Action), id.IdemKey} {
		if marker == "" {
			continue
		}
		if shows(r.Body, marker) {
			return true
		}
		for _, values := range r.Header {
			for _, value := range values {
				if shows([]byte(value), marker) {
					return true
				}
			}
		}
	}
	return false
}

// shows reports whether the marker stands in the text. Behind the ? of a link it does not count: answers carry links to
// themselves and to their next page, which repeat the question whatever was found.
func shows(text []byte, marker string) bool {
	m, query := []byte(marker), false
	for i, c := range text {
		switch {
		case c <= ' ' || c == '"' || c == '<' || c == '>': // ends a link
			query = false
		case c == '?':
			query = true
		case !query && c == m[0] && bytes.HasPrefix(text[i:], m):
			return true
		}
	}
	return false
}
