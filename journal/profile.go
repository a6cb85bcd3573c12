package journal

import "bytes"

// CheckProfile says whether body keeps every rule of the profile. The error is a
// *ProfileError. It reads bytes and shares no code with Encode's writing, so that
// one can be held against the other.
func CheckProfile(body []byte) error {
	_, rule, offset := scanBody(body)
	if rule != "" {
		return &ProfileError{Rule: rule, Offset: offset}
	}
	return nil
}

// links are the members that tie a record to its place in the journal.
type links struct {
	prev Hash
	seq  uint64
}

// scanBody reads a whole body without allocating. A rule that is not empty is the
// first one broken, at the offset.
func scanBody(body []byte) (found links, rule Rule, offset int) {
	if len(body) > MaxBody {
		return found, RuleSize, MaxBody
	}
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return found, RuleEncoding, 0
	}
	s := scanner{text: body}
	if s.peek() != '{' {
		return found, s.unexpected(), 0
	}
	if rule = s.object(1); rule == "" && s.at < len(body) {
		rule = s.unexpected()
	}
	if rule == "" && (!s.hasPrev || !s.hasSeq || !s.hasVersion) {
		rule = RuleLink
	}
	return s.links, rule, s.at
}

// scanner is a strict reader of the profile. Its methods return the rule that is
// broken, or none, with at on the offending byte.
type scanner struct {
	text []byte
	at   int
	links
	hasPrev, hasSeq, hasVersion bool
}

// peek returns the byte at hand, and 0, which is legal nowhere, at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) unexpected() Rule {
	switch s.peek() {
	case ' ', '\t', '\r', '\n':
		return RuleSpace
	}
	return RuleSyntax
}

func (s *scanner) value(depth int) Rule {
	switch c := s.peek(); c {
	case '"':
		return s.string()
	case '{':
		return s.object(depth + 1)
	case '[':
		return s.array(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		if s.literal("null") == "" {
			s.at -= len("null")
			return RuleNull
		}
		return RuleSyntax
	default:
		if c == '-' || c >= '0' && c <= '9' {
			_, rule := s.integer()
			return rule
		}
		return s.unexpected()
	}
}

func (s *scanner) literal(word string) Rule {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return RuleSyntax
	}
	s.at += len(word)
	return ""
}

func (s *scanner) array(depth int) Rule {
	if depth > MaxDepth {
		return RuleDepth
	}
	s.at++
	if s.peek() == ']' {
		s.at++
		return ""
	}
	for {
		if rule := s.value(depth); rule != "" {
			return rule
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return ""
		default:
			return s.unexpected()
		}
	}
}

func (s *scanner) object(depth int) Rule {
	if depth > MaxDepth {
		return RuleDepth
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return ""
	}
	var last []byte
	for {
		start := s.at
		name, rule := s.name()
		if rule != "" {
			return rule
		}
		if bytes.Compare(last, name) >= 0 {
			s.at = start
			return RuleOrder
		}
		last = name
		if depth > 1 && isReserved(name) {
			s.at = start
			return RuleReserved
		}
		if s.peek() != ':' {
			return s.unexpected()
		}
		s.at++
		if rule := s.member(name, depth); rule != "" {
			return rule
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return ""
		default:
			return s.unexpected()
		}
	}
}

// member reads the value of a member, minding the names that ask for a form.
func (s *scanner) member(name []byte, depth int) Rule {
	start := s.at
	switch {
	case depth == 1 && isReserved(name):
		return s.link(name)
	case string(name) == "time" || bytes.HasSuffix(name, []byte("_at")):
		if s.peek() != '"' {
			if s.unexpected() == RuleSpace {
				return RuleSpace
			}
			return RuleTime
		}
		if rule := s.string(); rule != "" {
			return rule
		}
		if _, ok := parseTime(s.text[start+1 : s.at-1]); !ok {
			s.at = start
			return RuleTime
		}
		return ""
	}
	return s.value(depth)
}

// link reads prev, seq or v.
func (s *scanner) link(name []byte) Rule {
	start, c := s.at, s.peek()
	isText, isDigit := c == '"', c >= '0' && c <= '9'
	ok := false
	switch {
	case string(name) == "prev" && isText:
		if rule := s.string(); rule != "" {
			return rule
		}
		s.prev, ok = parseHash(s.text[start+1 : s.at-1])
		s.hasPrev = true
	case string(name) != "prev" && isDigit:
		n, rule := s.integer()
		if rule != "" {
			return rule
		}
		if string(name) == "seq" {
			s.seq, s.hasSeq, ok = n, true, true
		} else {
			s.hasVersion, ok = true, n == Version
		}
	case s.unexpected() == RuleSpace:
		return RuleSpace
	}
	if !ok {
		s.at = start
		return RuleLink
	}
	return ""
}
