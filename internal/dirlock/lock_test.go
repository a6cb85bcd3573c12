package dirlock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deed.dev/deed/internal/dirlock"
)

func TestOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := dirlock.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Hold(dir); !errors.Is(err, dirlock.ErrHeld) {
		t.Errorf("a second holder got %v, want ErrHeld", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		t.Errorf("the file of the lock is gone: %v", err)
	}
	again, err := dirlock.Hold(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	_ = again.Release()
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	if _, err := dirlock.Hold(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}
