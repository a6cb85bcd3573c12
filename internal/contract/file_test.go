package contract

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// Every field of the Go types stands in the schema, and the reverse.
func TestSchemaAndTypesHaveTheSameFields(t *testing.T) {
	var schema any
	if err := json.Unmarshal(schemaText, &schema); err != nil {
		t.Fatal(err)
	}
	compareFields(t, "", reflect.TypeFor[file](), schema)
}

func compareFields(t *testing.T, path string, typ reflect.Type, schema any) {
	t.Helper()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[value]() {
		return
	}
	properties, _ := member(schema, "properties").(map[string]any)
	var names []string
	for i := range typ.NumField() {
		field := typ.Field(i)
		name := field.Tag.Get("json")
		names = append(names, name)
		if _, ok := properties[name]; !ok {
			t.Errorf("%s.%s stands in the types and not in the schema", path, name)
			continue
		}
		compareFields(t, path+"."+name, field.Type, properties[name])
	}
	for name := range properties {
		if !slices.Contains(names, name) {
			t.Errorf("%s.%s stands in the schema and not in the types", path, name)
		}
	}
}
