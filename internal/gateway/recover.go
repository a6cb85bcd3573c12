package gateway

import (
	"context"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Recover takes up what an earlier process left behind. It runs before the doors open: whatever was sent and has no
// recorded outcome becomes unknown, and then goes by its class. What may be sent again is sent in the background, under
// its old identity and with its recorded bytes; the rest waits for evidence or for a person.
//
// Actions that were never sent stay as they are: nobody is attached to them, and the next call carries them on.
func (g *Gateway) Recover(ctx context.Context) (found int, err error) {
	for _, state := range []action.State{action.Dispatched, action.Unknown} {
		open, err := g.openIn(ctx, state)
		if err != nil {
			return found, err
		}
		for _, act := range open {
			if act, err = g.orphaned(ctx, act); err != nil {
				return found, err
			}
			found++
			if act.Recovery == action.Reconciling {
				f := g.flights.join(act.ID, func(f *flight) { g.fly(f, act, nil) })
				g.flights.leave(f, nil)
			}
		}
	}
	return found, nil
}

// orphaned marks an action as unknown if it was left dispatched.
func (g *Gateway) orphaned(ctx context.Context, act action.Action) (action.Action, error) {
	if act.State != action.Dispatched {
		return act, nil
	}
	err := g.store.Commit(ctx, func(tx store.Tx) error {
		now, err := tx.Action(act.ID)
		if err != nil {
			return err
		}
		act, err = g.ready(tx, now)
		return err
	})
	return act, err
}

// openIn lists all actions in a state, page by page.
func (g *Gateway) openIn(ctx context.Context, state action.State) ([]action.Action, error) {
	const page = 500
	var all []action.Action
	q := store.Query{States: []action.State{state}, Limit: page}
	for {
		some, err := g.store.Actions(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < page {
			return all, nil
		}
		q.Before = some[len(some)-1].ID
	}
}
