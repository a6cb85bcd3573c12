package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testRecovery(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"AnOvertakenOwnerMovesNothing", fencing},
		{"AStaleReportIsKeptAndMovesNothing", staleReport},
		{"LeasesEnd", leases},
		{"ObservationsAreKept", observations},
		{"ADelegatedActionKeepsItsJob", delegated},
		{"DueOnesComeInOrder", due},
		{"TheVaultsWaitersStandApart", dueWhileLocked},
		{"WhatIsUnresolvedIsCounted", backlog},
		{"APersonSeesWhatWaitsAndWhatIsOverdue", forReview},
		{"OpenOnesAreCountedByState", openOnes},
		{"OneUndoCounts", oneUndo},
		{"AnAbandonedActionHoldsNobodyUp", abandoned},
		{"ARedoMayExceedTheBudget", redo},
		{"ContentIsErasedAndTheRecordStays", purged},
	})
}

var unknown = []action.Transition{action.T3, action.T11, action.T16}

// Observation is an event by which something is learned of an action.
func (k *Kit) Observation(a action.Action, kind action.EventKind, o action.Observed) action.Event {
	if o.ID == "" {
		o.ID = action.ObservationID(k.ID(action.ObservationPrefix))
	}
	if o.Number == 0 {
		o.Number = a.Observations + 1
	}
	if o.Kind == "" {
		o.Kind = action.ByLookup
	}
	o.Action = a.ID
	return action.Event{ID: k.event(), Kind: kind, Action: a.ID, ObservedBody: &o}
}

func commit(t testing.TB, s store.Store, events ...action.Event) error {
	t.Helper()
	return s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(events...) })
}

func mustCommit(t testing.TB, s store.Store, events ...action.Event) {
	t.Helper()
	if err := commit(t, s, events...); err != nil {
		t.Fatal(err)
	}
}

// fencing: every write of an owner carries the number that it held. (UN-18)
func fencing(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3)
	sent := k.Move(a, action.T11)
	sent.MoveBody.Owner = "own_1"
	mustCommit(t, s, sent)
	first := Get(t, s, a.ID)
	if first.Owner != "own_1" || first.Epoch != a.Epoch+1 {
		t.Fatalf("after a dispatch the owner is %q and the epoch %d", first.Owner, first.Epoch)
	}
	taken := k.Move(first, action.T16)
	taken.MoveBody.FromEpoch, taken.MoveBody.Owner = first.Epoch, "own_2"
	mustCommit(t, s, taken)
	now := Get(t, s, a.ID)
	for _, tr := range []action.Transition{action.T17, action.T18, action.T19, action.T20, action.T21} {
		late := k.Move(now, tr)
		late.MoveBody.FromEpoch = first.Epoch
		if err := commit(t, s, late); !Refused(err) {
			t.Errorf("%s under an old fencing number: %v", tr, err)
		}
	}
	asks := k.Observation(now, action.ReconcileStarted, action.Observed{FromEpoch: first.Epoch, Owner: "own_1"})
	if err := commit(t, s, asks); !Refused(err) {
		t.Errorf("a question under an old fencing number: %v", err)
	}
	if after := Get(t, s, a.ID); !same(now, after) {
		t.Errorf("an overtaken owner changed the action to %+v", after)
	}
	Histories(t, s)
}

func staleReport(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	mustCommit(t, s, k.Observation(a, action.ActionObserved, action.Observed{FromEpoch: 41,
		Observation: action.Observation{Kind: action.ByStale, Certainty: action.EffectProven, Status: 201}}))
	after := Get(t, s, a.ID)
	if after.State != a.State || after.Finding != "" || after.Epoch != a.Epoch || after.Observations != 1 {
		t.Errorf("a stale report changed the action to %+v", after)
	}
	seen, err := s.Observations(context.Background(), a.ID)
	if err != nil || len(seen) != 1 || seen[0].Kind != action.ByStale || seen[0].Certainty != action.EffectProven {
		t.Errorf("observations are %+v, %v", seen, err)
	}
	if err := commit(t, s, k.Observation(a, action.ActionObserved, action.Observed{})); err == nil {
		t.Error("an observation about a completed action was taken")
	}
	Histories(t, s)
}

