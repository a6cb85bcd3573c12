package storetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testRecords(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"TheWholeRecordIsReadBack", wholeRecord},
		{"AttemptsBelongToOneAction", attempts},
		{"ALaterMoveKeepsTheResult", keptResult},
		{"FailedHasAClassAndItsProof", failureClasses},
		{"DeliveryIsApartFromTheState", delivery},
		{"FieldsOfTheActivityRecord", activityRecord},
	})
}

func wholeRecord(t *testing.T, s store.Store, k *Kit) {
	c := k.Claim(k.Run())
	c.Run.Actor.Shared = true
	c.Action.Target.Private = []string{"10.0.0.0/8", "fd00::/8"}
	c.Action.KeyLife, c.Action.AttachFor = 23*time.Hour, 15*time.Minute
	c.Action.Digests.Resource, c.Action.Operation, c.Action.Similar = "hmac-sha256:r", "sha256-salted:00", "act_before"
	var now time.Time
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		now = tx.Now()
		return tx.Append(append([]action.Event{k.Started(c.Run)}, k.Accepted(c)...)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Run.Started, c.Intent.At = now, now
	c.Action.AcceptedAt, c.Action.UpdatedAt, c.Action.State, c.Action.Delivery = now, now, action.Accepted, action.DeliveryNone
	if got := Get(t, s, c.Action.ID); !same(got, c.Action) {
		t.Errorf("action\n%+v\nwant\n%+v", got, c.Action)
	}
	ctx := context.Background()
	if got, err := s.Run(ctx, c.Run.ID); err != nil || got != c.Run {
		t.Errorf("run\n%+v (%v)\nwant\n%+v", got, err, c.Run)
	}
	if got, err := s.Intent(ctx, c.Intent.ID); err != nil || got != c.Intent {
		t.Errorf("intent\n%+v (%v)\nwant\n%+v", got, err, c.Intent)
	}
	if got, err := s.Attempts(ctx, c.Action.ID); err != nil || len(got) != 0 {
		t.Errorf("attempts %+v (%v)", got, err)
	}
}

// attempts: the record gives each attempt in order, and an attempt of one action can neither be ended for another nor
// planned twice. (EX-15)
func attempts(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11)
	other := k.Make(t, s, nil, action.T3, action.T11)
	ctx := context.Background()
	first := one(t, s, a.ID)

	stolen := k.Move(other, action.T16)
	stolen.MoveBody.Ended = &action.Attempt{ID: first.ID, State: action.AttemptTimeout}
	if err := s.Commit(ctx, func(tx store.Tx) error { return tx.Append(stolen) }); !Refused(err) {
		t.Errorf("an attempt of %s was ended for %s: %v", a.ID, other.ID, err)
	}

	began := a.UpdatedAt.Add(time.Millisecond)
	back := k.Move(a, action.T14)
	back.MoveBody.Ended = &action.Attempt{ID: first.ID, Number: 1, State: action.AttemptNotSent, Certainty: action.NoEffectProven,
		BytesSent: 0, Reason: "refused", Remote: "192.0.2.1:443", Started: began, Ended: began.Add(time.Second)}
	err := s.Commit(ctx, func(tx store.Tx) error {
		if err := tx.Append(back); err != nil {
			return err
		}
		twice := k.Move(Must(tx.Action(a.ID)), action.T11)
		twice.MoveBody.Started.ID = first.ID
		return tx.Append(twice)
	})
	if !Refused(err) {
		t.Errorf("one attempt was planned twice: %v", err)
	}
	err = s.Commit(ctx, func(tx store.Tx) error {
		if err := tx.Append(back); err != nil {
			return err
		}
		again := k.Move(Must(tx.Action(a.ID)), action.T11)
		again.MoveBody.Started.RetryOf = first.ID
		return tx.Append(again)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Attempts(ctx, a.ID)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d attempts (%v), want 2", len(got), err)
	}
	want := *back.MoveBody.Ended
	want.Action, want.SpanID = a.ID, first.SpanID
	if got[0] != want || got[1].Number != 2 || got[1].RetryOf != first.ID || got[1].Action != a.ID || got[1].State != action.AttemptPrepared {
		t.Errorf("attempts\n%+v\nwant\n%+v and a second that follows it", got, want)
	}
}

// Must gives a value whose error means a broken test.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func one(t *testing.T, s store.Store, id action.ID) action.Attempt {
	t.Helper()
	got, err := s.Attempts(context.Background(), id)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d attempts of %s (%v), want 1", len(got), id, err)
	}
	return got[0]
}

