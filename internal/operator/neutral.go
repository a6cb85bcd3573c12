package operator

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Neutral writes a text that somebody else chose so that it cannot do anything to a terminal or deceive a reader: control
// characters, marks of direction, characters that cannot be seen and bytes that are no UTF-8 are spelled out. Lines stay
// lines if lines is true. It gives at most longest bytes of the text, and how many are left out.
func Neutral(text []byte, longest int, lines bool) (shown string, left int) {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if i+size > longest {
			return b.String(), len(text) - i
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case lines && r == '\n':
			b.WriteByte('\n')
		case r == '\\':
			b.WriteString(`\\`) // or what is spelled out could be written by whoever chose the text
		case unicode.IsPrint(r) && !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Variation_Selector) && !blank(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += size
	}
	return b.String(), 0
}

// blank reports whether a character that counts as printable shows nothing.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0', '\u17b4', '\u17b5':
		return true
	}
	return r != ' ' && unicode.IsSpace(r)
}

// neutral is Neutral on one line, for texts that are short as a rule.
func neutral(s string) string {
	const longest = 4096
	shown, left := Neutral([]byte(s), longest, false)
	if left > 0 {
		shown += fmt.Sprintf("… [%d bytes more]", left)
	}
	return shown
}
