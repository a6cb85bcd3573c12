package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// How a keyword of JSON Schema holds other schemas.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "dependentSchemas"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaOnes  = []string{"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else",
		"unevaluatedItems", "unevaluatedProperties"}
	otherWords = []string{"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
		"exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains",
		"minContains", "maxProperties", "minProperties", "required", "dependentRequired", "title", "description", "default",
		"deprecated", "readOnly", "writeOnly", "examples", "format", "contentEncoding", "contentMediaType", "$ref",
		"$schema", "$comment", "secret"}
	formats = []string{"json-pointer", "relative-json-pointer", "uuid", "duration", "ipv4", "ipv6", "hostname", "email",
		"date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "regex"}
)

var localRef = regexp.MustCompile(`^#/\$defs/[A-Za-z0-9_.-]+$`)

// topProperty is where secret may stand.
var topProperty = regexp.MustCompile(`^/input/properties/[^/]+/secret$`)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// schema looks for what deed does not accept in a schema, though JSON Schema itself would pass over it in silence.
func (f *faults) schema(s any, path string) {
	m, ok := s.(map[string]any)
	if !ok {
		return // true, false, or a fault that the schema of schemas finds
	}
	for _, word := range sortedKeys(m) {
		f.keyword(word, m[word], child(path, word))
	}
	eachSchema(m, path, func(sub any, at string) { f.schema(sub, at) })
}

// eachSchema visits the schemas that stand directly inside another.
func eachSchema(m map[string]any, path string, visit func(sub any, at string)) {
	for _, word := range schemaMaps {
		subs, _ := m[word].(map[string]any)
		for _, name := range sortedKeys(subs) {
			visit(subs[name], child(child(path, word), name))
		}
	}
	for _, word := range schemaLists {
		subs, _ := m[word].([]any)
		for i, sub := range subs {
			visit(sub, item(child(path, word), i))
		}
	}
	for _, word := range schemaOnes {
		if sub, ok := m[word]; ok {
			visit(sub, child(path, word))
		}
	}
}

func (f *faults) keyword(word string, v any, path string) {
	at := f.places.key(path)
	switch text, _ := v.(string); {
	case word == "$schema" && strings.TrimSuffix(text, "#") != dialect:
		f.add(path, "only JSON Schema 2020-12 is supported", "leave $schema out")
	case word == "$ref" && !localRef.MatchString(text):
		f.add(path, "a reference has to name a schema under $defs of the same input", "write #/$defs/NAME")
	case word == "format" && text != "" && !slices.Contains(formats, text):
		f.add(path, fmt.Sprintf("the format %q is not known, so nothing would be checked", text),
			"use one of "+strings.Join(formats, ", "))
	case word == "secret" && v == true && !topProperty.MatchString(path):
		f.addAt(at, path, "only an argument of its own can be secret", "make it one of input.properties")
	case word == "secret" && v != true && v != false:
		f.add(path, "has to be true or false", "")
	case strings.HasPrefix(word, "x-"), slices.Contains(otherWords, word), slices.Contains(schemaMaps, word),
		slices.Contains(schemaLists, word), slices.Contains(schemaOnes, word):
	default:
		instead := ""
		if near := nearest(word, slices.Concat(otherWords, schemaMaps, schemaLists, schemaOnes)); near != "" {
			instead = fmt.Sprintf("did you mean %s?", near)
		}
		f.addAt(at, path, fmt.Sprintf("%q is no keyword that is supported here", word), instead)
	}
}
