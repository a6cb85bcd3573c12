package vault

import (
	"path/filepath"
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
	case "each_use":
		b, ok := f.value.(*ast.BoolNode)
		if !ok {
			return problem(f.line, "each_use is true or false")
		}
		c.EachUse = b.Value
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
	case "vault":
		b, ok := f.value.(*ast.BoolNode)
		if !ok || !b.Value {
			return problem(f.line, "vault is true, or left out: the value then stands in the vault under the same reference")
		}
		c.Source.Vault = true
	case "command":
		c.Source.Command, err = f.texts()
		if err == nil && !filepath.IsAbs(c.Source.Command[0]) {
			return problem(f.line, "command begins with the whole path of a program; no shell is involved")
		}
	case "openbao":
		c.Source.OpenBao, err = readOpenBao(f)
	case "oauth":
		c.OAuth, err = readOAuth(f)
	case "check":
		c.Check, err = f.text()
	case "value", "secret", "token", "password", "key", "api_key", "client_secret":
		return problem(f.line, "a credential's value does not belong into this file; name its place with vault, env, file, command or openbao")
	default:
		return problem(f.line, "this field is not known; the fields are ref, kind, header, parameter, hosts, insecure_loopback, each_use, oauth, check, and "+
			"for the place of the value vault, env, file, command and openbao")
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
		if _, _, err := splitHost(s.Value, 1); err != nil {
			return nil, problem(lineOf(v), "this is no host or host:port in lower case, without scheme, path or pattern")
		}
		hosts = append(hosts, s.Value)
	}
	return hosts, nil
}

func (f field) texts() ([]string, error) {
	list, ok := f.value.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, problem(f.line, "%s is a list of texts", f.name)
	}
	var texts []string
	for _, v := range list.Values {
		s, ok := v.(*ast.StringNode)
		if !ok || s.Value == "" || strings.ContainsRune(s.Value, 0) {
			return nil, problem(lineOf(v), "%s is a list of texts; quote what YAML sees something else in", f.name)
		}
		texts = append(texts, s.Value)
	}
	return texts, nil
}

func readOpenBao(f field) (*OpenBao, error) {
	fields, err := fieldsOf(f.value)
	if err != nil {
		return nil, err
	}
	b := &OpenBao{Mount: "secret"}
	for _, f := range fields {
		into, known := map[string]*string{
			"url": &b.URL, "namespace": &b.Namespace, "mount": &b.Mount, "path": &b.Path, "field": &b.Field, "auth": &b.Auth,
		}[f.name]
		if !known {
			return nil, problem(f.line, "this field is not known; the fields of openbao are url, namespace, mount, path, field and auth")
		}
		if *into, err = f.text(); err != nil {
			return nil, err
		}
	}
	if b.URL == "" || b.Path == "" || b.Field == "" || b.Auth == "" || !b.plain() {
		return nil, problem(f.line, "openbao needs url, path, field and auth; mount and path are names with slashes between them")
	}
	return b, nil
}

func readOAuth(f field) (*OAuthClient, error) {
	fields, err := fieldsOf(f.value)
	if err != nil {
		return nil, err
	}
	o := &OAuthClient{}
	for _, f := range fields {
		switch f.name {
		case "token_url":
			o.TokenURL, err = f.text()
		case "client_id":
			o.ClientID, err = f.text()
		case "audience":
			o.Audience, err = f.text()
		case "scopes":
			o.Scopes, err = f.texts()
		case "client_auth":
			var where string
			where, err = f.text()
			if o.InBody = where == "body"; err == nil && where != "body" && where != "header" {
				return nil, problem(f.line, "client_auth is header or body")
			}
		case "client_secret":
			return nil, problem(f.line, "a credential's value does not belong into this file; name its place with vault, env, file, command or openbao")
		default:
			return nil, problem(f.line, "this field is not known; the fields of oauth are token_url, client_id, scopes, audience and client_auth")
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}
