package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testClaims(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"OneOfFiftyWinsAKey", oneWinsAKey},
		{"AnAttachedKeyStaysWithItsAction", attachedKey},
		{"OneSuccessorForAnAction", oneSuccessor},
		{"EqualActionsAreFoundOpenOnesFirst", equalActions},
		{"UnknownActionsAreFoundByEffectAndResource", unknownActions},
		{"WhatIsNotThereIsNotFound", notFound},
		{"AChangeSeesWhatItWrote", ownWrites},
	})
}

// oneWinsAKey claims one key from 50 goroutines, none of which looks first. (RM-19)
func oneWinsAKey(t *testing.T, s store.Store, k *Kit) {
	run := k.Run()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	won := make(chan action.ID, 50)
	for range 50 {
		all.Go(func() {
			c := k.Claim(run)
			c.Intent.IdemKey = "one key"
			err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Accepted(c)...) })
			switch {
			case err == nil:
				won <- c.Action.ID
			case !errors.Is(err, store.ErrStale):
				t.Errorf("a lost claim says %v", err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d claims won the key, want 1", len(won))
	}
	winner := <-won
	view(t, s, func(tx store.Tx) {
		if a, err := tx.ActionByIdemKey("one key"); err != nil || a.ID != winner {
			t.Errorf("the key finds %s (%v), want %s", a.ID, err, winner)
		}
	})
	if n := len(Histories(t, s)); n != 1 {
		t.Errorf("%d actions, want 1", n)
	}
}

// view looks at what a change would see.
func view(t testing.TB, s store.Store, look func(tx store.Tx)) {
	t.Helper()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { look(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

// attachedKey attaches calls to an action with keys of their own. Such a key finds that action from then on, but a call that
// was held or refused gives its key to nobody.
func attachedKey(t *testing.T, s store.Store, k *Kit) {
	first, other := k.Make(t, s, nil, action.T3), k.Make(t, s, nil, action.T3)
	see := func(kind action.EventKind, a action.Action, key string) error {
		ev := action.Event{ID: k.event(), Kind: kind, Run: a.Run, Action: a.ID, Call: action.CallID(k.ID(action.CallPrefix)),
			CallBody: &action.CallSeen{Actor: a.Actor, IdemKey: key}}
		return s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) })
	}
	if err := see(action.CallHeld, other, "a key"); err != nil {
		t.Fatal(err)
	}
	view(t, s, func(tx store.Tx) {
		if a, err := tx.ActionByIdemKey("a key"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the key of a held call finds %s (%v)", a.ID, err)
		}
	})
	if err := see(action.CallAttached, first, "a key"); err != nil {
		t.Fatal(err)
	}
	view(t, s, func(tx store.Tx) {
		if a, err := tx.ActionByIdemKey("a key"); err != nil || a.ID != first.ID {
			t.Errorf("the key of an attached call finds %s (%v), want %s", a.ID, err, first.ID)
		}
	})
	Histories(t, s)
}

func oneSuccessor(t *testing.T, s store.Store, k *Kit) {
	first := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	second := k.Make(t, s, func(c *Claim) { c.Action.Repeats = first.ID })
	c := k.Claim(k.Run())
	c.Action.Repeats = first.ID
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		if err := tx.Append(k.Started(c.Run)); err != nil {
			return err
		}
		return tx.Append(k.Accepted(c)...)
	})
	if !errors.Is(err, store.ErrStale) {
		t.Errorf("a second successor: %v", err)
	}
	view(t, s, func(tx store.Tx) {
		if a, err := tx.ActionRepeating(first.ID); err != nil || a.ID != second.ID {
			t.Errorf("%s is repeated by %s (%v), want %s", first.ID, a.ID, err, second.ID)
		}
		if a, err := tx.ActionByRepeatToken(first.RepeatToken); err != nil || a.ID != first.ID {
			t.Errorf("the token finds %s (%v), want %s", a.ID, err, first.ID)
		}
	})
}

func equalActions(t *testing.T, s store.Store, k *Kit) {
	equal := func(c *Claim) { c.Action.Digests.Fingerprint = "hmac-sha256:one" }
	var done []action.ID
	for range 22 {
		done = append(done, k.Make(t, s, equal, action.T3, action.T11, action.T12).ID)
	}
	older := k.Make(t, s, equal, action.T3).ID
	twin := k.Make(t, s, func(c *Claim) { c.Action.Digests.Fingerprint = "hmac-sha256:two" }, action.T4).ID
	last := k.Make(t, s, equal, action.T5).ID
	k.Make(t, s, nil, action.T3)
	slices.Reverse(done)

	want := append([]action.ID{twin, older, last}, done...)[:20]
	view(t, s, func(tx store.Tx) {
		got, err := tx.ActionsByFingerprint([]string{"hmac-sha256:one", "hmac-sha256:none", "hmac-sha256:two", "hmac-sha256:one", ""})
		if err != nil || !slices.Equal(ids(got), want) {
			t.Errorf("got  %v (%v)\nwant %v", ids(got), err, want)
		}
		if got, err := tx.ActionsByFingerprint(nil); err != nil || len(got) != 0 {
			t.Errorf("no fingerprint finds %v (%v)", ids(got), err)
		}
	})
}

