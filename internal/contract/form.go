package contract

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"deed.dev/deed/internal/canonical"
)

// pair is one form field.
type pair struct{ name, value string }

// form computes the form fields. A list repeats its field.
func (n *node) form(variables map[string]any) ([]pair, error) {
	tree, _, err := n.value(variables)
	if err != nil {
		return nil, err
	}
	members := tree.(map[string]any)
	var pairs []pair
	for _, name := range sortedKeys(members) {
		values, isList := members[name].([]any)
		if !isList {
			values = []any{members[name]}
		}
		for _, v := range values {
			text, err := formText(v)
			if err != nil {
				return nil, fmt.Errorf("the form field %s %w", name, err)
			}
			pairs = append(pairs, pair{name, text})
		}
	}
	return pairs, nil
}

// formText is the text of a form value. A number has its canonical spelling.
func formText(v any) (string, error) {
	if n, ok := v.(canonical.Number); ok {
		return string(n), nil
	}
	return scalarText(v)
}

// encodeForm writes form fields in the order of their names.
func encodeForm(pairs []pair) []byte {
	pairs = slices.Clone(pairs)
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = url.QueryEscape(p.name) + "=" + url.QueryEscape(p.value)
	}
	return []byte(strings.Join(parts, "&"))
}
