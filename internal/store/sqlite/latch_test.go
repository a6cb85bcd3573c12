package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/storetest"
)

func openAt(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{Origin: "test.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// wantLatched makes sure that the next change and all after it are refused, with the cause.
func wantLatched(t *testing.T, s *Store, cause string) {
	t.Helper()
	k := new(storetest.Kit)
	for i := range 3 {
		err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(k.Run())) })
		if !errors.Is(err, store.ErrLatched) || !strings.Contains(err.Error(), cause) {
			t.Errorf("change %d: %v, want a latch for %q", i+1, err, cause)
		}
	}
	if err := s.Later(func(store.Tx) error { return nil }); !errors.Is(err, store.ErrLatched) {
		t.Errorf("a later change: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := s.Commit(context.Background(), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrLatched) && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a change after the close: %v", err)
	}
}

// reopened opens the directory again and makes sure that what was acknowledged is there.
func reopened(t *testing.T, dir string, want action.Action) {
	t.Helper()
	s := openAt(t, dir)
	if got := storetest.Get(t, s, want.ID); got.State != want.State {
		t.Errorf("%s is %s after a restart, want %s", want.ID, got.State, want.State)
	}
	storetest.Histories(t, s)
	new(storetest.Kit).Make(t, s, nil, action.T3)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFullDiskLatches lets SQLite find no more pages, which it reports as it reports a full disk.
func TestAFullDiskLatches(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	k := new(storetest.Kit)
	a := k.Make(t, s, nil, action.T3)
	if _, err := s.write.conn.ExecContext(t.Context(), `pragma max_page_count = 1`); err != nil {
		t.Fatal(err)
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		_, err := tx.PutPayload(store.Answer, "result_1", make([]byte, 1<<20))
		if err == nil {
			t.Error("a payload found room on a full disk")
		}
		return nil // a change cannot overlook it
	})
	if !errors.Is(err, store.ErrLatched) || !strings.Contains(err.Error(), "no space is left") {
		t.Errorf("on a full disk: %v", err)
	}
	wantLatched(t, s, "no space is left")
	reopened(t, dir, a)
}

// TestASecondWriterOfTheJournalLatches: a record that somebody else put in our place is an error and never silence, and
// nothing of our change is kept. (DB-08)
func TestASecondWriterOfTheJournalLatches(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	k := new(storetest.Kit)
	k.Make(t, s, nil)
	_, err := s.write.conn.ExecContext(t.Context(), `insert into journal select seq + 1, x'0202020202020202020202020202020202020202020202020202020202020202', x'0101010101010101010101010101010101010101010101010101010101010101', body
		from journal order by seq desc limit 1`)
	if err != nil {
		t.Fatal(err)
	}
	run := k.Run()
	err = s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) })
	if !errors.Is(err, store.ErrLatched) {
		t.Errorf("a taken place: %v", err)
	}
	if _, err := s.Run(context.Background(), run.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the row without its record: %v", err)
	}
	wantLatched(t, s, "write the journal")
	if s, err := Open(t.Context(), dir, Options{}); err == nil {
		s.Close()
		t.Error("a forked journal was opened for writing")
	}
}

// TestAChangeThatEndsItsGoroutineLatches: t.FailNow inside a change must not leave everybody waiting.
func TestAChangeThatEndsItsGoroutineLatches(t *testing.T) {
	s := openAt(t, t.TempDir())
	err := s.Commit(context.Background(), func(store.Tx) error { runtime.Goexit(); return nil })
	if !errors.Is(err, store.ErrLatched) {
		t.Errorf("the change that ended the committer: %v", err)
	}
	wantLatched(t, s, "ended the committer")
}
