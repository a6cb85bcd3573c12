package contract

import (
	"slices"
	"strings"
)

// close makes every object that lists its properties refuse others, unless it says something about them itself. A typing
// error in an argument is then an error and not a lost value.
func (f *faults) close(s any, path string, root any) {
	m, ok := s.(map[string]any)
	if !ok {
		return
	}
	if describesObject(m, root) && !saysOpen(m) {
		composed := slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"},
			func(word string) bool { return has(m, word) })
		switch {
		case composed:
			m["unevaluatedProperties"] = false
		case path != "/input" && m["properties"] == nil && m["patternProperties"] == nil:
			f.add(path, "this object names no properties, so it could only be empty",
				"list them, or write additionalProperties: true")
		default:
			m["additionalProperties"] = false
		}
	}
	f.closeInside(m, path, root)
}

// closeInside closes the schemas of members and elements, which apply to values of their own. What applies to the same
// value, as in allOf, is covered by the schema that holds it.
func (f *faults) closeInside(m map[string]any, path string, root any) {
	eachSchema(m, path, func(sub any, at string) {
		word := tokens(strings.TrimPrefix(at, path))[0]
		switch word {
		case "properties", "patternProperties", "prefixItems", "items", "additionalProperties", "unevaluatedItems",
			"unevaluatedProperties":
			f.close(sub, at, root)
		case "if", "not", "contains", "propertyNames": // a condition: closing it would change when it holds
		default:
			if inner, ok := sub.(map[string]any); ok {
				f.closeInside(inner, at, root)
			}
		}
	})
}

// describesObject reports whether the schema is about an object with certain members.
func describesObject(m map[string]any, root any) bool {
	return m["type"] == "object" || m["properties"] != nil || m["patternProperties"] != nil || slices.ContainsFunc(besides(m, root), func(b beside) bool {
		sub, ok := b.schema.(map[string]any)
		return ok && !saysOpen(sub) && describesObject(sub, root)
	})
}

// saysOpen reports whether the schema itself speaks about members that it does not name.
func saysOpen(m map[string]any) bool {
	return has(m, "additionalProperties") || has(m, "unevaluatedProperties")
}

// circles finds schemas that refer to themselves without going into a member. Nothing could be checked against them.
func (f *faults) circles(root map[string]any) {
	defs, _ := root["$defs"].(map[string]any)
	for _, name := range sortedKeys(defs) {
		if circle(defs[name], root, []string{"#/$defs/" + name}) {
			f.add(child("/input/$defs", name), "this schema refers to itself without going into a member", "")
		}
	}
}

func circle(s any, root any, refs []string) bool {
	m, ok := s.(map[string]any)
	if !ok {
		return false
	}
	if ref, ok := m["$ref"].(string); ok {
		if slices.Contains(refs, ref) {
			return true
		}
		refs = append(slices.Clone(refs), ref)
	}
	return slices.ContainsFunc(besides(m, root), func(b beside) bool { return circle(b.schema, root, refs) })
}
