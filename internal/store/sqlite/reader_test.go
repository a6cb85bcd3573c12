package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

// TestAReaderOfItsOwn reads beside the holder and after it, and changes nothing.
func TestAReaderOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.OpenReader(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there is no store: %v", err)
	}
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		t.Fatal(err)
	}
	k := new(storetest.Kit)
	first := k.Make(t, s, nil, action.T3)
	r, err := sqlite.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Get(t, r, first.ID)
	second := k.Make(t, s, nil, action.T3)
	storetest.Get(t, r, second.ID) // what was committed since
	storetest.Histories(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	before := read(t, dir)
	r, err = sqlite.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Histories(t, r)
	if got, err := r.Actions(context.Background(), store.Query{}); err != nil || len(got) != 2 {
		t.Errorf("%d actions (%v), want 2", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, dir), before) {
		t.Error("reading changed the file")
	}
}

func TestACancelledReaderStops(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Actions(ctx, store.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled query: %v", err)
	}
	stop := errors.New("enough")
	if err := s.Records(context.Background(), 0, func(int64, [32]byte, []byte) error { return stop }); err != stop {
		t.Errorf("the caller's own error came back as %v", err)
	}
}