func leases(t *testing.T, s store.Store, _ *Kit) {
	alive := func(owner action.OwnerID) (is bool) {
		t.Helper()
		if err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
			is, err = tx.Alive(owner)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return is
	}
	lease := func(owner action.OwnerID, d time.Duration) {
		t.Helper()
		if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Lease(owner, d) }); err != nil {
			t.Fatal(err)
		}
	}
	if alive("own_1") {
		t.Error("an owner lives that never was")
	}
	lease("own_1", time.Hour)
	lease("own_2", time.Nanosecond)
	time.Sleep(2 * time.Millisecond)
	if !alive("own_1") || alive("own_2") {
		t.Errorf("own_1 lives: %t, own_2 lives: %t", alive("own_1"), alive("own_2"))
	}
	lease("own_2", time.Hour)
	if !alive("own_2") {
		t.Error("a renewed lease does not count")
	}
}

func observations(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, unknown...)
	id := action.ObservationID(k.ID(action.ObservationPrefix))
	started := k.Observation(a, action.ReconcileStarted, action.Observed{FromEpoch: a.Epoch, Owner: "own_1", Observation: action.Observation{ID: id, About: "att_1"}})
	mustCommit(t, s, started)
	now := Get(t, s, a.ID)
	if now.Epoch != a.Epoch+1 || now.Observations != 1 || now.Finding != "" {
		t.Fatalf("a planned question makes the action %+v", now)
	}
	var evidence action.Commitment
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	if err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
		if evidence, err = tx.PutPayload(store.Evidence, string(id), []byte("{}")); err != nil {
			return err
		}
		return tx.Append(k.Observation(now, action.ActionObserved, action.Observed{FromEpoch: now.Epoch, NotBefore: later, Observation: action.Observation{
			ID: id, Number: 1, About: "att_1", Finding: action.LookAlike, Status: 200, Remote: "192.0.2.1:443", Evidence: evidence, Ended: tx.Now()}}))
	}); err != nil {
		t.Fatal(err)
	}
	now = Get(t, s, a.ID)
	if now.Finding != action.LookAlike || !now.Hinted || !now.NotBefore.Equal(later) || now.State != action.Unknown {
		t.Errorf("what was learned makes the action %+v", now)
	}
	all, err := s.Observations(context.Background(), a.ID)
	if err != nil || len(all) != 1 || all[0].Finding != action.LookAlike || all[0].Started.IsZero() || all[0].Ended.IsZero() || all[0].About != "att_1" {
		t.Errorf("observations are %+v, %v", all, err)
	}
	if got, err := s.Payload(context.Background(), store.Evidence, string(id)); err != nil || string(got) != "{}" {
		t.Errorf("the evidence is %q, %v", got, err)
	}
	again := k.Observation(now, action.ActionObserved, action.Observed{FromEpoch: now.Epoch, Observation: action.Observation{ID: id, Number: 1, Finding: action.Found, Ended: later}})
	if err := commit(t, s, again); err == nil {
		t.Error("an answered question was answered again")
	}
	mustCommit(t, s, k.Move(now, action.T18)) // a new attempt: what was learned was about the others
	if now = Get(t, s, a.ID); now.Finding != "" || now.Hinted {
		t.Errorf("after a new attempt the finding is %q, hinted %t", now.Finding, now.Hinted)
	}
	Histories(t, s)
}

