//go:build unix

// What Windows does not allow cannot happen there: an open file is neither removed nor replaced.

package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/storetest"
)

// TestRemovedFilesLatch, number 6 of the format's tests (AU-15): a commit into a file that no name leads to would be lost with the process.
func TestRemovedFilesLatch(t *testing.T) {
	for _, c := range []struct {
		cause string
		harm  func(t *testing.T, dir string)
	}{
		{"deed.db was removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "deed.db"))) }},
		{"deed.db-wal was removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "deed.db-wal"))) }},
		{"deed.lock was removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "deed.lock"))) }},
		{"deed.db was cut from ", func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "deed.db"), 0)) }},
		{"deed.db-wal was cut from ", func(t *testing.T, dir string) {
			info, err := os.Stat(filepath.Join(dir, "deed.db-wal"))
			must(t, err)
			must(t, os.Truncate(filepath.Join(dir, "deed.db-wal"), info.Size()-1)) // a single byte of the newest commit
		}},
		{"was removed", func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".moved")) }},
		{"deed.db was replaced", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "deed.db")
			must(t, os.Rename(path, path+".old"))
			must(t, os.WriteFile(path, nil, 0o600))
		}},
	} {
		t.Run(c.cause, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s := openAt(t, dir)
			new(storetest.Kit).Make(t, s, nil, action.T3)
			c.harm(t, dir)
			wantLatched(t, s, c.cause)
		})
	}
}

// TestAReplacedStoreIsLeftAlone: closing the old store must not take the files of the new one with it, though SQLite
// deletes a WAL by its name.
func TestAReplacedStoreIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	old := openAt(t, dir)
	new(storetest.Kit).Make(t, old, nil, action.T3)
	for _, name := range []string{"deed.db", "deed.db-wal", "deed.db-shm", "deed.lock"} {
		must(t, os.Remove(filepath.Join(dir, name)))
	}
	s := openAt(t, dir)
	a := new(storetest.Kit).Make(t, s, nil, action.T3)
	wantLatched(t, old, "was replaced") // and closes it
	for _, name := range []string{"deed.db", "deed.db-wal", "deed.lock"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("after the old store was closed: %v", err)
		}
	}
	new(storetest.Kit).Make(t, s, nil, action.T3)
	must(t, s.Close())
	reopened(t, dir, a)
}

// TestWhoeverWaitsIsToldOfTheLatch: all changes of the batch and of the queue get the error, none is acknowledged.
func TestWhoeverWaitsIsToldOfTheLatch(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	k := new(storetest.Kit)
	const waiters = 600 // more than one batch
	told := make(chan error, waiters)
	holding, release := make(chan struct{}), make(chan struct{})
	go s.Commit(context.Background(), func(store.Tx) error { close(holding); <-release; return nil })
	<-holding
	for range waiters {
		go func() {
			told <- s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(k.Run())) })
		}()
	}
	must(t, os.Remove(filepath.Join(dir, "deed.db")))
	close(release)
	for range waiters {
		if err := <-told; !errors.Is(err, store.ErrLatched) {
			t.Fatalf("a waiter was told %v", err)
		}
	}
}
