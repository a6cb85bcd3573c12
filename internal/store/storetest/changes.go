package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

var errChangedMind = errors.New("the change changed its mind")

func testChanges(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"AFailedChangeLeavesNoTrace", failedChange},
		{"ARefusedEventDropsTheChange", swallowedRefusal},
		{"APanicIsTheCallersError", panics},
		{"ChangesOfABatchStandApart", batch},
		{"LaterIsDoneInOrder", later},
		{"ACancelledWaitNeverBegins", cancelled},
		{"AClosedStoreRefuses", closed},
		{"AChangeIsOverWhenItReturns", escaped},
	})
	t.Run("AFullQueueRefusesAtOnce", func(t *testing.T) { t.Parallel(); full(t, open(t, Options{QueueLimit: 8}), new(Kit)) })
}

// failedChange writes rows, records and a payload and then fails: none of them is there. (ST-26)
func failedChange(t *testing.T, s store.Store, k *Kit) {
	before := len(Journal(t, s))
	c := k.Claim(k.Run())
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		if _, err := tx.PutPayload(store.Arguments, string(c.Intent.ID), []byte("{}")); err != nil {
			return err
		}
		if err := tx.PutContract("sha256:c", "t", []byte("x")); err != nil {
			return err
		}
		if err := tx.Append(append([]action.Event{k.Started(c.Run)}, k.Accepted(c)...)...); err != nil {
			return err
		}
		return fmt.Errorf("after all that: %w", errChangedMind)
	})
	if !errors.Is(err, errChangedMind) {
		t.Errorf("the change's error came back as %v", err)
	}
	ctx := context.Background()
	_, e1 := s.Action(ctx, c.Action.ID)
	_, e2 := s.Run(ctx, c.Run.ID)
	_, e3 := s.Intent(ctx, c.Intent.ID)
	_, e4 := s.Payload(ctx, store.Arguments, string(c.Intent.ID))
	_, e5 := s.ContractText(ctx, "sha256:c")
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("trace %d of a failed change: %v", i+1, err)
		}
	}
	if after := len(Journal(t, s)); after != before {
		t.Errorf("the journal grew from %d to %d records", before, after)
	}
	k.Make(t, s, nil, action.T3)
	Histories(t, s)
}

// swallowedRefusal: whoever overlooks that an event was refused does not get the rest of the change.
func swallowedRefusal(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil)
	c := k.Claim(k.Run())
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		_ = tx.Append(append([]action.Event{k.Started(c.Run)}, k.Accepted(c)...)...)
		_ = tx.Append(k.Move(a, action.T12))
		_ = tx.Append(k.Move(a, action.T3))
		return nil
	})
	if !Refused(err) {
		t.Errorf("a change with a refused event: %v", err)
	}
	if after := Get(t, s, a.ID); !same(a, after) {
		t.Errorf("it still moved the action to %+v", after)
	}
	if _, err := s.Action(context.Background(), c.Action.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it still made an action: %v", err)
	}
	Histories(t, s)
}

func panics(t *testing.T, s store.Store, k *Kit) {
	c := k.Claim(k.Run())
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		if err := tx.Append(append([]action.Event{k.Started(c.Run)}, k.Accepted(c)...)...); err != nil {
			return err
		}
		panic("a bug in the change")
	})
	if err == nil || errors.Is(err, store.ErrLatched) {
		t.Errorf("a change that panics: %v", err)
	}
	if _, err := s.Action(context.Background(), c.Action.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it left an action: %v", err)
	}
	k.Make(t, s, nil, action.T3)
	Histories(t, s)
}