func delegated(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11)
	var job action.Commitment
	if err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
		if job, err = tx.PutPayload(store.Job, string(a.ID), []byte("j1")); err != nil {
			return err
		}
		return tx.Append(action.Event{ID: k.event(), Kind: action.ActionDelegated, Action: a.ID,
			DelegatedBody: &action.Delegated{FromAttempt: 1, Job: job, NotBefore: tx.Now()}})
	}); err != nil {
		t.Fatal(err)
	}
	now := Get(t, s, a.ID)
	if now.State != action.Dispatched || now.Job != job || !now.Delegated() {
		t.Errorf("a delegated action is %+v", now)
	}
	if got, err := s.Payload(context.Background(), store.Job, string(a.ID)); err != nil || string(got) != "j1" {
		t.Errorf("the job is %q, %v", got, err)
	}
	mustCommit(t, s, k.Observation(now, action.ActionObserved, action.Observed{Observation: action.Observation{Kind: action.ByPoll, Finding: action.Pending}}))
	if after := Get(t, s, a.ID); after.State != action.Dispatched || after.Finding != action.Pending {
		t.Errorf("after a poll it is %+v", after)
	}
	Histories(t, s)
}

func dueList(t *testing.T, s store.Store, q store.Due) []action.ID {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 10
	}
	got, err := s.Due(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func due(t *testing.T, s store.Store, k *Kit) {
	now := time.Now()
	at := func(d time.Duration) action.ID {
		a := k.Make(t, s, nil, unknown...)
		mustCommit(t, s, k.Observation(a, action.ActionObserved, action.Observed{NotBefore: now.Add(d)}))
		return a.ID
	}
	third, second, _ := at(-time.Minute), at(-time.Hour), at(time.Minute)
	first := k.Make(t, s, nil, unknown...).ID // never said when
	setBack := at(1000 * time.Hour)
	k.Make(t, s, nil, action.T3, action.T11)             // its owner is at it
	k.Make(t, s, nil, action.T3, action.T11, action.T12) // settled
	review := k.Make(t, s, nil, unknown...)
	person := k.Move(review, action.T19)
	person.MoveBody.Recovery = action.ReviewRequired
	mustCommit(t, s, person)
	if got, want := dueList(t, s, store.Due{Now: now}), []action.ID{first, second, third, setBack}; !slices.Equal(got, want) {
		t.Errorf("due are %v, want %v", got, want)
	}
	if got := dueList(t, s, store.Due{Now: now, Limit: 2}); !slices.Equal(got, []action.ID{first, second}) {
		t.Errorf("the first two due are %v", got)
	}
	// What another owner that lives works on is not due for me.
	a := Get(t, s, first)
	mustCommit(t, s, k.Observation(a, action.ReconcileStarted, action.Observed{Owner: "own_other"}))
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Lease("own_other", time.Hour) }); err != nil {
		t.Fatal(err)
	}
	if got := dueList(t, s, store.Due{Now: now, For: "own_me", Limit: 1}); !slices.Equal(got, []action.ID{second}) {
		t.Errorf("due for me are %v", got)
	}
	if got := dueList(t, s, store.Due{Now: now, For: "own_other", Limit: 1}); !slices.Equal(got, []action.ID{first}) {
		t.Errorf("due for the owner are %v", got)
	}
}

func dueWhileLocked(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, unknown...)
	waits := k.Move(a, action.T19)
	waits.MoveBody.Reason = "vault_locked"
	mustCommit(t, s, waits)
	if got := dueList(t, s, store.Due{Now: time.Now(), Locked: true}); len(got) != 0 {
		t.Errorf("due with a locked vault are %v", got)
	}
	if got := dueList(t, s, store.Due{Now: time.Now()}); !slices.Equal(got, []action.ID{a.ID}) {
		t.Errorf("due with an open vault are %v", got)
	}
}

// backlog: age, count and kind of what is open can be read at any time. (UN-26)
func backlog(t *testing.T, s store.Store, k *Kit) {
	if got, err := s.Backlog(context.Background()); err != nil || got != (store.Backlog{}) {
		t.Fatalf("an empty store counts %+v, %v", got, err)
	}
	oldest := k.Make(t, s, nil, unknown...)
	review := k.Make(t, s, nil, unknown...)
	person := k.Move(review, action.T19)
	person.MoveBody.Recovery = action.ReviewRequired
	mustCommit(t, s, person)
	k.Make(t, s, nil, action.T3, action.T11, action.T12)
	got, err := s.Backlog(context.Background())
	want := store.Backlog{Reconciling: 1, Review: 1, Oldest: oldest.UnknownAt, OldestOf: oldest.ID}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("counted %+v, %v, want %+v", got, err, want)
	}
}

