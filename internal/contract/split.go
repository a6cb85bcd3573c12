package contract

import (
	"errors"
	"strings"
)

// piece is a literal part of a string, or the source of one of its expressions.
type piece struct {
	text       string
	expression bool
	offset     int
}

// split cuts a string at its ${…}. $${ stands for the characters ${ themselves.
func split(source string) ([]piece, error) {
	var pieces []piece
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			pieces = append(pieces, piece{text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(source[i:], "${"):
			end := closing(source, i+2)
			if end < 0 {
				return nil, errors.New("${ is not closed")
			}
			flush()
			pieces = append(pieces, piece{source[i+2 : end], true, i + 2})
			i = end + 1
		default:
			literal.WriteByte(source[i])
			i++
		}
	}
	flush()
	return pieces, nil
}

// closing finds the } that ends an expression, past nested braces and quoted text.
func closing(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			raw := i > 0 && (s[i-1] == 'r' || s[i-1] == 'R')
			mark := string(c)
			if strings.HasPrefix(s[i:], strings.Repeat(mark, 3)) {
				mark = strings.Repeat(mark, 3)
			}
			i = endOfString(s, i+len(mark), mark, raw)
		}
	}
	return -1
}

func endOfString(s string, i int, mark string, raw bool) int {
	for ; i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
		} else if strings.HasPrefix(s[i:], mark) {
			return i + len(mark) - 1
		}
	}
	return len(s)
}
