// Package layout_test holds the table of who may import whom, and reads the files themselves to see whether it is kept.
package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "deed.dev/deed/"

// layer is one line of the table: the packages that a pattern names, and which of our packages they may import. A
// pattern that ends in /... names a folder and all below it. The first line that fits counts.
type layer struct {
	packages string
	sees     string // patterns; "*" is everything
	pure     bool   // values and a time go in, values come out
	suite    bool   // made for tests: it may import testing, and only tests may import it
}

// A package that no line names fails the test: decide first where it belongs.
var layers = []layer{
	// The nouns and the rules know nobody.
	{packages: "internal/action", pure: true},
	{packages: "internal/canonical", pure: true},
	{packages: "internal/ladder", sees: "internal/action", pure: true},
	{packages: "internal/atomicfile", sees: ""},
	{packages: "internal/dirlock"},
	{packages: "internal/digest", sees: "internal/action internal/atomicfile internal/canonical"},
	{packages: "internal/contract", sees: "internal/action internal/canonical"},
	{packages: "internal/identity", sees: "internal/action internal/atomicfile"},
	{packages: "internal/sealed", sees: "internal/atomicfile"},
	{packages: "internal/vault/agefile", sees: "internal/atomicfile"},
	{packages: "internal/vault", sees: "internal/action internal/vault/agefile"},
	{packages: "internal/argseal", sees: "internal/action internal/atomicfile"},
	{packages: "internal/approval", sees: "internal/action internal/canonical"},
	{packages: "internal/config"},
	{packages: "internal/crashpoint"},
	{packages: "internal/telemetry", sees: "internal/action"},
	{packages: "journal"},
	{packages: "verifier"},

	// Executors see the operation and the credential, never the records.
	{packages: "internal/executor/executortest", sees: "internal/action internal/vault", suite: true},
	{packages: "internal/executor/...", sees: "internal/action internal/vault"},

	// Stores keep records and decide nothing.
	{packages: "internal/store", sees: "internal/action"},
	{packages: "internal/store/storetest", sees: "internal/action journal internal/store/...", suite: true},
	{packages: "internal/store/...", sees: "internal/action internal/sealed journal internal/store internal/store/eventlog"},

	// A probe asks a target outside the line, and reaches executors through an interface of its own.
	{packages: "internal/probe", sees: "internal/action internal/canonical internal/contract internal/digest"},

	// What is handed to those who verify the journal, and the key that signs for it.
	{packages: "internal/logkey", sees: "internal/atomicfile journal"},
	{packages: "internal/audit", sees: "internal/action internal/atomicfile internal/logkey internal/store journal"},

	// The line sees the rules and the store, and reaches executors and credentials through interfaces of its own.
	{packages: "internal/gateway", sees: "internal/action internal/approval internal/contract internal/crashpoint internal/digest internal/ladder internal/store internal/telemetry"},
	{packages: "internal/gateway/rig", sees: "*", suite: true},

	// The read side sees the journal and nothing that was made from it.
	{packages: "internal/graph", sees: "internal/action internal/approval internal/store/eventlog journal", pure: true},

	// Checkpoints leave the gateway. A witness is on the other side of it, and needs none.
	{packages: "internal/witness", sees: "internal/atomicfile internal/dirlock journal"},
	{packages: "internal/anchor", sees: "internal/atomicfile journal"},
	{packages: "internal/anchor/anchortest", sees: "internal/anchor journal", suite: true},
	{packages: "internal/anchor/places", sees: "internal/anchor internal/vault journal"},

	// Front doors decode, call the gateway through a small interface of their own, and encode.
	{packages: "internal/mcpserver", sees: "internal/action internal/identity"},
	{packages: "internal/restapi", sees: "internal/action internal/identity"},
	{packages: "internal/operator", sees: "internal/action internal/audit internal/identity"},
	{packages: "internal/console", sees: "internal/action internal/identity"},
	{packages: "internal/receiptpage", sees: "verifier"},

	// Only the program, the lab and the benchmarks see it all.
	{packages: "cmd/deed", sees: "*"},
	{packages: "lab/...", sees: "*"},
	{packages: "bench/...", sees: "*"},
}

// homes say where a library may be used, so that its types do not spread.
var homes = map[string]string{
	"database/sql":                           "internal/store/... internal/executor/sqlexec lab/... bench/...",
	"modernc.org/sqlite":                     "internal/store/sqlite lab/... bench/...",
	"github.com/modelcontextprotocol/go-sdk": "internal/mcpserver internal/gateway/rig cmd/deed lab/... bench/...",
	"github.com/spf13/cobra":                 "cmd/deed",
	"golang.org/x/crypto/chacha20poly1305":   "internal/sealed",
	"filippo.io/age":                         "internal/vault/agefile",
	"golang.org/x/oauth2":                    "internal/vault",
	"github.com/minio/minio-go":              "internal/anchor/places",
	"cel.dev/cel-go":                         "internal/contract",
	"go.opentelemetry.io/otel":               "internal/telemetry",
	"github.com/prometheus":                  "internal/telemetry",
	"github.com/go-webauthn/webauthn":        "internal/approval internal/console",
}