// forReview: what is unknown beyond the limit of its class, and what waits for a person, is listed, oldest first. (UN-26)
func forReview(t *testing.T, s store.Store, k *Kit) {
	limit := func(d time.Duration) func(*Claim) { return func(c *Claim) { c.Action.ReviewAfter = d } }
	asks := func(a action.Action, closed bool) {
		person := k.Move(a, action.T19)
		person.MoveBody.Recovery = action.ReviewRequired
		if closed {
			person.MoveBody.Review = &action.Review{ID: "apr_1", Decision: action.Abandon, Reviewer: "process:uid=0 exe=/usr/bin/deed", Why: "nobody will know"}
		}
		mustCommit(t, s, person)
	}
	late := k.Make(t, s, limit(time.Minute), unknown...)
	waits := k.Make(t, s, limit(time.Hour), unknown...)
	asks(waits, false)
	asks(k.Make(t, s, limit(time.Minute), unknown...), true)
	later := k.Make(t, s, limit(2*time.Minute), unknown...)
	k.Make(t, s, limit(time.Hour), unknown...)
	k.Make(t, s, limit(time.Minute), action.T3, action.T11)
	for _, c := range []struct {
		at      time.Time
		limit   int
		want    []action.ID
		overdue int
	}{
		{late.UnknownAt.Add(time.Minute - time.Microsecond), 10, []action.ID{waits.ID}, 0},
		{late.UnknownAt.Add(time.Minute), 10, []action.ID{late.ID, waits.ID}, 1},
		{later.UnknownAt.Add(2 * time.Minute), 10, []action.ID{late.ID, waits.ID, later.ID}, 2},
		{later.UnknownAt.Add(2 * time.Minute), 2, []action.ID{late.ID, waits.ID}, 2},
	} {
		got, err := s.ForReview(context.Background(), c.at, c.limit)
		if err != nil || !slices.Equal(ids(got), c.want) {
			t.Errorf("at %s, up to %d: %v, %v, want %v", c.at, c.limit, ids(got), err, c.want)
		}
		for _, a := range got {
			if a.Overdue(c.at) != (a.Recovery == action.Reconciling) {
				t.Errorf("at %s the rule and the list do not agree about %s", c.at, a.ID)
			}
		}
		if n, err := s.Overdue(context.Background(), c.at); err != nil || n != c.overdue {
			t.Errorf("at %s: %d overdue, %v, want %d", c.at, n, err, c.overdue)
		}
	}
	seq, hash, err := s.Place(context.Background(), waits.ID)
	if err != nil || seq <= 0 || len(hash) != 64 {
		t.Errorf("its place is %d %s, %v", seq, hash, err)
	}
	if _, _, err := s.Place(context.Background(), "act_none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the place of no action: %v", err)
	}
}

func openOnes(t *testing.T, s store.Store, k *Kit) {
	k.Make(t, s, nil, unknown...)
	k.Make(t, s, nil, unknown...)
	k.Make(t, s, nil, action.T3, action.T11)
	k.Make(t, s, nil, action.T3, action.T11, action.T12)
	got, err := s.Open(context.Background())
	if want := map[action.State]int{action.Unknown: 2, action.Dispatched: 1}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("open are %v, %v, want %v", got, err, want)
	}
}

