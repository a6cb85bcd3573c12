package contract

import (
	"regexp"

	"deed.dev/deed/internal/canonical"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// value turns a node into a canonical value and notes its place.
func (r *reader) value(n ast.Node, path string, depth int) any {
	if n == nil {
		return nil
	}
	r.places[path] = r.place(n.GetToken())
	if depth > canonical.MaxDepth {
		r.add(path, "nested too deep", "")
		return nil
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle { // the token of a block mapping is its first colon
			r.places[path] = r.place(n.Values[0].Key.GetToken())
		}
		return r.mapping(n.Values, path, depth)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, path, depth)
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = r.value(v, item(path, i), depth+1)
		}
		return list
	case *ast.StringNode:
		if n.Token.Type == token.StringType && jsonNumber.MatchString(n.Value) { // the library gives up on large numbers
			return r.number(n.Value, path)
		}
		return n.Value
	case *ast.LiteralNode:
		r.places[path] = place{line: r.place(n.Start).line, column: r.place(n.Start).column, style: block}
		return n.Value.Value
	case *ast.IntegerNode:
		return r.number(n.Token.Value, path)
	case *ast.FloatNode:
		return r.number(n.Token.Value, path)
	case *ast.BoolNode:
		return n.Value
	case *ast.NullNode:
		return nil
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		r.add(path, "anchors and aliases are not supported", "write the value out")
	case *ast.TagNode:
		r.add(path, "YAML tags are not supported", "leave the tag out")
	default:
		r.add(path, "this is no value that JSON has", "")
	}
	return nil
}

func (r *reader) mapping(values []*ast.MappingValueNode, path string, depth int) any {
	members := make(map[string]any, len(values))
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.addAt(r.place(v.Key.GetToken()), path, "a member's name has to be plain text", "put it in quotes")
			continue
		}
		at := child(path, key.Value)
		if _, twice := members[key.Value]; twice {
			r.addAt(r.place(key.Token), at, "this member stands here twice", "keep one of them")
			continue
		}
		members[key.Value] = r.value(v.Value, at, depth+1)
		r.places[at+keyMark] = r.place(key.Token)
	}
	return members
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// number keeps every digit. Spellings that YAML versions read differently, such as 010 and 1_000, are refused.
func (r *reader) number(text, path string) any {
	if !jsonNumber.MatchString(text) {
		r.add(path, "this number is not written as JSON writes numbers", "write plain decimal digits, or put text in quotes")
		return nil
	}
	value, err := canonical.Parse([]byte(text))
	if err != nil {
		r.add(path, "this number cannot be kept exactly: "+err.Error(), "")
		return nil
	}
	return value
}
