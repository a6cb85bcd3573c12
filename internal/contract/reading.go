package contract

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/common/types"
	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// errIncomplete says that an expression reads a body that broke off.
var errIncomplete = errors.New("reads a body that is not complete")

// reading is an answer of the target as expressions see it. Its body is parsed when the first of them reads it.
type reading struct {
	response  action.Response
	variables map[string]any
	parsed    bool
	readable  bool // the body is whole, and JSON
}

func readAnswer(r action.Response, id Identity) *reading {
	return &reading{response: r, variables: map[string]any{
		"status": int64(r.Status), "headers": headerMap(r.Header), "body": nil, "deed": id.values(),
	}}
}

// parse makes the body known to expressions: as JSON, or as null when it is none.
func (a *reading) parse() {
	if a.parsed || a.response.Truncated {
		return
	}
	a.parsed = true
	if value, err := canonical.ParseMax(a.response.Body, mostResponse); err == nil {
		a.variables["body"], a.readable = value, true
	}
}

// prepare makes sure that the expression can see what it reads.
func (a *reading) prepare(e *expression) error {
	if !e.touches("body") {
		return nil
	}
	if a.response.Truncated {
		return errIncomplete
	}
	a.parse()
	return nil
}

// holds evaluates a condition. The error says why nothing follows from it.
func (a *reading) holds(e *expression) (bool, error) {
	if err := a.prepare(e); err != nil {
		return false, err
	}
	value, err := e.eval(a.variables)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, errors.New("gives no truth value")
	}
	return bool(b), nil
}

// value evaluates a text.
func (a *reading) value(t *text) (value any, present bool, err error) {
	for _, e := range t.expressions() {
		if err := a.prepare(e); err != nil {
			return nil, false, err
		}
	}
	return t.value(a.variables)
}

// result evaluates what a question brings back, as canonical JSON.
func (a *reading) result(t *text) (body []byte, given bool, err error) {
	if t == nil {
		return nil, false, nil
	}
	value, present, err := a.value(t)
	if err == nil && !present {
		err = errors.New("gives nothing")
	}
	if err == nil {
		body, err = canonical.Marshal(value)
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s %w", t.path, err)
	}
	return body, true, nil
}

// intelligible reports whether the body is JSON, or there is none.
func (a *reading) intelligible() bool {
	a.parse()
	return a.readable || len(a.response.Body) == 0 && !a.response.Truncated
}

// succeeded reports whether the target says that it did what it was asked.
func (a *reading) succeeded() bool { return a.response.Status/100 == 2 }

// knowsNone reports whether an answer without the effect can mean that the target knows of none: it answered the question,
// or has nothing at this address. An answer about the question itself (not allowed, too often, out of order) says nothing.
func (a *reading) knowsNone() bool {
	if status := a.response.Status; status == 404 || status == 410 {
		return true
	}
	a.parse()
	return a.succeeded() && a.readable
}

// headerMap gives the header fields lower-case names, since HTTP compares them so.
func headerMap(header map[string][]string) map[string]string {
	m := make(map[string]string, len(header))
	for _, name := range sortedKeys(header) {
		lower, value := strings.ToLower(name), strings.Join(header[name], ", ")
		if first, twice := m[lower]; twice {
			value = first + ", " + value
		}
		m[lower] = value
	}
	return m
}