func unknownActions(t *testing.T, s store.Store, k *Kit) {
	touching := func(effect, resource string) func(*Claim) {
		return func(c *Claim) { c.Action.Digests.Effect, c.Action.Digests.Resource = effect, resource }
	}
	lost := []action.Transition{action.T3, action.T11, action.T16}
	first := k.Make(t, s, touching("e1", "r1"), lost...).ID
	second := k.Make(t, s, touching("e1", ""), lost...).ID
	third := k.Make(t, s, touching("e2", "r1"), lost...).ID
	k.Make(t, s, touching("e1", "r1"), action.T3, action.T11)             // still running
	k.Make(t, s, touching("e1", "r1"), append(lost[:3:3], action.T20)...) // settled

	actor := Actor.String()
	view(t, s, func(tx store.Tx) {
		for _, q := range []struct {
			name string
			find func(string, []string) ([]action.Action, error)
			by   []string
			want []action.ID
		}{
			{"effect e1", tx.UnknownByEffect, []string{"e1"}, []action.ID{first, second}},
			{"either effect", tx.UnknownByEffect, []string{"e2", "e1"}, []action.ID{first, second, third}},
			{"no effect", tx.UnknownByEffect, []string{"e3", ""}, []action.ID{}},
			{"resource", tx.UnknownByResource, []string{"r1"}, []action.ID{first, third}},
			{"no resource", tx.UnknownByResource, []string{""}, []action.ID{}},
		} {
			if got, err := q.find(actor, q.by); err != nil || !slices.Equal(ids(got), q.want) {
				t.Errorf("%s finds %v (%v), want %v", q.name, ids(got), err, q.want)
			}
			if got, err := q.find("process:somebody else", q.by); err != nil || len(got) > 0 {
				t.Errorf("%s finds %v of another principal (%v)", q.name, ids(got), err)
			}
		}
	})
}

func notFound(t *testing.T, s store.Store, k *Kit) {
	ctx := context.Background()
	view(t, s, func(tx store.Tx) {
		_, e1 := tx.RunByKey("none")
		_, e2 := tx.Action("act_none")
		_, e3 := tx.ActionByIdemKey("none")
		_, e4 := tx.ActionByRepeatToken("")
		_, e5 := tx.ActionRepeating("")
		_, _, e6 := tx.Place("act_none")
		for i, err := range []error{e1, e2, e3, e4, e5, e6} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("question %d of a change: %v", i+1, err)
			}
		}
	})
	_, e1 := s.Action(ctx, "act_none")
	_, e2 := s.Intent(ctx, "int_none")
	_, e3 := s.Run(ctx, "run_none")
	_, _, e4 := s.Result(ctx, "result_none")
	_, e5 := s.Payload(ctx, store.Answer, "result_none")
	_, e6 := s.ContractText(ctx, "none")
	_, e7 := s.Actions(ctx, store.Query{Before: "act_none"})
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("question %d of a reader: %v", i+1, err)
		}
	}
}

func ownWrites(t *testing.T, s store.Store, k *Kit) {
	c := k.Claim(k.Run())
	c.Action.Digests.Resource = "r"
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		if err := tx.Append(append([]action.Event{k.Started(c.Run)}, k.Accepted(c)...)...); err != nil {
			return err
		}
		if run, err := tx.RunByKey(c.Run.Key); err != nil || run.ID != c.Run.ID {
			t.Errorf("the run's key finds %s (%v)", run.ID, err)
		}
		if a, err := tx.ActionByIdemKey(c.Intent.IdemKey); err != nil || a.ID != c.Action.ID {
			t.Errorf("the key finds %s (%v)", a.ID, err)
		}
		first, _, err := tx.Place(c.Action.ID)
		if err != nil {
			t.Errorf("place: %v", err)
		}
		if err := k.Bring(tx, c.Action.ID, action.T3, action.T11, action.T16); err != nil {
			return err
		}
		if seq, _, err := tx.Place(c.Action.ID); err != nil || seq != first+3 {
			t.Errorf("the newest of four events stands at %d (%v), the first at %d", seq, err, first)
		}
		if a, err := tx.UnknownByResource(c.Action.Actor, []string{"r"}); err != nil || len(a) != 1 {
			t.Errorf("the unknown action is not found: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	records := Histories(t, s)[c.Action.ID]
	view(t, s, func(tx store.Tx) {
		last := records[len(records)-1]
		if seq, hash, err := tx.Place(c.Action.ID); err != nil || seq != last.Seq || hash != last.Hash.String() {
			t.Errorf("place %d %s (%v), want %d %s", seq, hash, err, last.Seq, last.Hash)
		}
	})
}
