package probe

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"deed.dev/deed/internal/canonical"
)

// checkPointers refuses what names no member.
func checkPointers(pointers []string) error {
	for _, p := range pointers {
		if !strings.HasPrefix(p, "/") {
			return fmt.Errorf("%q is no JSON pointer; write it as /created or /data/*/updated", p)
		}
	}
	return nil
}

func tokens(pointer string) []string {
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts
}

// without is the tree without the value that the path names, if it has one. An element is replaced by null, so that the
// others keep their places.
func without(tree any, path []string) any {
	switch tree := tree.(type) {
	case map[string]any:
		child, ok := tree[path[0]]
		switch {
		case !ok:
		case len(path) == 1:
			delete(tree, path[0])
		default:
			tree[path[0]] = without(child, path[1:])
		}
	case []any:
		for i := range tree {
			if path[0] != "*" && path[0] != strconv.Itoa(i) {
				continue
			}
			if len(path) == 1 {
				tree[i] = nil
			} else {
				tree[i] = without(tree[i], path[1:])
			}
		}
	}
	return tree
}

// differing are the JSON pointers at which two trees differ: names, never values.
func differing(a, b any) []string { return appendDiffering(nil, "", a, b) }

func appendDiffering(list []string, at string, a, b any) []string {
	one, isObject := a.(map[string]any)
	other, bothObjects := b.(map[string]any)
	if isObject && bothObjects {
		names := maps.Clone(one)
		maps.Copy(names, other)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			x, inOne := one[name]
			y, inOther := other[name]
			child := at + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
			if inOne != inOther {
				list = append(list, child)
			} else {
				list = appendDiffering(list, child, x, y)
			}
		}
		return list
	}
	left, isList := a.([]any)
	right, bothLists := b.([]any)
	if isList && bothLists && len(left) == len(right) {
		for i := range left {
			list = appendDiffering(list, at+"/"+strconv.Itoa(i), left[i], right[i])
		}
		return list
	}
	if !same(a, b) {
		list = append(list, at)
	}
	return list
}

func same(a, b any) bool {
	x, err := canonical.Marshal(a)
	if err != nil {
		return false
	}
	y, err := canonical.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// scalars calls see with each text and number of a tree, and the name of the member that holds it.
func scalars(tree any, name string, see func(name, value string)) {
	switch v := tree.(type) {
	case map[string]any:
		for name, child := range v {
			scalars(child, name, see)
		}
	case []any:
		for _, child := range v {
			scalars(child, name, see)
		}
	case string:
		see(name, v)
	case nil, bool:
	default: // a number
		if text, err := canonical.Marshal(v); err == nil {
			see(name, string(text))
		}
	}
}
