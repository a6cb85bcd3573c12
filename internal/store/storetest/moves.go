package storetest

import (
	"context"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testMoves(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"EveryLegalMoveIsTaken", everyLegalMove},
		{"EveryOtherMoveIsRefused", everyOtherMove},
		{"EventsThatContradictThemselvesAreRefused", contradictions},
		{"AnActionWithoutAPlaceIsRefused", noPlace},
	})
}

// pathTo is a way to a state in which the transition can start.
func pathTo(m action.Move) []action.Transition {
	if m.Name == action.T22 { // only an action that was never sent may be tried again
		return []action.Transition{action.T3, action.T11, action.T15}
	}
	return Paths()[m.From]
}

// everyLegalMove makes each move of the table once. (ST-17)
func everyLegalMove(t *testing.T, s store.Store, k *Kit) {
	for _, m := range action.Moves[1:] {
		a := k.Make(t, s, nil, append(pathTo(m), m.Name)...)
		if a.State != m.To {
			t.Errorf("%s ends in %s, want %s", m.Name, a.State, m.To)
		}
	}
	Histories(t, s)
}

// everyOtherMove tries each move in each state where the table does not have it. (ST-17, ST-10)
func everyOtherMove(t *testing.T, s store.Store, k *Kit) {
	for state, path := range Paths() {
		before := k.Make(t, s, nil, path...)
		if before.State != state {
			t.Fatalf("%v leads to %s, want %s", path, before.State, state)
		}
		for _, m := range action.Moves {
			if m.From == state && m.Name != action.T22 {
				continue
			}
			err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Move(before, m.Name)) })
			if err == nil {
				t.Fatalf("%s was taken in %s", m.Name, state)
			}
			if m.Name != action.T1 && !Refused(err) {
				t.Errorf("%s in %s: %v, which is neither stale nor an illegal move", m.Name, state, err)
			}
			if after := Get(t, s, before.ID); !same(before, after) {
				t.Fatalf("%s was refused in %s and still changed\n%+v\nto\n%+v", m.Name, state, before, after)
			}
		}
	}
	Histories(t, s)
}

func contradictions(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3)
	other := k.Make(t, s, nil, action.T3, action.T11)
	for name, change := range map[string]func(*action.Event){
		"another state in the kind": func(ev *action.Event) { ev.Kind = action.MovedTo(action.Completed) },
		"two bodies":                func(ev *action.Event) { ev.DeliveryBody = &action.DeliveryMoved{} },
		"no body":                   func(ev *action.Event) { ev.MoveBody = nil },
		"no id":                     func(ev *action.Event) { ev.ID = "" },
		"no action":                 func(ev *action.Event) { ev.Action = "" },
		"no such action":            func(ev *action.Event) { ev.Action = "act_none" },
		"another run":               func(ev *action.Event) { ev.Run = other.Run },
		"another action's attempt":  func(ev *action.Event) { ev.MoveBody.Started.Action = other.ID },
		"no attempt":                func(ev *action.Event) { ev.MoveBody.Started = nil },
		"a number left out":         func(ev *action.Event) { ev.MoveBody.Started.Number = 2 },
		"an old attempt":            func(ev *action.Event) { ev.MoveBody.FromAttempt = 1 },
		"another time":              func(ev *action.Event) { ev.Time = a.UpdatedAt.AddDate(1, 0, 0) },
		"text that is not UTF-8":    func(ev *action.Event) { ev.MoveBody.Reason = "\xff" },
	} {
		ev := k.Move(a, action.T11)
		change(&ev)
		err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(ev) })
		if err == nil {
			t.Errorf("an event with %s was taken", name)
		}
	}
	if after := Get(t, s, a.ID); !same(a, after) {
		t.Errorf("refused events changed the action to %+v", after)
	}
	Histories(t, s)
}

// noPlace: an event that does not say where its action goes proves nothing. (HT-03)
func noPlace(t *testing.T, s store.Store, k *Kit) {
	for name, change := range map[string]func(*action.Action){
		"host":     func(a *action.Action) { a.Target.Host = "" },
		"port":     func(a *action.Action) { a.Target.Port = 0 },
		"protocol": func(a *action.Action) { a.Target.Scheme = "" },
	} {
		run := k.Run()
		c := k.Claim(run)
		change(&c.Action)
		err := s.Commit(context.Background(), func(tx store.Tx) error {
			if err := tx.Append(k.Started(run)); err != nil {
				return err
			}
			return tx.Append(k.Accepted(c)...)
		})
		if err == nil {
			t.Errorf("an action without a %s was taken", name)
		}
	}
	if n := len(Journal(t, s)); n != 1 {
		t.Errorf("the journal has %d records, want 1", n)
	}
}
