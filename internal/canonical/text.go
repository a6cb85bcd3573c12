package canonical

import (
	"cmp"
	"unicode/utf8"
)

// string appends a JSON string with the escapes of RFC 8785: two-character escapes
// where JSON has one, \u00xx in lower case for the other control characters, and
// every other character as it is.
func (w *writer) string(s string) *Error {
	text := append(w.text, '"')
	for done := 0; ; {
		plain := done
		for plain < len(s) && isPlain[s[plain]] {
			plain++
		}
		text = append(text, s[done:plain]...)
		if plain == len(s) {
			break
		}
		c := s[plain]
		done = plain + 1
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(s[plain:])
			if r == utf8.RuneError && n == 1 {
				return newError("", InvalidUTF8, "invalid UTF-8")
			}
			done = plain + n
			text = append(text, s[plain:done]...)
		case c == '"' || c == '\\':
			text = append(text, '\\', c)
		case shortEscape[c] != 0:
			text = append(text, '\\', shortEscape[c])
		default:
			text = append(text, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	w.text = append(text, '"')
	return nil
}

// isPlain marks the ASCII characters that stand for themselves.
var isPlain = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

var shortEscape = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// compareUTF16 orders two strings by their UTF-16 code units, as RFC 8785 asks.
// That is byte order but for one thing: a character beyond U+FFFF is written in
// UTF-16 with surrogates, which sort before U+E000 to U+FFFF. In UTF-8 the former
// begin with F0 to F4, the latter with EE or EF, and only first bytes are so high.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
