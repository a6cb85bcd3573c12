package journal

import "unicode/utf8"

// name reads a member name and returns it without quotes.
func (s *scanner) name() ([]byte, Rule) {
	if s.peek() != '"' {
		return nil, s.unexpected()
	}
	s.at++
	start := s.at
	for s.at < len(s.text) && isNameByte[s.text[s.at]] {
		s.at++
	}
	if c := s.peek(); c != '"' || s.at == start || s.text[start] < 'a' {
		if s.at == len(s.text) {
			return nil, RuleSyntax
		}
		return nil, RuleName
	}
	s.at++
	return s.text[start : s.at-1], ""
}

// isNameByte marks a-z, 0-9 and _. Only the letters are 'a' or above.
var isNameByte = func() (is [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789_" {
		is[c] = true
	}
	return is
}()

// integer reads a number and returns its magnitude.
func (s *scanner) integer() (magnitude uint64, rule Rule) {
	start := s.at
	negative := s.peek() == '-'
	if negative {
		s.at++
	}
	first := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		// Seventeen digits are too many already, and more could overflow.
		if s.at-first < 17 {
			magnitude = 10*magnitude + uint64(s.text[s.at]-'0')
		}
		s.at++
	}
	digits := s.at - first
	switch s.peek() {
	case '.', 'e', 'E':
		return 0, RuleNumber
	}
	if digits == 0 {
		return 0, RuleSyntax
	}
	if magnitude > MaxInteger || s.text[first] == '0' && (digits > 1 || negative) {
		s.at = start
		return 0, RuleNumber
	}
	return magnitude, ""
}

// string reads a quoted text.
func (s *scanner) string() Rule {
	s.at++
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		plain := 0
		for plain < len(rest) && isPlain[rest[plain]] {
			plain++
		}
		s.at += plain
		if plain == len(rest) {
			break
		}
		switch c := rest[plain]; {
		case c == '"':
			s.at++
			return ""
		case c == '\\':
			n := escapeLength(rest[plain:])
			if n == 0 {
				return RuleEscape
			}
			s.at += n
		case c < ' ':
			return RuleEscape
		default:
			r, n := utf8.DecodeRune(rest[plain:])
			if r == utf8.RuneError && n == 1 {
				return RuleEncoding
			}
			s.at += n
		}
	}
	return RuleSyntax
}

// isPlain marks the ASCII characters that stand for themselves in text.
var isPlain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// escapeLength returns the length of the one spelling of an escaped character that
// text begins with, or 0.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	if len(text) < 6 || string(text[:4]) != `\u00` || text[4] != '0' && text[4] != '1' || hexDigit[text[5]] > 15 {
		return 0
	}
	switch (text[4]-'0')<<4 | hexDigit[text[5]] {
	case '\b', '\f', '\n', '\r', '\t': // these have an escape of their own
		return 0
	}
	return 6
}