func TestWhoMayImportWhom(t *testing.T) {
	for _, f := range sources(t) {
		l, ok := layerOf(f.dir)
		if !ok {
			t.Errorf("%s: the table has no line for package %s", f.path, f.dir)
			continue
		}
		if f.isTest {
			continue // tests see it all
		}
		for _, imported := range f.imports() {
			ours, isOurs := strings.CutPrefix(imported, module)
			target, _ := layerOf(ours)
			switch {
			case !isOurs:
				for library, home := range homes {
					if under(imported, library) && !matches(home, f.dir) {
						t.Errorf("%s imports %s, which belongs in %s", f.path, imported, home)
					}
				}
			case l.sees != "*" && !matches(l.sees, ours):
				t.Errorf("%s imports %s; %s may see: %s", f.path, ours, l.packages, l.sees)
			case target.suite && !l.suite:
				t.Errorf("%s imports %s, which is for tests only", f.path, ours)
			}
			if imported == "testing" && !l.suite {
				t.Errorf("%s imports testing and is no test", f.path)
			}
		}
	}
}

// The pure packages read no clock and touch nothing outside. The nouns and rules themselves need no library either, and
// make no identifier.
func TestPurePackagesAreClosed(t *testing.T) {
	for _, f := range sources(t) {
		l, _ := layerOf(f.dir)
		if !l.pure || f.isTest {
			continue
		}
		for _, imported := range f.imports() {
			for _, outside := range []string{"os", "net", "database", "syscall", "io/fs", "log", "crypto/rand", "math/rand"} {
				if under(imported, outside) {
					t.Errorf("%s imports %s and is to be pure", f.path, imported)
				}
			}
			if host, _, _ := strings.Cut(imported, "/"); f.dir == "internal/action" && strings.Contains(host, ".") {
				t.Errorf("%s imports %s; it may use the standard library only", f.path, imported)
			}
		}
		f.selectors(func(x, name string, at token.Position) {
			if x == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc"}, name) {
				t.Errorf("%s:%d uses time.%s; the time is an argument here", f.path, at.Line, name)
			}
		})
	}
}

// A secret is opened in the last line before it is sent, and nowhere else.
func TestSecretsAreOpenedInExecutorsOnly(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest || matches("internal/executor/... internal/vault internal/anchor/places", f.dir) {
			continue
		}
		f.selectors(func(_, name string, at token.Position) {
			if name == "Reveal" {
				t.Errorf("%s:%d opens a secret", f.path, at.Line)
			}
		})
	}
}

// Content is opened for people by the gateway, which records that first. A reader that needs no gateway stays sealed. (AU-27)
func TestReadersStaySealed(t *testing.T) {
	for _, f := range sources(t) {
		l, _ := layerOf(f.dir)
		if f.isTest || l.suite {
			continue
		}
		f.selectors(func(_, name string, at token.Position) {
			if name == "Unseal" {
				t.Errorf("%s:%d opens content without a record of it", f.path, at.Line)
			}
		})
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string]int{}
	for _, f := range sources(t) {
		if f.isTest {
			continue
		}
		comments[f.dir] += 0
		if f.ast.Doc == nil {
			continue
		}
		comments[f.dir]++
		if name := f.ast.Name.Name; name != "main" && !strings.HasPrefix(f.ast.Doc.Text(), "Package "+name+" ") {
			t.Errorf("%s: the package comment does not begin with Package %s", f.path, name)
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want 1", dir, n)
		}
	}
}

// Every place where the lab may stop is in the code, under its constant, so that none is armed in vain.
func TestCrashPointsAreInPlace(t *testing.T) {
	placed := map[string]bool{}
	declared := map[string]bool{}
	for _, f := range sources(t) {
		switch {
		case f.isTest:
		case f.path == "internal/crashpoint/doc.go":
			for _, name := range f.constants() {
				declared[name] = true
			}
		default:
			f.selectors(func(x, name string, _ token.Position) {
				if x == "crashpoint" && name != "Here" && name != "Names" {
					placed[name] = true
				}
			})
		}
	}
	if len(declared) == 0 {
		t.Error("no place is declared")
	}
	for name := range declared {
		if !placed[name] {
			t.Errorf("crashpoint.%s is nowhere in the code", name)
		}
	}
}

// source is one Go file of the module, whatever its build tags.
type source struct {
	path, dir string // below the root, with slashes
	isTest    bool
	ast       *ast.File
	files     *token.FileSet
}

func (f source) imports() []string {
	var list []string
	for _, spec := range f.ast.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			list = append(list, name)
		}
	}
	return list
}

func (f source) constants() []string {
	var list []string
	for _, decl := range f.ast.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					list = append(list, name.Name)
				}
			}
		}
	}
	return list
}

// selectors calls see with each x.name of the file; x is "" when it is no plain name.
func (f source) selectors(see func(x, name string, at token.Position)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, _ := s.X.(*ast.Ident)
			if x == nil {
				x = &ast.Ident{}
			}
			see(x.Name, s.Sel.Name, f.files.Position(s.Pos()))
		}
		return true
	})
}

// sources parses every file of the module. Folders that the go command skips, and modules of their own, are left out.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			skipped := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules"
			if p != "." && (skipped || err == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		p = filepath.ToSlash(p)
		if path.Ext(name) != ".go" || path.Dir(p) == "." {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, p, nil, parser.ParseComments)
		list = append(list, source{p, path.Dir(p), strings.HasSuffix(name, "_test.go"), file, files})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d files were found; this test has to run in the root of the repository", len(list))
	}
	return list
}

func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if matches(l.packages, dir) {
			return l, true
		}
	}
	return layer{}, false
}

// matches reports whether one of the patterns names the package.
func matches(patterns, dir string) bool {
	for _, pattern := range strings.Fields(patterns) {
		if folder, ok := strings.CutSuffix(pattern, "/..."); (ok && under(dir, folder)) || dir == pattern {
			return true
		}
	}
	return false
}

func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
