package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// testRebuild makes all rows again from the journal and gets the same bytes. (ST-24)
func testRebuild(t *testing.T, open Opener) {
	s, ok := open(t, Options{}).(Rebuilder)
	if !ok {
		t.Fatal("this store cannot rebuild its rows")
	}
	k := new(Kit)
	var made action.Action
	for _, m := range action.Moves[1:] {
		made = k.Make(t, s, func(c *Claim) {
			c.Action.Target.Private = []string{"10.0.0.0/8"}
			c.Action.KeyLife, c.Action.Digests.Resource = time.Hour, "r"+string(m.Name)
		}, append(pathTo(m), m.Name)...)
	}
	if err := s.Commit(context.Background(), func(tx store.Tx) error {
		return tx.Append(action.Event{ID: k.event(), Kind: action.ContentReadKind, Action: made.ID,
			ReadBody: &action.ContentRead{Reader: "process:uid=0", Why: "because", Kinds: []string{"operation", "answer"}}})
	}); err != nil {
		t.Fatal(err)
	}
	a, p := k.ask(t, s, nil)
	mustCommit(t, s, k.Decision(p, "ada", action.Approve), k.allows(a, p), k.Voids(p, "revoked"))
	k.ask(t, s, func(p *action.Approval) { p.Rule = action.AsksRun })
	mustCommit(t, s, action.Event{ID: k.event(), Kind: action.RunRevoked, Run: a.Run, RevokedBody: &action.Revocation{ID: "apr_revocation"}})
	before := s.Rows(t)
	if err := s.Rebuild(context.Background()); err != nil {
		t.Fatalf("rebuild: %v", err)
	}
	if after := s.Rows(t); after != before {
		t.Errorf("rebuilt rows differ:\n%s", firstDifference(before, after))
	}
	Histories(t, s)
	rebuildAmongOthers(t, s, k)
}

// rebuildAmongOthers lets changes wait for the same commit as a rebuild, before it and after it.
func rebuildAmongOthers(t *testing.T, s Rebuilder, k *Kit) {
	holding, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Commit(context.Background(), func(store.Tx) error { close(holding); <-release; return nil })
	})
	<-holding
	for i := range 20 {
		all.Go(func() {
			if i%5 == 0 {
				if err := s.Rebuild(context.Background()); err != nil {
					t.Errorf("a rebuild among other changes: %v", err)
				}
				return
			}
			k.Make(t, s, nil, action.T3, action.T11, action.T12)
		})
	}
	time.Sleep(10 * time.Millisecond) // so that most of them wait; the test holds without it
	close(release)
	all.Wait()
	Histories(t, s)
	before := s.Rows(t)
	if err := s.Rebuild(context.Background()); err != nil || s.Rows(t) != before {
		t.Errorf("after a rebuild among other changes the rows were not those of the journal (%v)", err)
	}
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-200)
	return "before …" + a[from:min(len(a), i+200)] + "\nafter …" + b[from:min(len(b), i+200)]
}
