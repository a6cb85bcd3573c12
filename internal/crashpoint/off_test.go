//go:build !crashpoint

package crashpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The environment of the lab means nothing to a normal build.
func TestNormalBuildDoesNotStop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reached")
	t.Setenv("DEED_CRASH_AT", AfterEffect)
	t.Setenv("DEED_CRASH_SELF", "1")
	t.Setenv("DEED_CRASH_FILE", file)
	for _, name := range Names {
		Here(name)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a normal build wrote %s (stat: %v)", file, err)
	}
}

// The compiler sees an empty function of cost zero, so that a place costs nothing where it is called.
func TestNormalBuildCompilesPlacesAway(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m=2", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if want := "can inline Here with cost 0 "; !strings.Contains(string(out), want) {
		t.Errorf("the compiler says\n%s\nwant %q in it", out, want)
	}
}

// The tests of the other build run with the ordinary ones.
func TestLabBuild(t *testing.T) {
	out, err := exec.Command("go", "test", "-tags=crashpoint", "-count=1", ".").CombinedOutput()
	if err != nil {
		t.Errorf("go test -tags=crashpoint: %v\n%s", err, out)
	}
}
