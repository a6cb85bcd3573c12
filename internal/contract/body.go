package contract

import (
	"fmt"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// node is one value of a body, or of the arguments of an undo: a list, an object, a text with expressions, or a literal.
type node struct {
	object  map[string]*node
	list    []*node
	text    *text
	literal any
}

// tree compiles a body or other arguments, value by value.
func (f *faults) tree(path string, v any, in scope) *node {
	switch v := v.(type) {
	case map[string]any:
		n := &node{object: map[string]*node{}}
		for _, name := range sortedKeys(v) {
			n.object[name] = f.tree(child(path, name), v[name], in)
		}
		return n
	case []any:
		n := &node{list: make([]*node, len(v))}
		for i, element := range v {
			n.list[i] = f.tree(item(path, i), element, in)
		}
		return n
	case string:
		return &node{text: f.text(path, v, in)}
	default:
		return &node{literal: v}
	}
}

// texts lists the texts of a body in a fixed order.
func (n *node) texts() []*text {
	var all []*text
	switch {
	case n.text != nil:
		all = append(all, n.text)
	case n.object != nil:
		for _, name := range sortedKeys(n.object) {
			all = append(all, n.object[name].texts()...)
		}
	}
	for _, element := range n.list {
		all = append(all, element.texts()...)
	}
	return all
}

// value computes the tree. A member or element whose whole text gives nothing is left out.
func (n *node) value(variables map[string]any) (value any, present bool, err error) {
	switch {
	case n.text != nil:
		value, present, err = n.text.value(variables)
		if err != nil {
			err = fmt.Errorf("%s %w", n.text.path, err)
		}
		return value, present, err
	case n.object != nil:
		members := make(map[string]any, len(n.object))
		for _, name := range sortedKeys(n.object) {
			value, present, err := n.object[name].value(variables)
			if err != nil {
				return nil, false, err
			}
			if present {
				members[name] = value
			}
		}
		return members, true, nil
	case n.list != nil:
		elements := make([]any, 0, len(n.list))
		for _, e := range n.list {
			value, present, err := e.value(variables)
			if err != nil {
				return nil, false, err
			}
			if present {
				elements = append(elements, value)
			}
		}
		return elements, true, nil
	default:
		return n.literal, true, nil
	}
}
