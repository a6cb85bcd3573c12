package vault

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// field is one name and value of a mapping, with the line where it stands.
type field struct {
	name  string
	value ast.Node
	line  int
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// fieldsOf reads a mapping with plain names, each once.
func fieldsOf(n ast.Node) ([]field, error) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, problem(lineOf(n), "names and values are expected here")
	}
	var fields []field
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, problem(lineOf(v), "a plain name is expected here")
		}
		if seen[key.Value] {
			return nil, problem(lineOf(key), "this name stands twice")
		}
		seen[key.Value] = true
		fields = append(fields, field{key.Value, v.Value, lineOf(key)})
	}
	return fields, nil
}

// readCredential reads one entry of the list.
func readCredential(n ast.Node) (Credential, error) {
	fields, err := fieldsOf(n)
	if err != nil {
		return Credential{}, err
	}
	c := Credential{Line: lineOf(n)}
	if len(fields) > 0 {
		c.Line = fields[0].line
	}
	for _, f := range fields {
		if err := c.set(f); err != nil {
			return Credential{}, err
		}
	}
	return c, c.check()
}

func (c *Credential) set(f field) (err error) {
	switch f.name {
	case "ref":
		c.Ref, err = f.text()
	case "kind":
		var kind string
		kind, err = f.text()
		c.Kind = Kind(kind)
	case "header", "parameter":
		if c.Header != "" {
			return problem(f.line, "header and parameter exclude each other")
		}
		c.Header, err = f.text()
	case "hosts":
		c.Hosts, err = f.hosts()
	case "insecure_loopback":
		b, ok := f.value.(*ast.BoolNode)
		if !ok {
			return problem(f.line, "insecure_loopback is true or false")
		}
		c.InsecureLoopback = b.Value
	case "env":
		c.Source.Env, err = f.text()
	case "file":
		c.Source.File, err = f.text()
	case "value", "secret", "token", "password", "key", "api_key":
		return problem(f.line, "a credential's value does not belong into this file; name its place with env or file")
	default:
		return problem(f.line, "this field is not known; the fields are ref, kind, header, parameter, hosts, insecure_loopback, env and file")
	}
	return err
}

func (f field) text() (string, error) {
	s, ok := f.value.(*ast.StringNode)
	if !ok || strings.TrimSpace(s.Value) == "" {
		return "", problem(f.line, "%s is a text", f.name)
	}
	return s.Value, nil
}

func (f field) hosts() ([]string, error) {
	list, ok := f.value.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, problem(f.line, "hosts is a list of host or host:port")
	}
	var hosts []string
	for _, v := range list.Values {
		s, ok := v.(*ast.StringNode)
		if !ok {
			return nil, problem(lineOf(v), "a host is a text; quote it where YAML sees something else")
		}
		if _, _, err := splitHost(s.Value); err != nil {
			return nil, problem(lineOf(v), "this is no host or host:port in lower case, without scheme, path or pattern")
		}
		hosts = append(hosts, s.Value)
	}
	return hosts, nil
}
