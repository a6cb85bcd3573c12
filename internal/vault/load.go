package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A LoadError says what is wrong with the credentials file and where. It never quotes the file: people paste secrets into
// the wrong place.
type LoadError struct {
	Line    int // 0 where the whole file is meant
	Problem string
}

func (e *LoadError) Error() string {
	if e.Line == 0 {
		return "credentials: " + e.Problem
	}
	return fmt.Sprintf("credentials: line %d: %s", e.Line, e.Problem)
}

func problem(line int, format string, args ...any) error {
	return &LoadError{Line: line, Problem: fmt.Sprintf(format, args...)}
}

// maxFile bounds the credentials file, in bytes.
const maxFile = 1 << 20

// Load reads the list of credentials. It checks the list, not the values: each is read when it is opened. Paths in the
// file are relative to the file.
func Load(path string) (*Vault, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, problem(0, "the file does not exist")
	case err != nil:
		return nil, problem(0, "the file cannot be examined")
	case info.Mode().Perm()&0o002 != 0:
		return nil, problem(0, "the file may be written by everybody, and it decides where secrets are sent")
	case info.Size() > maxFile:
		return nil, problem(0, "the file is larger than %d bytes", maxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, problem(0, "the file cannot be read")
	}
	return Parse(raw, filepath.Dir(path))
}

// Parse is Load for the bytes of a file that stands in dir.
func Parse(raw []byte, dir string) (*Vault, error) {
	root, err := parseMapping(raw)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(root)
	if err != nil {
		return nil, err
	}
	var list []Credential
	lines := map[string]int{}
	for _, node := range entries {
		c, err := readCredential(node)
		if err != nil {
			return nil, err
		}
		if first, dup := lines[c.Ref]; dup {
			return nil, problem(c.Line, "the reference of line %d is used again", first)
		}
		lines[c.Ref] = c.Line
		if f := c.Source.File; f != "" && !filepath.IsAbs(f) {
			c.Source.File = filepath.Join(dir, f)
		}
		list = append(list, c)
	}
	return whole(newVault(list))
}

// whole checks what credentials say of each other: that a secret of OpenBao is asked for with a credential that is meant
// for OpenBao, and is none itself.
func whole(v *Vault) (*Vault, error) {
	for _, c := range v.credentials {
		bao := c.Source.OpenBao
		if bao == nil {
			continue
		}
		auth, ok := v.credentials[bao.Auth]
		_, target, err := targetOf(bao.URL, auth.InsecureLoopback)
		if !ok || err != nil || auth.Source.OpenBao != nil || auth.Kind != Header || !auth.Bound(target) {
			return nil, problem(c.Line, "openbao's auth names a credential of kind header (header: X-Vault-Token) that has the host of openbao's url among its own, "+
				"and another source than openbao; the url is https, or http to this machine where that credential allows it")
		}
	}
	return v, nil
}

func parseMapping(raw []byte) (_ ast.Node, err error) {
	// The parser is not ours; what it cannot digest is a bad file and no reason to stop the process.
	defer func() {
		if recover() != nil {
			err = problem(0, "the file is no YAML")
		}
	}()
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			return nil, problem(at.GetToken().Position.Line, "this is no YAML, or a name stands twice")
		}
		return nil, problem(0, "the file is no YAML")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, problem(0, "the file has to hold one document")
	}
	return file.Docs[0].Body, nil
}

func entriesOf(root ast.Node) ([]ast.Node, error) {
	fields, err := fieldsOf(root)
	if err != nil {
		return nil, err
	}
	if len(fields) != 1 || fields[0].name != "credentials" {
		return nil, problem(lineOf(root), "the file has one entry, credentials: a list")
	}
	list, ok := fields[0].value.(*ast.SequenceNode)
	if !ok {
		return nil, problem(fields[0].line, "credentials is a list")
	}
	return list.Values, nil
}
