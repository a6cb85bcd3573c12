package crashpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// A place that is not listed in Names cannot be armed, and nobody would notice that the lab never stops there.
func TestNamesListsEveryPlace(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			return true
		}
		for _, spec := range decl.Specs {
			value, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, value)
		}
		return false
	})
	if !slices.Equal(places, Names) {
		t.Errorf("the constants are %v, and Names lists %v", places, Names)
	}
}
