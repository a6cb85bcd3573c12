package journal

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Encode writes a body, links included, in its one spelling. Values may be string,
// bool, int, int64, uint64, time.Time, Hash, []byte under a name ending in _b64,
// []string, []any and map[string]any. What the profile does not allow is refused
// with a *ProfileError, so that CheckProfile accepts whatever Encode returns.
func Encode(body map[string]any) ([]byte, error) {
	for _, name := range []string{"prev", "seq", "v"} {
		if _, ok := body[name]; !ok {
			return nil, &ProfileError{Rule: RuleLink, Member: name}
		}
	}
	return encode(body, nil)
}

// encode writes the members of body and extra as one object.
func encode(body map[string]any, extra []member) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.members = append(e.members, extra...)
	if broken := e.object(0, body, 1); broken != nil {
		return nil, broken
	}
	if len(e.text) > MaxBody {
		return nil, &ProfileError{Rule: RuleSize, Offset: MaxBody}
	}
	return slices.Clone(e.text), nil
}

// encoder keeps its memory from one body to the next.
type encoder struct {
	text    []byte
	members []member // of the objects that are open, outermost first
}

type member struct {
	name  string
	value any
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// release forgets the body, which may be large or hold what others must not see.
func (e *encoder) release() {
	clear(e.members[:cap(e.members)])
	if cap(e.text) > 2*MaxBody {
		e.text = nil
	}
	e.text, e.members = e.text[:0], e.members[:0]
	encoders.Put(e)
}

// object writes fields together with the members that stand from first on.
func (e *encoder) object(first int, fields map[string]any, depth int) *ProfileError {
	if depth > MaxDepth {
		return &ProfileError{Rule: RuleDepth}
	}
	for name, value := range fields {
		e.members = append(e.members, member{name, value})
	}
	last := len(e.members)
	slices.SortFunc(e.members[first:last], func(a, b member) int { return strings.Compare(a.name, b.name) })
	e.text = append(e.text, '{')
	for i := first; i < last; i++ {
		m := e.members[i]
		if i > first {
			e.text = append(e.text, ',')
		}
		if !isName(m.name) {
			return &ProfileError{Rule: RuleName, Member: shorten(m.name)}
		}
		e.text = append(e.text, '"')
		e.text = append(e.text, m.name...)
		e.text = append(e.text, '"', ':')
		if broken := e.member(m, depth); broken != nil {
			return broken.within(m.name)
		}
	}
	e.members = e.members[:first]
	e.text = append(e.text, '}')
	return nil
}

// member writes the value of a member, minding the names that ask for a form.
func (e *encoder) member(m member, depth int) *ProfileError {
	switch value := m.value.(type) {
	case string:
		if _, ok := parseTime(value); holdsTime(m.name) && !ok {
			return &ProfileError{Rule: RuleTime}
		}
	case time.Time:
	case []byte:
		if !strings.HasSuffix(m.name, "_b64") {
			return &ProfileError{Rule: RuleType}
		}
		m.value = base64.StdEncoding.EncodeToString(value)
	default:
		if holdsTime(m.name) {
			return &ProfileError{Rule: RuleTime}
		}
	}
	if isReserved(m.name) {
		if depth > 1 {
			return &ProfileError{Rule: RuleReserved}
		}
		if !isLink(m) {
			return &ProfileError{Rule: RuleLink}
		}
	}
	return e.value(m.value, depth)
}

// isLink says whether prev, seq or v has a value that it may have.
func isLink(m member) (ok bool) {
	switch m.name {
	case "prev":
		if text, isText := m.value.(string); isText {
			_, ok = parseHash(text)
			return ok
		}
		_, ok = m.value.(Hash)
		return ok
	case "v":
		n, isInteger := integer(m.value)
		return isInteger && n == Version
	}
	n, isInteger := integer(m.value)
	return isInteger && n >= 0
}

// integer returns a number that the profile allows.
func integer(value any) (n int64, ok bool) {
	switch value := value.(type) {
	case int:
		n = int64(value)
	case int64:
		n = value
	case uint64:
		if value > MaxInteger {
			return 0, false
		}
		n = int64(value)
	default:
		return 0, false
	}
	return n, n >= -MaxInteger && n <= MaxInteger
}

func (e *encoder) value(value any, depth int) *ProfileError {
	switch value := value.(type) {
	case string:
		return e.string(value)
	case bool:
		e.text = strconv.AppendBool(e.text, value)
	case int, int64, uint64:
		n, ok := integer(value)
		if !ok {
			return &ProfileError{Rule: RuleNumber}
		}
		e.text = strconv.AppendInt(e.text, n, 10)
	case time.Time:
		text := FormatTime(value)
		if _, ok := parseTime(text); !ok {
			return &ProfileError{Rule: RuleTime}
		}
		return e.string(text)
	case Hash:
		return e.string(value.String())
	case []string:
		return list(e, value, depth+1, func(text string, _ int) *ProfileError { return e.string(text) })
	case []any:
		return list(e, value, depth+1, e.value)
	case map[string]any:
		return e.object(len(e.members), value, depth+1)
	case nil:
		return &ProfileError{Rule: RuleNull}
	case float32, float64:
		return &ProfileError{Rule: RuleNumber}
	default:
		return &ProfileError{Rule: RuleType}
	}
	return nil
}

func list[E any](e *encoder, elements []E, depth int, write func(E, int) *ProfileError) *ProfileError {
	if depth > MaxDepth {
		return &ProfileError{Rule: RuleDepth}
	}
	e.text = append(e.text, '[')
	for i, element := range elements {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		if broken := write(element, depth); broken != nil {
			return broken.within(strconv.Itoa(i))
		}
	}
	e.text = append(e.text, ']')
	return nil
}

func (e *encoder) string(text string) *ProfileError {
	if !utf8.ValidString(text) {
		return &ProfileError{Rule: RuleEncoding}
	}
	out := append(e.text, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ':
			out = append(out, c)
		case shortEscape[c] != 0:
			out = append(out, '\\', shortEscape[c])
		default:
			out = append(out, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
		}
	}
	e.text = append(out, '"')
	return nil
}

var shortEscape = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// within puts the name of the enclosing member in front.
func (e *ProfileError) within(name string) *ProfileError {
	if e.Member != "" {
		name += "." + e.Member
	}
	e.Member = shorten(name)
	return e
}

// shorten keeps a wrong name from filling a log.
func shorten(name string) string {
	const limit = 128
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "") + "…"
}
