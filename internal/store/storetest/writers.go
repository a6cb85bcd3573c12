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

// randomMoves is the model of the state machine against 16 writers who pick moves at random, legal or not, from what they
// read at some earlier time or just now. Whatever they manage, each history is legal and makes the row, and every move
// that was acknowledged stands in the journal. (ST-17)
func randomMoves(t *testing.T, s store.Store, k *Kit) {
	acknowledged := map[action.EventID]bool{}
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		actions := make([]action.Action, 3)
		for i := range actions {
			m := rapid.SampledFrom(action.Moves[1:]).Draw(rt, "begin before")
			actions[i] = k.Make(t, s, nil, pathTo(m)...)
		}
		plans := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawPlan), 1, 4), 16, 16).Draw(rt, "plans")
		done := make(chan []action.EventID, 16*4)
		var all sync.WaitGroup
		for _, own := range plans {
			all.Go(func() {
				for _, p := range own {
					done <- p.try(t, s, k, actions[p.of%len(actions)].ID)
				}
			})
		}
		all.Wait()
		close(done)
		for events := range done {
			for _, id := range events {
				acknowledged[id] = true
			}
			if len(events) == 0 {
				refused++
			}
		}
	})
	seen := map[action.Transition]int{}
	for _, records := range Histories(t, s) {
		for _, rec := range records {
			delete(acknowledged, rec.Event.ID)
			if m := rec.Event.MoveBody; m != nil {
				seen[m.Transition]++
			}
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged moves are not in the journal", len(acknowledged))
	}
	if len(seen) < len(action.Moves)-1 || refused == 0 {
		t.Errorf("only %d of %d moves were made, and %d changes refused: %v", len(seen), len(action.Moves)-1, refused, seen)
	}
}

// plan is what one writer wants to do in one change.
type plan struct {
	of    int
	moves []int
	fresh bool // read the action in the change, not before it
	legal bool // pick among the moves that the state read allows
}

func drawPlan(t *rapid.T) plan {
	return plan{
		of:    rapid.IntRange(0, 2).Draw(t, "action"),
		moves: rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 3).Draw(t, "moves"),
		fresh: rapid.Bool().Draw(t, "fresh"),
		legal: rapid.IntRange(0, 3).Draw(t, "legal") > 0,
	}
}

// try makes the moves in one change and gives the events that were acknowledged.
func (p plan) try(t testing.TB, s store.Store, k *Kit, id action.ID) (events []action.EventID) {
	read := Get(t, s, id)
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		for i, n := range p.moves {
			if p.fresh || i > 0 {
				a, err := tx.Action(id)
				if err != nil {
					return err
				}
				read = a
			}
			ev := k.Move(read, p.pick(read.State, n))
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

func (p plan) pick(from action.State, n int) action.Transition {
	var choice []action.Transition
	for _, m := range action.Moves {
		if m.From == from || !p.legal {
			choice = append(choice, m.Name)
		}
	}
	if len(choice) == 0 { // nothing leads out of this state
		return action.Moves[n%len(action.Moves)].Name
	}
	return choice[n%len(choice)]
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
