package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds deed.yaml; ten settings need no more.
const maxFile = 64 << 10

// readFile gives the values that stand in deed.yaml, by setting. Only plain values of known settings are accepted.
func readFile(path string, known []setting) (map[string]value, error) {
	text, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	values := map[string]value{}
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		line := doc.Body.GetToken().Position.Line
		body, ok := doc.Body.(*ast.MappingNode)
		if !ok {
			return nil, fmt.Errorf("%s:%d: this is no setting; write lines such as listen: 127.0.0.1:7333", path, line)
		}
		if i > 0 {
			return nil, fmt.Errorf("%s:%d: a second document begins here; write all settings in one", path, line)
		}
		for _, pair := range body.Values {
			if err := readPair(path, pair, known, values); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

func readPair(path string, pair *ast.MappingValueNode, known []setting, values map[string]value) error {
	key := pair.Key.GetToken()
	source := fmt.Sprintf("%s:%d", path, key.Position.Line)
	if !isKnown(known, key.Value) {
		return fmt.Errorf("%s: %q is no setting; write one of %s", source, key.Value, names(known))
	}
	switch pair.Value.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		values[key.Value] = value{text: pair.Value.GetToken().Value, source: source, dir: filepath.Dir(path)}
		return nil
	default:
		return fmt.Errorf("%s: %s has no plain value; write one value on the same line, or leave the setting out", source, key.Value)
	}
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes; write settings only", path, maxFile)
	}
	return text, nil
}

func syntaxError(path string, err error) error {
	var located yaml.Error
	if errors.As(err, &located) && located.GetToken() != nil {
		return fmt.Errorf("%s:%d: %s; write one setting a line, as name: value", path, located.GetToken().Position.Line, located.GetMessage())
	}
	return fmt.Errorf("%s: %w; write one setting a line, as name: value", path, err)
}

func isKnown(known []setting, name string) bool {
	for _, s := range known {
		if s.name == name {
			return true
		}
	}
	return false
}

func names(known []setting) string {
	var list []string
	for _, s := range known {
		list = append(list, s.name)
	}
	return strings.Join(list, ", ")
}
