package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deed.dev/deed/internal/store/sqlite"
	"golang.org/x/sys/unix"
)

// TestADirectoryOfSomebodyElse: the message says what to do. The test gives up its rights over files, since root has all.
func TestADirectoryOfSomebodyElse(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "deed-store-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "data")
	if err := os.Mkdir(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with its rights
		if os.Getuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				got <- err
				return
			}
		}
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example"})
		if err == nil {
			s.Close()
		}
		got <- err
	}()
	if err := <-got; err == nil || !strings.Contains(err.Error(), "must belong to this user and be writable") {
		t.Errorf("got %v", err)
	}
}
