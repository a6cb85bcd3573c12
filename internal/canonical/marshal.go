package canonical

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonicalize gives a JSON document its one spelling. The result is itself a
// document that Canonicalize leaves as it is. The error is an *Error.
func Canonicalize(data []byte) ([]byte, error) {
	value, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return Marshal(value)
}

// Marshal writes the canonical text of a tree made of nil, bool, string, Number,
// int, int64, uint64, float64, json.Number, []string, []any and map[string]any.
// A json.RawMessage or jsontext.Value is parsed first, by the same rules as any
// document. A nil slice is an empty array and a nil map an empty object; only nil
// itself is null. The error is an *Error.
func Marshal(v any) ([]byte, error) {
	w := writers.Get().(*writer)
	defer w.release()
	if refusal := w.value(v, 0); refusal != nil {
		return nil, refusal
	}
	return slices.Clone(w.text), nil
}

// writer keeps its memory from one document to the next.
type writer struct {
	text    []byte
	members []member // of the objects that are open, outermost first
}

type member struct {
	name  string
	value any
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// release forgets the document, and memory that only a large one needs.
func (w *writer) release() {
	clear(w.members[:cap(w.members)])
	if cap(w.text) > 1<<16 || cap(w.members) > 1<<10 {
		*w = writer{}
	}
	w.text, w.members = w.text[:0], w.members[:0]
	writers.Put(w)
}

func (w *writer) value(v any, depth int) *Error {
	switch v := v.(type) {
	case nil:
		w.text = append(w.text, "null"...)
	case bool:
		w.text = strconv.AppendBool(w.text, v)
	case string:
		return w.string(v)
	case Number:
		return w.literal(string(v))
	case json.Number:
		return w.literal(string(v))
	case int:
		w.text = strconv.AppendInt(w.text, int64(v), 10)
	case int64:
		w.text = strconv.AppendInt(w.text, v, 10)
	case uint64:
		w.text = strconv.AppendUint(w.text, v, 10)
	case float64:
		return w.number(canonicalFloat(v))
	case []string:
		return array(w, v, depth, func(s string, _ int) *Error { return w.string(s) })
	case []any:
		return array(w, v, depth, w.value)
	case map[string]any:
		return w.object(v, depth)
	case json.RawMessage:
		return w.raw(v, depth)
	case jsontext.Value:
		return w.raw(v, depth)
	default:
		return newError("", WrongType, fmt.Sprintf("no canonical form for the Go type %T", v))
	}
	return nil
}

func (w *writer) literal(text string) *Error {
	if !isNumber(text) {
		return newError("", Syntax, "text that is not a JSON number")
	}
	return w.number(canonicalNumber(text))
}

func (w *writer) number(text, refusal string) *Error {
	if refusal != "" {
		return newError("", NumberRange, refusal)
	}
	w.text = append(w.text, text...)
	return nil
}

func (w *writer) raw(text []byte, depth int) *Error {
	value, err := Parse(text)
	var refused *Error
	if errors.As(err, &refused) {
		return refused
	}
	return w.value(value, depth)
}

func array[E any](w *writer, elements []E, depth int, write func(E, int) *Error) *Error {
	if depth == MaxDepth {
		return tooDeep()
	}
	w.text = append(w.text, '[')
	for i, element := range elements {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if refusal := write(element, depth+1); refusal != nil {
			return refusal.within("/" + strconv.Itoa(i))
		}
	}
	w.text = append(w.text, ']')
	return nil
}

func (w *writer) object(members map[string]any, depth int) *Error {
	if depth == MaxDepth {
		return tooDeep()
	}
	first := len(w.members)
	for name, value := range members {
		w.members = append(w.members, member{name, value})
	}
	last := len(w.members)
	slices.SortFunc(w.members[first:last], func(a, b member) int { return compareUTF16(a.name, b.name) })
	w.text = append(w.text, '{')
	for i := first; i < last; i++ {
		m := w.members[i]
		if i > first {
			w.text = append(w.text, ',')
		}
		if refusal := w.string(m.name); refusal != nil {
			return refusal // no path: the name is what cannot be shown
		}
		w.text = append(w.text, ':')
		if refusal := w.value(m.value, depth+1); refusal != nil {
			return refusal.within("/" + pointerEscape.Replace(m.name))
		}
	}
	w.members = w.members[:first]
	w.text = append(w.text, '}')
	return nil
}

func tooDeep() *Error {
	return newError("", TooDeep, fmt.Sprintf("nested deeper than %d", MaxDepth))
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")
