// Package verifier_test runs the tests of the JavaScript verifier, and holds it against the Go one.
package verifier_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// node runs a script with Node, and fails the test when Node is missing or the script fails.
func node(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the second verifier needs Node: run scripts/needs: %v", err)
	}
	readScripts(t)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %v: %v\n%s%s", args, err, out, complaint.Bytes())
	}
	return out
}

// readScripts reads what Node will read, since go test takes a result from its cache when no file that it saw has changed.
func readScripts(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"*.mjs", "test/*.mjs", "../docs/vectors/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v, %v, want files", pattern, files, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// AU-05, DOC-13: the vectors, and what the C2SP documents say, in a second implementation.
func TestJavaScript(t *testing.T) {
	files, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("got test files %v, %v, want some", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			node(t, nil, "--test", file)
		})
	}
}
