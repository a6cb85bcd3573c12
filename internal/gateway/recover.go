package gateway

import (
	"context"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Recover takes up what an earlier process left behind. It runs before the doors open: whatever was sent and has no
// recorded outcome becomes unknown, and then goes by its class. What may be sent again is sent in the background, under
// its old identity and with its recorded bytes; the rest waits for evidence or for a person.
//
// Actions that were never sent stay as they are: nobody is attached to them, and the next call carries them on.
func (g *Gateway) Recover(ctx context.Context) (found int, err error) {
	if err := g.findMattering(ctx); err != nil {
		return 0, err
	}
	sent, err := g.openIn(ctx, action.Dispatched)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(sent, orphansAtOnce) {
		if err := g.orphans(ctx, some); err != nil {
			return 0, err
		}
	}
	open, err := g.openIn(ctx, action.Unknown)
	if err != nil {
		return 0, err
	}
	g.reconcile(open[:min(len(open), sideBySide)])
	if rest := open[min(len(open), sideBySide):]; len(rest) > 0 {
		go g.reconcile(rest)
	}
	return len(open), nil
}

const orphansAtOnce = 200 // in one commit: a start with many orphans must not wait for a sync for each

// orphans marks actions as unknown that were left dispatched.
func (g *Gateway) orphans(ctx context.Context, ids []action.ID) error {
	return g.store.Commit(ctx, func(tx store.Tx) error {
		for _, id := range ids {
			act, err := tx.Action(id)
			if err == nil {
				_, err = g.ready(tx, act)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Run takes up, from time to time, what is still unknown and can be found out, until ctx ends. Nobody has to call for it.
func (g *Gateway) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(g.every):
		}
		open, err := g.openIn(ctx, action.Unknown)
		if err != nil {
			g.log.Error("open actions could not be read", "error", err)
			continue
		}
		g.reconcile(open)
	}
}

// sideBySide is how many unknown actions are worked on at a time, so that many of them do not starve those who call now.
const sideBySide = 8

// reconcile starts work on unknown actions. It returns when all of it has begun, or deed is stopping.
func (g *Gateway) reconcile(ids []action.ID) {
	turn := make(chan struct{}, sideBySide)
	for _, id := range ids {
		act, err := g.store.Action(g.ctx, id)
		if err != nil || act.State != action.Unknown || act.Recovery != action.Reconciling || until(act) > 0 {
			continue
		}
		select {
		case turn <- struct{}{}:
		case <-g.ctx.Done():
			return
		}
		if !g.enter() {
			return
		}
		f := g.flights.join(act.ID, func(f *flight) { g.fly(f, act, nil) })
		g.flights.leave(f, nil)
		go func() { <-f.done; <-turn; g.work.Done() }()
	}
}

// openIn lists the actions in a state.
func (g *Gateway) openIn(ctx context.Context, state action.State) ([]action.ID, error) {
	const page = 10_000 // each page is sorted anew
	var ids []action.ID
	q := store.Query{States: []action.State{state}, Limit: page}
	for {
		some, err := g.store.Actions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, act := range some {
			ids = append(ids, act.ID)
		}
		if len(some) < page {
			return ids, nil
		}
		q.Before = some[len(some)-1].ID
	}
}

// findMattering lists the older contract versions whose actions a call may still repeat: those of open actions, and of
// finished ones whose answer is not known to have arrived.
func (g *Gateway) findMattering(ctx context.Context) error {
	g.mattering = map[string][]string{}
	for _, c := range g.contracts.Tools() {
		versions, err := g.store.OpenContracts(ctx, c.Tool)
		if err != nil {
			return err
		}
		recent, err := g.store.Actions(ctx, store.Query{Tool: c.Tool, Limit: 500})
		if err != nil {
			return err
		}
		for _, act := range recent {
			if act.State.Final() && act.Delivery != action.Delivered && time.Since(act.FinishedAt) < act.AttachFor {
				versions = append(versions, act.Contract)
			}
		}
		slices.Sort(versions)
		g.mattering[c.Tool] = slices.DeleteFunc(slices.Compact(versions), func(d string) bool { return d == c.Digest })
	}
	return nil
}
