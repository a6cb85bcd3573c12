package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// testClock turns the wall clock back under a store.
func testClock(t *testing.T, open Opener) {
	var mu sync.Mutex
	wall := time.Date(2026, 10, 5, 10, 0, 0, 123456789, time.FixedZone("", 3600))
	set := func(to time.Time) {
		mu.Lock()
		defer mu.Unlock()
		wall = to
	}
	s, k := open(t, Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return wall
	}}), new(Kit)

	now := func() (at time.Time, back bool) {
		view(t, s, func(tx store.Tx) { at, back = tx.Now(), tx.ClockBack() })
		return at, back
	}
	start := wall.UTC().Truncate(time.Microsecond)
	if at, back := now(); !at.Equal(start) || at.Location() != time.UTC || back {
		t.Errorf("now is %s (back %t), want %s", at, back, start)
	}
	set(wall.Add(time.Hour))
	a := k.Make(t, s, nil)
	set(wall.Add(-2 * time.Hour))
	if at, back := now(); !at.Equal(a.UpdatedAt) || !back {
		t.Errorf("with the clock turned back now is %s (back %t), want %s", at, back, a.UpdatedAt)
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error { return k.Bring(tx, a.ID, action.T3) })
	if err != nil {
		t.Fatal(err)
	}
	if got := Get(t, s, a.ID).AuthorizedAt; !got.Equal(a.UpdatedAt) {
		t.Errorf("authorized at %s, before it was accepted at %s", got, a.UpdatedAt)
	}
	set(a.UpdatedAt.Add(time.Minute))
	if at, back := now(); !at.Equal(a.UpdatedAt.Add(time.Minute)) || back {
		t.Errorf("with the clock right again now is %s (back %t)", at, back)
	}
	Histories(t, s)
}
