package storetest

import (
	"context"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

// testRebuild makes all rows again from the journal and gets the same bytes. (ST-24)
func testRebuild(t *testing.T, open Opener) {
	s, ok := open(t, Options{}).(Rebuilder)
	if !ok {
		t.Fatal("this store cannot rebuild its rows")
	}
	k := new(Kit)
	for _, m := range action.Moves[1:] {
		k.Make(t, s, func(c *Claim) {
			c.Action.Target.Private = []string{"10.0.0.0/8"}
			c.Action.KeyLife, c.Action.Digests.Resource = time.Hour, "r"+string(m.Name)
		}, append(pathTo(m), m.Name)...)
	}
	before := s.Rows(t)
	if err := s.Rebuild(context.Background()); err != nil {
		t.Fatalf("rebuild: %v", err)
	}
	if after := s.Rows(t); after != before {
		t.Errorf("rebuilt rows differ:\n%s", firstDifference(before, after))
	}
	Histories(t, s)
	k.Make(t, s, nil, action.T3, action.T11, action.T12) // and life goes on
	Histories(t, s)
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-200)
	return "before …" + a[from:min(len(a), i+200)] + "\nafter …" + b[from:min(len(b), i+200)]
}
