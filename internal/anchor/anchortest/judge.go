package anchortest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Programs builds programs of the module tools/judges, which nobody here wrote, and returns their folder. A test fails
// without them; it never skips.
func Programs(t testing.TB, packages ...string) string {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the place of this file is not known")
	}
	dir := t.TempDir()
	args := append([]string{"build", "-C", filepath.Join(filepath.Dir(here), "../../../tools/judges"), "-o", dir + string(os.PathSeparator)}, packages...)
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return dir
}
