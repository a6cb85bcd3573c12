package contract

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"

	"deed.dev/deed/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed contract.schema.json
var schemaText []byte

// FileSchema is the JSON Schema of a contract file, which editors use to complete it. It is also what the loader checks.
func FileSchema() []byte { return slices.Clone(schemaText) }

// fileSchema is the compiled schema with its text as a tree, in which the fields are looked up.
var fileSchema = sync.OnceValues(func() (*jsonschema.Schema, any) {
	root, err := canonical.Parse(schemaText)
	if err != nil {
		panic(err) // the schema is part of the program
	}
	c := newCompiler()
	if err := c.AddResource("deed://contract/file", native(root)); err != nil {
		panic(err)
	}
	return c.MustCompile("deed://contract/file"), root
})

// newCompiler makes a compiler that reads nothing but what it is given.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.AssertFormat()
	return c
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may not refer to another document")
}

// later names the channels and forms that other versions of the format have.
var later = []string{"ssh", "sql", "mcp", "steps", "run"}

// shape checks the document against the schema and gives it back without what does not fit, so that the other checks can
// go on and every fault is named at once.
func (f *faults) shape(root any) any {
	if _, ok := root.(map[string]any); !ok {
		f.add("", "a contract is an object with the members of docs/contract.schema.json", "begin with tool: NAME")
		return nil
	}
	schema, tree := fileSchema()
	var invalid *jsonschema.ValidationError
	if !errors.As(schema.Validate(native(root)), &invalid) {
		return root
	}
	root = clone(root)
	for _, found := range findings(invalid) {
		switch found.kind.(type) {
		case *kind.AdditionalProperties:
			f.unknownField(found.path, tree)
			remove(root, found.path)
		case *kind.Required:
			if found.path == "/http" && slices.ContainsFunc(later, func(name string) bool { return has(root, name) }) {
				continue // said at the other channel
			}
			f.addAt(f.places.key(parent(found.path)), found.path, found.text, missing[found.path])
		default:
			f.add(found.path, found.text, "")
			remove(root, found.path)
		}
	}
	return root
}

// missing says what to write for a member that every contract needs.
var missing = map[string]string{
	"/tool":             "give the name that agents call",
	"/description":      "say what the tool does",
	"/input":            "write input: {type: object, properties: {…}}",
	"/http":             "write http: {method: …, url: …}",
	"/on_lost_response": "say what may be done after the response was lost: on_lost_response: {class: …}",
	"/on_lost_response/class": "choose read_only, repeatable_with_key, status_queryable or blocked_after_unknown; " +
		"the method decides nothing",
	"/on_lost_response/key/repeat": "say what the target does when the key comes again",
	"/done_when":                   "say which answer proves the effect, for example ${status == 200}",
	"/input/type":                  "write type: object",
	"/http/method":                 "name one of GET, HEAD, POST, PUT, PATCH and DELETE",
	"/http/url":                    "write https://HOST/PATH with {name} for an argument",
	"/lookup/request":              "write request: {method: GET, url: …}",
	"/lookup/request/url":          "write https://HOST/PATH with {deed.idem_key}, {deed.action_id} or {name} for an argument",
	"/lookup/found":                "say which answer shows the effect",
	"/poll/accepted_when":          "say which answer means that the work is taken on, for example ${status == 202}",
	"/poll/job":                    "say where its id stands, for example ${body.id}",
	"/poll/request":                "write request: {method: GET, url: …} with {deed.job}",
	"/poll/request/url":            "write https://HOST/PATH with {deed.job}",
	"/poll/done_when":              "say which answer proves the effect",
	"/undo/tool":                   "name the tool that undoes the action",
}

func (f *faults) unknownField(path string, tree any) {
	name := tokens(path)[len(tokens(path))-1]
	at := f.places.key(path)
	if parent(path) == "" && slices.Contains(later, name) {
		f.addAt(at, path, "not supported by this version", "use http")
		return
	}
	instead := ""
	if near := nearest(name, fieldsAt(tree, parent(path))); near != "" {
		instead = fmt.Sprintf("did you mean %s?", near)
	}
	f.addAt(at, path, "there is no such field", instead)
}

// fieldsAt lists the fields that the schema has at a path.
func fieldsAt(schema any, path string) []string {
	for _, token := range tokens(path) {
		schema = member(member(schema, "properties"), token)
	}
	properties, _ := member(schema, "properties").(map[string]any)
	return sortedKeys(properties)
}
