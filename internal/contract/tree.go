package contract

import "slices"

func member(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

func has(v any, name string) bool {
	m, _ := v.(map[string]any)
	_, ok := m[name]
	return ok
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = clone(member)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, element := range v {
			l[i] = clone(element)
		}
		return l
	default:
		return v
	}
}

// remove takes a member out of a tree. What stands in a list goes with its list.
func remove(root any, path string) {
	m, _ := root.(map[string]any)
	list := tokens(path)
	for i, token := range list {
		next, ok := m[token].(map[string]any)
		if !ok || i == len(list)-1 {
			delete(m, token)
			return
		}
		m = next
	}
}
