//go:build unix

// Windows has no modes: a directory there inherits its rights.

package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFilesAreForTheOwnerAlone looks at the modes while the store is open.
func TestFilesAreForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data with ? and % and #")
	s, err := Open(t.Context(), dir, Options{Origin: "test.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v (%v)", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%d files (%v), want deed.db, its WAL, the index of that, the content keys and the lock", len(entries), err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
}
