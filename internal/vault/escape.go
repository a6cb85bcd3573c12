package vault

import (
	"bytes"
	"encoding/hex"
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// percent reads one %XX.
func percent(b []byte) (string, int) {
	var c [1]byte
	if len(b) < 3 {
		return "", 0
	}
	if _, err := hex.Decode(c[:], b[1:3]); err != nil {
		return "", 0
	}
	return string(c[:]), 3
}

// form is percent, with the plus sign of HTML forms.
func form(b []byte) (string, int) {
	if b[0] == '+' {
		return " ", 1
	}
	return percent(b)
}

func jsonEscape(b []byte) (string, int) {
	if len(b) < 2 {
		return "", 0
	}
	switch b[1] {
	case '"', '\\', '/', '\'':
		return string(b[1:2]), 2
	case 'b', 'f', 'n', 'r', 't':
		return map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t"}[b[1]], 2
	case 'u':
		return unicodeEscape(b)
	}
	return "", 0
}

func unicodeEscape(b []byte) (string, int) {
	first, ok := codeUnit(b)
	if !ok {
		return "", 0
	}
	if second, ok := codeUnit(b[6:]); ok && utf16.IsSurrogate(first) {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return string(r), 12
		}
	}
	return string(first), 6
}

func codeUnit(b []byte) (rune, bool) {
	var u [2]byte
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	if _, err := hex.Decode(u[:], b[2:6]); err != nil {
		return 0, false
	}
	return rune(u[0])<<8 | rune(u[1]), true
}

// entity reads one HTML entity. None that a secret needs is longer than the window.
func entity(b []byte) (string, int) {
	end := bytes.IndexByte(b[:min(len(b), 12)], ';')
	if end < 0 {
		return "", 0
	}
	text := string(b[:end+1])
	if decoded := html.UnescapeString(text); decoded != text {
		return decoded, end + 1
	}
	return "", 0
}

// lineBreak joins lines, and drops what indents the next one.
func lineBreak(b []byte) (string, int) {
	n := 1
	for n < len(b) && strings.IndexByte("\r\n \t", b[n]) >= 0 {
		n++
	}
	return "", n
}
