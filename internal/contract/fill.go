package contract

import (
	"bytes"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// fill writes or omits the defaults in the arguments, and says what it did.
func (in *input) fill(args map[string]any) ([]action.Step, error) {
	if !in.defaults.any {
		return nil, nil
	}
	w := &filler{in: in, left: maxVisits}
	w.value(in.root, args, "", "", 0)
	if w.left < 0 {
		return nil, action.Errorf(action.CodeInvalidArguments, "the defaults of the input add too much to these arguments")
	}
	return w.steps, nil
}

// maxVisits bounds the work of filling defaults in: a schema may hold itself, and so may its defaults.
const maxVisits = 1 << 20

type filler struct {
	in    *input
	steps []action.Step
	left  int
}

// value fills what stands at one place. pattern is its pointer with * for elements.
func (w *filler) value(schema, v any, path, pattern string, depth int) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if w.left--; w.left < 0 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(s, v, path, pattern, depth)
	case []any:
		prefix, _ := s["prefixItems"].([]any)
		for i, element := range v {
			sub := s["items"]
			if i < len(prefix) {
				sub = prefix[i]
			}
			w.value(sub, element, item(path, i), pattern+"/*", depth+1)
		}
	}
	for _, b := range besides(s, w.in.root) {
		if b.certain {
			w.value(b.schema, v, path, pattern, depth+1)
		}
	}
}

func (w *filler) object(s, v map[string]any, path, pattern string, depth int) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		at, mode := child(path, name), w.in.defaults.modeOf(child(pattern, name))
		standard, hasDefault := defaultOf(properties[name], w.in.root)
		current, present := v[name]
		switch {
		case hasDefault && !present && mode == modeWritten && depth > 2*canonical.MaxDepth:
			w.left = -1 // a default that holds itself
			return
		case hasDefault && !present && mode == modeWritten:
			current, present = clone(standard), true
			v[name] = current
			w.note(child(pattern, name), "written")
		case hasDefault && present && mode == modeOmitted && equal(current, standard):
			delete(v, name)
			present = false
			w.note(child(pattern, name), "omitted")
		}
		if present {
			w.value(properties[name], current, at, child(pattern, name), depth+1)
		}
	}
	rest, ok := s["additionalProperties"].(map[string]any)
	for _, name := range sortedKeys(v) {
		if ok && !has(properties, name) {
			w.value(rest, v[name], child(path, name), pattern+"/*", depth+1)
		}
	}
}

// note records a step once for each place of the schema, whatever the arguments repeat there. Names that a caller chose are
// no part of it: steps stand in the journal.
func (w *filler) note(pattern, what string) {
	step := action.Step{Kind: "default", Field: pattern, Detail: what}
	if !slices.Contains(w.steps, step) {
		w.steps = append(w.steps, step)
	}
}

func equal(a, b any) bool {
	x, err := canonical.Marshal(a)
	if err != nil {
		return false
	}
	y, err := canonical.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
