package contract

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// repeatOf is the input that every tool with effects gets from deed.
const repeatOf = "repeat_of"

// input is what a tool takes: the schema with its open ends closed, and what expressions may rely on.
type input struct {
	root     any // the schema, closed
	schema   *jsonschema.Schema
	open     bool           // members that the schema does not name are welcome
	declared map[string]any // arguments by name, with their schemas
	required map[string]bool
	defaults defaults
}

const inputURL = "deed://contract/input"

// input checks the schema of the arguments and gets it ready.
func (f *faults) input(raw any, modes value) *input {
	in := &input{declared: map[string]any{}, required: map[string]bool{}, open: true}
	root, _ := clone(raw).(map[string]any)
	if root == nil {
		return in
	}
	f.schema(root, "/input")
	f.circles(root)
	whole := !f.any("/input")
	if whole {
		f.close(root, "/input", root)
	}
	compiler := newCompiler()
	if err := compiler.AddResource(inputURL, native(root)); err != nil {
		f.add("/input", "the schema cannot be read", "")
		return in
	}
	schema, err := compiler.Compile(inputURL)
	if err != nil {
		f.schemaError(err, whole)
	}
	if f.any("/input") {
		return in // what is wrong is said; expressions are not blamed for it
	}
	in.root, in.schema = root, schema
	in.open = root["additionalProperties"] != false && root["unevaluatedProperties"] != false
	in.collect(root, root, true)
	if _, taken := in.declared[repeatOf]; taken {
		f.addAt(f.places.key("/input/properties/"+repeatOf), "/input/properties/"+repeatOf,
			"the name is taken: deed gives it to every tool with effects", "choose another name")
	}
	in.defaults = f.defaults(root, modes, compiler)
	if _, err := in.fill(map[string]any{}); err != nil {
		f.add("/input", "the defaults have no end", "take a default out of the schema that holds itself")
	}
	return in
}

// schemaError names what the schema of schemas does not accept.
func (f *faults) schemaError(err error, whole bool) {
	var refused *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &refused) && errors.As(refused.Err, &invalid) {
		for _, found := range findings(invalid) {
			f.add("/input"+found.path, found.text, "")
		}
		return
	}
	if whole { // otherwise the reason is said already
		f.add("/input", "the schema does not compile: "+strings.ReplaceAll(err.Error(), inputURL, ""), "")
	}
}

// collect notes the arguments that the schema names and those that it requires, over everything that applies to the
// arguments as a whole.
func (in *input) collect(s map[string]any, root any, certain bool) {
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		if _, known := in.declared[name]; !known {
			in.declared[name] = property
		}
	}
	names, _ := s["required"].([]any)
	for _, name := range names {
		if n, ok := name.(string); ok && certain {
			in.required[n] = true
		}
	}
	for _, sub := range besides(s, root) {
		if m, ok := sub.schema.(map[string]any); ok {
			in.collect(m, root, certain && sub.certain)
		}
	}
}

// beside is a schema that applies to the same value as the one that holds it.
type beside struct {
	schema  any
	certain bool // it always applies
}

func besides(s map[string]any, root any) []beside {
	var list []beside
	if ref, ok := s["$ref"].(string); ok {
		list = append(list, beside{follow(root, ref), true})
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		subs, _ := s[word].([]any)
		for _, sub := range subs {
			list = append(list, beside{sub, word == "allOf"})
		}
	}
	for _, word := range []string{"then", "else"} {
		if sub, ok := s[word]; ok {
			list = append(list, beside{sub, false})
		}
	}
	dependent, _ := s["dependentSchemas"].(map[string]any)
	for _, name := range sortedKeys(dependent) {
		list = append(list, beside{dependent[name], false})
	}
	return list
}

// follow finds what a $ref of the form #/… refers to.
func follow(root any, ref string) any {
	v := root
	for _, token := range tokens(strings.TrimPrefix(ref, "#")) {
		v = member(v, token)
	}
	return v
}

// always reports whether the argument is there in every resolved call.
func (in *input) always(name string) bool { return in.required[name] || in.defaults.written[name] }