// keptResult stores a result with a move to unknown, and then makes a move that brings none. (ST-16)
func keptResult(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11)
	lost := k.Move(a, action.T16)
	lost.MoveBody.Result = &action.StoredResult{ID: action.ResultID(k.ID(action.ResultPrefix)), MediaType: "text/plain", Size: 9}
	ctx := context.Background()
	if err := s.Commit(ctx, func(tx store.Tx) error { return tx.Append(lost) }); err != nil {
		t.Fatal(err)
	}
	before := Get(t, s, a.ID)
	if before.Result != lost.MoveBody.Result.ID {
		t.Fatalf("the result is %q, want %s", before.Result, lost.MoveBody.Result.ID)
	}
	if err := s.Commit(ctx, func(tx store.Tx) error { return k.Bring(tx, a.ID, action.T19) }); err != nil {
		t.Fatal(err)
	}
	after := Get(t, s, a.ID)
	if after.Result != before.Result || !after.UpdatedAt.After(before.UpdatedAt) {
		t.Errorf("after a move without a result: %q at %s, before it %q at %s", after.Result, after.UpdatedAt, before.Result, before.UpdatedAt)
	}
	if got, _, err := s.Result(ctx, before.Result); err != nil || got != *lost.MoveBody.Result {
		t.Errorf("result %+v (%v), want %+v", got, err, *lost.MoveBody.Result)
	}
}

// failureClasses: failed is never without its class and the attempt that proves it. (ST-27)
func failureClasses(t *testing.T, s store.Store, k *Kit) {
	for _, f := range []struct {
		class action.FailureClass
		path  []action.Transition
		last  action.Transition
		proof action.Attempt
	}{
		{action.NotSent, nil, action.T15, action.Attempt{State: action.AttemptNotSent, Certainty: action.NoEffectProven}},
		{action.RejectedByTarget, nil, action.T13, action.Attempt{State: action.AttemptRefused, Certainty: action.NoEffectProven, Status: 422, BytesSent: 311}},
		{action.NoEffectConfirmed, []action.Transition{action.T16}, action.T20, action.Attempt{State: action.AttemptTimeout, BytesSent: 418}},
	} {
		a := k.Make(t, s, nil, append([]action.Transition{action.T3, action.T11}, f.path...)...)
		planned := one(t, s, a.ID)
		classless := k.Move(a, f.last)
		classless.MoveBody.FailureClass = ""
		if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(classless) }); err == nil {
			t.Fatalf("%s failed without a class", a.ID)
		}
		ev := k.Move(a, f.last)
		f.proof.ID, f.proof.Number = planned.ID, planned.Number
		ev.MoveBody.Ended = &f.proof
		if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) }); err != nil {
			t.Fatal(err)
		}
		got, proof := Get(t, s, a.ID), one(t, s, a.ID)
		if got.State != action.Failed || got.FailureClass != f.class {
			t.Errorf("%s is %s (%s), want failed (%s)", a.ID, got.State, got.FailureClass, f.class)
		}
		if proof.State != f.proof.State || proof.Certainty != f.proof.Certainty || proof.BytesSent != f.proof.BytesSent || proof.Status != f.proof.Status {
			t.Errorf("the proof of %s is %+v, want %+v", f.class, proof, f.proof)
		}
	}
}

func delivery(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	deliver := func(from, to action.Delivery) error {
		ev := action.Event{ID: k.event(), Kind: action.ActionDelivery, Action: a.ID,
			DeliveryBody: &action.DeliveryMoved{From: from, To: to, Why: "handed_over"}}
		return s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) })
	}
	if err := deliver(action.DeliveryPending, action.DeliveryInterrupted); err != nil {
		t.Fatal(err)
	}
	if err := deliver(action.DeliveryPending, action.Delivered); !Refused(err) {
		t.Errorf("delivery from where it no longer is: %v", err)
	}
	if err := deliver(action.DeliveryInterrupted, action.Delivered); err != nil {
		t.Fatal(err)
	}
	if err := deliver(action.Delivered, action.DeliveryUnconfirmed); !Refused(err) {
		t.Errorf("a delivered answer was taken back: %v", err)
	}
	after := Get(t, s, a.ID)
	if after.State != action.Completed || after.Delivery != action.Delivered {
		t.Errorf("%s %s, want completed delivered", after.State, after.Delivery)
	}
	Histories(t, s)
}

// activityRecord asks for each field that an activity record has to hold. (ST-09)
func activityRecord(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11)
	ev := k.Move(a, action.T12)
	ev.MoveBody.Ended = &action.Attempt{ID: one(t, s, a.ID).ID, State: action.AttemptCompleted, Certainty: action.EffectProven, Status: 201, BytesSent: 9}
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) }); err != nil {
		t.Fatal(err)
	}
	r := Get(t, s, a.ID)
	for name, value := range map[string]any{
		"execution_id": r.ID, "fingerprint": r.Digests.Fingerprint, "tool": r.Tool, "actor": r.Actor, "target": r.Target.Host,
		"state": r.State, "accepted_at": r.AcceptedAt, "dispatched_at": r.DispatchedAt, "completed_at": r.FinishedAt,
		"target_status": r.TargetStatus, "result_reference": r.Result,
	} {
		if reflect.ValueOf(value).IsZero() {
			t.Errorf("the record holds no %s", name)
		}
	}
}
