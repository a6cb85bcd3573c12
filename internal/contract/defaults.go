package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// defaults says how the defaults of the input take part in what is sent and compared. Each is always written or always
// omitted, so that a call which spells a default out and one which leaves it out are one call.
type defaults struct {
	root    any
	any     bool              // there are defaults at all
	mode    string            // of the arguments that modes does not name
	modes   map[string]string // by JSON pointer, with * for any element of a list
	written map[string]bool   // top-level arguments that are always there because of their default
	known   []string          // JSON pointers of all defaults
}

const (
	modeWritten = "written"
	modeOmitted = "omitted"
)

// defaults checks every default against its own schema, and the modes against the defaults.
func (f *faults) defaults(root map[string]any, modes value, compiler *jsonschema.Compiler) defaults {
	d := defaults{root: root, mode: modeWritten, modes: map[string]string{}, written: map[string]bool{}}
	f.checkDefaults(root, "/input", compiler, &d)
	if f.any("/input") {
		return d
	}
	stated := map[string]string{} // pointer to the name that the contract used
	switch m := modes.tree.(type) {
	case string:
		d.mode = m
	case map[string]any:
		for _, name := range sortedKeys(m) {
			pointer := argumentPointer(name)
			if other, twice := stated[pointer]; twice {
				f.add(child("/defaults", name), fmt.Sprintf("the mode of this argument is stated as %q too", other), "state it once")
			}
			stated[pointer] = name
			d.modes[pointer], _ = m[name].(string)
		}
	}
	used := map[string]bool{}
	d.note(root, root, "", used, nil)
	d.known = sortedKeys(used)
	for _, pointer := range sortedKeys(d.modes) {
		at := child("/defaults", stated[pointer])
		if !used[pointer] {
			f.add(at, "the input has no default here", "name an argument that has one")
		}
		for outer := parent(pointer); outer != ""; outer = parent(outer) {
			if mode, ok := d.modes[outer]; ok && mode != d.modes[pointer] {
				f.add(at, fmt.Sprintf("%s is %s and this part of it is %s", outer, mode, d.modes[pointer]), "use one mode for both")
			}
		}
	}
	return d
}

// checkDefaults walks the schemas in which a default has one clear meaning, and refuses defaults anywhere else.
func (f *faults) checkDefaults(m map[string]any, path string, compiler *jsonschema.Compiler, d *defaults) {
	if v, ok := m["default"]; ok {
		d.any = true
		at := child(path, "default")
		schema, err := compiler.Compile(inputURL + "#" + strings.TrimPrefix(path, "/input"))
		var invalid *jsonschema.ValidationError
		if err == nil && errors.As(schema.Validate(native(v)), &invalid) {
			for _, found := range findings(invalid) {
				f.add(at, "the default "+strings.TrimSpace(found.path+" "+found.text), "write a default that the schema accepts")
			}
		}
	}
	eachSchema(m, path, func(sub any, at string) {
		inner, ok := sub.(map[string]any)
		if !ok {
			return
		}
		switch word := tokens(strings.TrimPrefix(at, path))[0]; word {
		case "properties", "items", "prefixItems", "additionalProperties", "allOf", "$defs":
			f.checkDefaults(inner, at, compiler, d)
		default:
			if where, found := firstDefault(inner, at, d.root, nil); found {
				f.add(where, fmt.Sprintf("a default under %s has no one meaning", word), "move it to the property itself")
			}
		}
	})
}

// firstDefault looks for a default in a schema and in what it refers to.
func firstDefault(m map[string]any, path string, root any, refs []string) (where string, found bool) {
	if has(m, "default") {
		return child(path, "default"), true
	}
	if ref, ok := m["$ref"].(string); ok && !slices.Contains(refs, ref) {
		if target, ok := follow(root, ref).(map[string]any); ok {
			if _, found := firstDefault(target, path, root, append(slices.Clone(refs), ref)); found {
				return child(path, "$ref"), true
			}
		}
	}
	eachSchema(m, path, func(sub any, at string) {
		if inner, ok := sub.(map[string]any); ok && !found {
			where, found = firstDefault(inner, at, root, refs)
		}
	})
	return where, found
}

// note finds which pointers have a default, and which arguments are always there. A schema that holds itself is
// followed once.
func (d *defaults) note(s map[string]any, root any, path string, used map[string]bool, refs []string) {
	if ref, ok := s["$ref"].(string); ok {
		if slices.Contains(refs, ref) {
			return
		}
		refs = append(slices.Clone(refs), ref)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, sub := range properties {
		at := child(path, name)
		if _, ok := defaultOf(sub, root); ok {
			used[at] = true
			if d.modeOf(at) == modeWritten && path == "" {
				d.written[name] = true
			}
		}
		if inner, ok := sub.(map[string]any); ok {
			d.note(inner, root, at, used, refs)
		}
	}
	elements, _ := s["prefixItems"].([]any)
	for _, sub := range append(slices.Clone(elements), s["items"]) {
		if inner, ok := sub.(map[string]any); ok {
			d.note(inner, root, path+"/*", used, refs)
		}
	}
	for _, b := range besides(s, root) {
		if inner, ok := b.schema.(map[string]any); ok && b.certain {
			d.note(inner, root, path, used, refs)
		}
	}
}

func (d *defaults) modeOf(pointer string) string {
	for at := pointer; at != ""; at = parent(at) {
		if mode, ok := d.modes[at]; ok {
			return mode
		}
	}
	return d.mode
}

// defaultOf is the default of a property: its own, or that of a schema it refers to.
func defaultOf(s any, root any) (any, bool) {
	m, _ := s.(map[string]any)
	if v, ok := m["default"]; ok || m == nil {
		return v, ok
	}
	for _, b := range besides(m, root) {
		if b.certain {
			if v, ok := defaultOf(b.schema, root); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// argumentPointer turns a name that a contract uses for an argument into a JSON pointer.
func argumentPointer(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return child("", name)
}
