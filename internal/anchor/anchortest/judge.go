package anchortest

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Program builds a program of the module tools/judges, which nobody here wrote, and returns its path in the build cache,
// where the next test finds it. A test fails without it; it never skips.
func Program(t testing.TB, name string) (path string) {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the place of this file is not known")
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-C", filepath.Join(filepath.Dir(here), "../../../tools/judges"), "-n", name)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, said.Bytes())
	}
	return strings.TrimSpace(string(out))
}
