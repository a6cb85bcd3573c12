package vault

import (
	"bytes"
	"encoding/hex"
	"html"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text as it reads when some escapes are decoded, one kind after the other.
type view struct {
	text  []byte
	steps []*decoder
}

// decoder undoes one kind of escape. read decodes the escape at the start of a text and gives what it stands for and how
// many bytes it takes, or 0 where there is none.
type decoder struct {
	marks [256]bool // the bytes that an escape can start with
	read  func([]byte) (string, int)
}

var decoders = []*decoder{
	newDecoder("%", percent),
	newDecoder("%+", form),
	newDecoder(`\`, jsonEscape),
	newDecoder("&", entity),
	newDecoder("\r\n", lineBreak),
}

func newDecoder(marks string, read func([]byte) (string, int)) *decoder {
	d := &decoder{read: read}
	for i := range len(marks) {
		d.marks[marks[i]] = true
	}
	return d
}

// views gives the text as it is and each way to decode it, two escapes deep.
func views(text []byte) []view {
	all := []view{{text: text}}
	for _, first := range decoders {
		once, ok := first.decode(text)
		if !ok {
			continue
		}
		all = append(all, view{once, []*decoder{first}})
		for _, second := range decoders {
			if twice, ok := second.decode(once); ok {
				all = append(all, view{twice, []*decoder{first, second}})
			}
		}
	}
	return all
}

// decode gives the decoded text, or false where there is nothing to decode.
func (d *decoder) decode(text []byte) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		if !d.marks[text[i]] {
			i++
			continue
		}
		decoded, n := d.read(text[i:])
		if n == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(text))
		}
		out = append(append(out, text[done:i]...), decoded...)
		i += n
		done = i
	}
	if done == 0 {
		return nil, false
	}
	return append(out, text[done:]...), true
}

// origins gives, for each byte of the view, the part of the original text that it came from. It decodes once more, which
// only a text with a secret in it is worth.
func (v view) origins(original []byte) []span {
	at := make([]span, len(original))
	for i := range at {
		at[i] = span{i, i + 1}
	}
	text := original
	for _, d := range v.steps {
		var next []span
		for i := 0; i < len(text); {
			decoded, n := "", 0
			if d.marks[text[i]] {
				decoded, n = d.read(text[i:])
			}
			if n == 0 {
				next = append(next, at[i])
				i++
				continue
			}
			for range len(decoded) {
				next = append(next, span{at[i].from, at[i+n-1].to})
			}
			i += n
		}
		text, _ = d.decode(text)
		at = next
	}
	return at
}

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