// oneUndo: an action is compensated once, unless the compensation ended undecided. (UN-29)
func oneUndo(t *testing.T, s store.Store, k *Kit) {
	done := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	undo := func(c *Claim) { c.Action.Compensates = done.ID }
	gone := k.Make(t, s, undo, action.T3)
	cancel := k.Move(gone, action.T10)
	cancel.MoveBody.RejectReason = action.Cancelled
	mustCommit(t, s, cancel)
	first := k.Make(t, s, undo, action.T3)
	run := k.Run()
	c := k.Claim(run)
	undo(&c)
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		found, err := tx.ActionUndoing(done.ID)
		if err != nil || found.ID != first.ID {
			t.Errorf("found %s, %v, want %s", found.ID, err, first.ID)
		}
		if err := tx.Append(k.Started(run)); err != nil {
			return err
		}
		return tx.Append(k.Accepted(c)...)
	})
	if !errors.Is(err, store.ErrStale) {
		t.Errorf("a second compensation: %v", err)
	}
	Histories(t, s)
}

func abandoned(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, unknown...)
	close := k.Move(a, action.T19)
	close.MoveBody.Recovery = action.ReviewRequired
	close.MoveBody.Review = &action.Review{ID: "apr_1", Decision: action.Abandon, Reviewer: "process:uid=0 exe=/usr/bin/deed", Why: "nobody will know"}
	mustCommit(t, s, close)
	now := Get(t, s, a.ID)
	if now.State != action.Unknown || !now.Abandoned || now.Doubted {
		t.Errorf("a closed action is %+v", now)
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		found, err := tx.UnknownByEffect(a.Actor, []string{a.Digests.Effect})
		if len(found) != 0 {
			t.Errorf("it still holds others up: %v", ids(found))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	Histories(t, s)
}

func redo(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, func(c *Claim) { c.Action.MaxAttempts = 1 }, unknown...)
	again := k.Move(a, action.T18)
	if err := commit(t, s, again); err == nil {
		t.Fatal("an attempt beyond the budget was planned without a decision")
	}
	again = k.Move(a, action.T18)
	again.MoveBody.Review = &action.Review{ID: "apr_1", Decision: action.Redo, Reviewer: "process:uid=0 exe=/usr/bin/deed", Why: "asked the shop"}
	mustCommit(t, s, again)
	if now := Get(t, s, a.ID); now.State != action.Dispatched || now.Attempt != 2 || now.MaxAttempts != 2 {
		t.Errorf("after a redo it is %+v", now)
	}
	Histories(t, s)
}

func purged(t *testing.T, s store.Store, k *Kit) {
	keep := func(c *Claim) { c.Action.KeepResult = time.Hour }
	a := k.Make(t, s, keep, action.T3, action.T11, action.T12)
	k.Make(t, s, keep, unknown...) // never, while it is open
	expired := func(at time.Time) []action.ID { return Must(s.Expired(context.Background(), at, 10)) }
	if got := expired(a.FinishedAt.Add(time.Hour - time.Second)); len(got) != 0 {
		t.Errorf("kept long enough too early: %v", got)
	}
	if got := expired(a.FinishedAt.Add(1000 * time.Hour)); !slices.Equal(got, []action.ID{a.ID}) {
		t.Fatalf("kept long enough are %v", got)
	}
	event := func() action.Event {
		return action.Event{ID: k.event(), Kind: action.ActionPurged, Action: a.ID, PurgedBody: &action.Purged{Kept: time.Hour}}
	}
	if err := s.Commit(context.Background(), func(tx store.Tx) error {
		if _, err := tx.PutPayload(store.Answer, string(a.Result), []byte("secret")); err != nil {
			return err
		}
		if err := errors.Join(tx.Erase(store.Answer, string(a.Result)), tx.Erase(store.Job, "none")); err != nil {
			return err
		}
		return tx.Append(event())
	}); err != nil {
		t.Fatal(err)
	}
	if content, err := s.Payload(context.Background(), store.Answer, string(a.Result)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an erased payload is %q, %v", content, err)
	}
	now := Get(t, s, a.ID)
	if !now.Purged || now.State != action.Completed || now.Digests != a.Digests || len(expired(time.Now().Add(1000*time.Hour))) != 0 {
		t.Errorf("after the erasure it is %+v", now)
	}
	if err := commit(t, s, event()); err == nil {
		t.Error("its content was erased twice")
	}
	Histories(t, s)
}
