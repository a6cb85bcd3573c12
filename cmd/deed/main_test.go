package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built holds the binaries under test: deed as users build it, and one with the places where a test may stop it.
var built struct{ deed, stoppable string }

func TestMain(m *testing.M) {
	os.Exit(withPrograms(m))
}

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "deed-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built.deed, built.stoppable = filepath.Join(dir, "plain", "deed"), filepath.Join(dir, "stoppable", "deed")
	for _, args := range [][]string{{"build", "-o", built.deed, "."}, {"build", "-tags", "crashpoint", "-o", built.stoppable, "."}} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go %s: %v\n%s", strings.Join(args, " "), err, out)
			return 1
		}
	}
	return m.Run()
}
