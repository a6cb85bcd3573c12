package gateway

import (
	"context"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Recover takes up what an earlier process left behind. It runs before the doors open: whatever was sent by a process that
// is gone and has no recorded outcome becomes unknown, and then goes by its class, in the background, under its old
// identity and with its recorded bytes. What no evidence can settle waits for a person.
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
	left, err := g.store.Backlog(ctx)
	if err != nil {
		return 0, err
	}
	due, err := g.due(ctx, sideBySide)
	if err != nil {
		return 0, err
	}
	turn := make(chan struct{}, sideBySide)
	for _, id := range due {
		g.reconcile(ctx, id, turn)
	}
	go g.takeUp(g.ctx)
	return left.Reconciling + left.Review + left.Delegated, nil
}

const orphansAtOnce = 200 // in one commit: a start with many orphans must not wait for a sync for each

// orphans marks actions as unknown that were left dispatched by an owner that is gone.
func (g *Gateway) orphans(ctx context.Context, ids []action.ID) error {
	return g.store.Commit(ctx, func(tx store.Tx) error {
		for _, id := range ids {
			act, err := tx.Action(id)
			if err != nil {
				return err
			}
			if act.State != action.Dispatched || act.Job != "" || act.Owner == g.lease.owner && g.flights.has(id) {
				continue // settled since, or on its way
			}
			theirs, err := g.others(tx, act)
			if err == nil && !theirs {
				_, err = g.orphan(tx, act)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Run takes up, from time to time, what is due, and what an owner left that is gone, until ctx ends. Nobody has to call
// for it.
func (g *Gateway) Run(ctx context.Context) {
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(g.every):
		}
		if n%orphanTurns == 0 {
			if err := g.findOrphans(ctx); err != nil {
				g.log.Error("actions of gateways that are gone could not be taken over", "error", err)
			}
		}
		if n%purgeTurns == 1 {
			if n, err := g.purge(ctx, time.Now()); err != nil && ctx.Err() == nil {
				g.log.Error("content that was kept long enough could not be erased", "error", err)
			} else if n > 0 {
				g.log.Info("content was erased that had been kept for as long as contracts say", "actions", n)
			}
		}
		if err := g.expireRequests(); err != nil && ctx.Err() == nil {
			g.log.Error("requests that nobody answered could not be ended", "error", err)
		}
		g.takeUp(ctx)
	}
}

const (
	atOnce      = 64 // due actions are read in pieces, so that a hundred thousand of them are no burden at any moment
	sideBySide  = 32 // unknown actions that are worked on at a time while no caller waits; else one. Most of it is waiting
	orphanTurns = 5  // of Run: looking for dispatched actions reads all of them
)

// takeUp works on everything that is due now.
func (g *Gateway) takeUp(ctx context.Context) {
	turn := make(chan struct{}, sideBySide)
	seen := map[action.ID]bool{}
	for {
		due, err := g.due(ctx, atOnce)
		if err != nil {
			if ctx.Err() == nil {
				g.log.Error("what is due could not be read", "error", err)
			}
			return
		}
		news := 0
		for _, id := range due {
			if seen[id] { // nothing could be done about it this time
				continue
			}
			seen[id] = true
			news++
			if !g.reconcile(ctx, id, turn) {
				return
			}
		}
		if news == 0 { // what is under way moves its own time on; the rest is found at the next turn
			return
		}
	}
}

// due lists what is due now, for this gateway.
func (g *Gateway) due(ctx context.Context, limit int) ([]action.ID, error) {
	return g.store.Due(ctx, store.Due{For: g.lease.owner, Now: time.Now(), Locked: g.vault.Locked(), Limit: limit})
}

// reconcile starts work on one action, when it is its turn. Callers go first: while one waits, actions are taken up one by
// one. It reports false when deed is stopping.
func (g *Gateway) reconcile(ctx context.Context, id action.ID, turn chan struct{}) bool {
	if !g.yield(ctx, turn) {
		return false
	}
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if !g.enter() {
		<-turn
		return false
	}
	act, err := g.store.Action(ctx, id)
	if err != nil {
		g.log.Error("an action that is due could not be read", "action_id", id, "error", err)
		<-turn
		g.work.Done()
		return ctx.Err() == nil
	}
	f := g.flights.join(id, func(f *flight) { g.fly(f, act, plan{}) })
	g.flights.leave(f, nil)
	go func() { <-f.done; <-turn; g.work.Done() }()
	return true
}

// yield lets callers go first: while some call, one unknown action is taken up at a time, and not one right after the
// other. It reports false when ctx is over.
func (g *Gateway) yield(ctx context.Context, turn chan struct{}) bool {
	const apart, quiet = 20 * time.Millisecond, 200 * time.Millisecond
	for first := true; g.flights.called(quiet) && (first || len(turn) > 0); first = false {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(apart):
		}
	}
	return true
}

// findOrphans takes over what owners left that are gone.
func (g *Gateway) findOrphans(ctx context.Context) error {
	sent, err := g.openIn(ctx, action.Dispatched)
	if err != nil {
		return err
	}
	sent = slices.DeleteFunc(sent, g.flights.has)
	for some := range slices.Chunk(sent, orphansAtOnce) {
		if err := g.orphans(ctx, some); err != nil {
			return err
		}
	}
	return nil
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
	mattering := map[string][]string{}
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
		mattering[c.Tool] = slices.DeleteFunc(slices.Compact(versions), func(d string) bool { return d == c.Digest })
	}
	g.mattering.Store(&mattering)
	return nil
}