// batch makes good, failing and panicking changes wait for one commit, and only the good ones are there after it.
func batch(t *testing.T, s store.Store, k *Kit) {
	run := k.Run()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		t.Fatal(err)
	}
	holding, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Commit(context.Background(), func(store.Tx) error { close(holding); <-release; return nil })
	})
	<-holding
	claims := make([]Claim, 30)
	for i := range claims {
		claims[i] = k.Claim(run)
		all.Go(func() {
			err := s.Commit(context.Background(), func(tx store.Tx) error {
				if err := tx.Append(k.Accepted(claims[i])...); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return errChangedMind
				case 2:
					panic("on purpose")
				}
				return k.Bring(tx, claims[i].Action.ID, action.T3)
			})
			if (err == nil) != (i%3 == 0) {
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	close(release)
	all.Wait()
	if n := len(Histories(t, s)); n != 10 {
		t.Errorf("%d actions, want 10", n)
	}
}

func later(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	deliver := func(from, to action.Delivery) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.Append(action.Event{ID: k.event(), Kind: action.ActionDelivery, Action: a.ID, DeliveryBody: &action.DeliveryMoved{From: from, To: to}})
		}
	}
	for _, change := range []func(store.Tx) error{
		deliver(action.DeliveryPending, action.DeliveryInterrupted),
		func(store.Tx) error { return errChangedMind },
		deliver(action.DeliveryInterrupted, action.DeliveryUnconfirmed),
	} {
		if err := s.Later(change); err != nil {
			t.Fatal(err)
		}
	}
	view(t, s, func(store.Tx) {}) // whoever waits comes after them
	if got := Get(t, s, a.ID).Delivery; got != action.DeliveryUnconfirmed {
		t.Errorf("delivery %s, want unconfirmed", got)
	}

	if err := s.Later(deliver(action.DeliveryUnconfirmed, action.Delivered)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); Get(t, s, a.ID).Delivery != action.Delivered; {
		if time.Now().After(deadline) {
			t.Fatal("a change that nobody waits for is never made")
		}
		time.Sleep(time.Millisecond)
	}
}

func cancelled(t *testing.T, s store.Store, k *Kit) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Commit(gone, func(store.Tx) error { t.Error("a cancelled change ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled change: %v", err)
	}
	holding, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Commit(context.Background(), func(tx store.Tx) error {
			close(holding)
			<-release
			return tx.Append(k.Started(k.Run()))
		})
	}()
	<-holding
	waiting, cancel := context.WithCancel(context.Background())
	second := make(chan error, 1)
	go func() {
		second <- s.Commit(waiting, func(store.Tx) error { t.Error("a change ran whose caller had left"); return nil })
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a change that waited: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the change under way: %v", err)
	}
	if n := len(Journal(t, s)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func closed(t *testing.T, s store.Store, k *Kit) {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	if err := s.Commit(context.Background(), func(store.Tx) error { return nil }); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("commit: %v", err)
	}
	if err := s.Later(func(store.Tx) error { return nil }); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("later: %v", err)
	}
}

func escaped(t *testing.T, s store.Store, k *Kit) {
	var kept store.Tx
	view(t, s, func(tx store.Tx) { kept = tx })
	if err := kept.Append(k.Started(k.Run())); err == nil {
		t.Error("an event was appended after its change was over")
	}
	if _, err := kept.PutPayload(store.Answer, "r", nil); err == nil {
		t.Error("a payload was kept after its change was over")
	}
	if _, err := kept.Action("act_1"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a question was answered after its change was over: %v", err)
	}
}

func full(t *testing.T, s store.Store, k *Kit) {
	holding, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Commit(context.Background(), func(store.Tx) error { close(holding); <-release; return nil })
	}()
	<-holding
	// Changes that nobody waits for get half of the room: evidence must not crowd out what callers wait for.
	for i := range 4 {
		if err := s.Later(func(store.Tx) error { return nil }); err != nil {
			t.Fatalf("change %d of 4 that nobody waits for: %v", i+1, err)
		}
	}
	if err := s.Later(func(store.Tx) error { t.Error("a refused change ran"); return nil }); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more that nobody waits for: %v", err)
	}
	waiting := make(chan error, 5)
	for range 5 { // four find room
		go func() { waiting <- s.Commit(context.Background(), func(store.Tx) error { return nil }) }()
	}
	if err := <-waiting; !errors.Is(err, store.ErrFull) {
		t.Errorf("the fifth of five for four places: %v", err)
	}
	begun := time.Now()
	if err := s.Commit(context.Background(), func(store.Tx) error { t.Error("a refused change ran"); return nil }); !errors.Is(err, store.ErrFull) {
		t.Errorf("commit: %v", err)
	}
	if err := s.Later(func(store.Tx) error { t.Error("a refused change ran"); return nil }); !errors.Is(err, store.ErrFull) {
		t.Errorf("later: %v", err)
	}
	if waited := time.Since(begun); waited > 5*time.Second {
		t.Errorf("the refusal took %s", waited)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	for range 4 {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
	k.Make(t, s, nil) // there is room again
}
