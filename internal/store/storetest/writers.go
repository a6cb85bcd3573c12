package storetest

import (
	"context"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"pgregory.net/rapid"
)

func testWriters(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"OneOfSixteenMovesAnAction", oneMoves},
		{"RandomMovesStayLegal", randomMoves},
		{"TheJournalHasNoGap", noGap},
	})
}

// oneMoves lets 16 writers dispatch one authorized action, each sure of what it read before.
func oneMoves(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3)
	var all sync.WaitGroup
	won := make(chan error, 16)
	for range 16 {
		all.Go(func() {
			ev := k.Move(a, action.T11)
			won <- s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) })
		})
	}
	all.Wait()
	close(won)
	winners := 0
	for err := range won {
		switch {
		case err == nil:
			winners++
		case !Refused(err):
			t.Errorf("a loser is told %v", err)
		}
	}
	if winners != 1 {
		t.Errorf("%d writers dispatched one action", winners)
	}
	if got, err := s.Attempts(context.Background(), a.ID); err != nil || len(got) != 1 {
		t.Errorf("%d attempts (%v), want 1", len(got), err)
	}
	Histories(t, s)
}

// randomMoves is the model of the state machine against 16 writers who pick moves at random, from what they read at some
// earlier time or just now. Whatever they manage, each history is legal and makes the row, and every move that was
// acknowledged stands in the journal once. (ST-17)
func randomMoves(t *testing.T, s store.Store, k *Kit) {
	var names []action.Transition
	for _, m := range action.Moves {
		names = append(names, m.Name)
	}
	acknowledged := map[action.EventID]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		actions := make([]action.Action, 3)
		for i := range actions {
			actions[i] = k.Make(t, s, nil)
		}
		plans := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) plan {
			return plan{
				of:    rapid.IntRange(0, len(actions)-1).Draw(rt, "action"),
				moves: rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(rt, "moves"),
				fresh: rapid.Bool().Draw(rt, "read again"),
			}
		}), 1, 4), 16, 16).Draw(rt, "plans")
		done := make(chan action.EventID, 1000)
		var all sync.WaitGroup
		for _, own := range plans {
			all.Go(func() {
				for _, p := range own {
					for _, id := range p.try(s, k, actions[p.of]) {
						done <- id
					}
				}
			})
		}
		all.Wait()
		close(done)
		for id := range done {
			acknowledged[id] = true
		}
	})
	for _, records := range Histories(t, s) {
		for _, rec := range records {
			delete(acknowledged, rec.Event.ID)
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged moves are not in the journal", len(acknowledged))
	}
}

// plan is what one writer wants to do in one change.
type plan struct {
	of    int
	moves []action.Transition
	fresh bool
}

// try makes the moves in one change and gives the events that were acknowledged.
func (p plan) try(s store.Store, k *Kit, read action.Action) (events []action.EventID) {
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		for _, m := range p.moves {
			if p.fresh {
				a, err := tx.Action(read.ID)
				if err != nil {
					return err
				}
				read = a
			}
			ev := k.Move(read, m)
			events = append(events, ev.ID)
			if err := tx.Append(ev); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return events
}

// noGap lets 64 writers append at once, a third of them in vain. (AU-23)
func noGap(t *testing.T, s store.Store, k *Kit) {
	const writers, changes = 64, 8
	run := k.Run()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range changes {
				c := k.Claim(run)
				err := s.Commit(context.Background(), func(tx store.Tx) error {
					if err := tx.Append(k.Accepted(c)...); err != nil {
						return err
					}
					if (w+i)%3 == 0 {
						return errChangedMind
					}
					return nil
				})
				if ((w+i)%3 == 0) != (err != nil) {
					t.Errorf("writer %d, change %d: %v", w, i, err)
				}
			}
		})
	}
	all.Wait()
	want := 0
	for w := range writers {
		for i := range changes {
			if (w+i)%3 != 0 {
				want++
			}
		}
	}
	if got := len(Histories(t, s)); got != want {
		t.Errorf("%d actions, want %d", got, want)
	}
	if got := len(Journal(t, s)); got != 2+3*want {
		t.Errorf("%d records, want %d", got, 2+3*want)
	}
}
