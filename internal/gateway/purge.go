package gateway

import (
	"context"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

const (
	purgeTurns = 600 // of Run
	purgeAt    = 50  // actions in one commit
)

// purge erases the content of final actions that was kept for as long as their contracts say. What stays is the record:
// that they were, what came of them, and the digests and keys by which a late repeat is recognised and not taken for
// something new.
func (g *Gateway) purge(ctx context.Context, now time.Time) (purged int, err error) {
	for {
		ids, err := g.store.Expired(ctx, now, purgeAt)
		if err != nil || len(ids) == 0 {
			return purged, err
		}
		payloads := make(map[action.ID][]payload, len(ids))
		for _, id := range ids {
			if payloads[id], err = g.contentOf(ctx, id); err != nil {
				return purged, err
			}
		}
		err = g.store.Commit(ctx, func(tx store.Tx) error {
			for _, id := range ids {
				if err := purgeIn(tx, id, payloads[id]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return purged, err
		}
		purged += len(ids)
	}
}

type payload struct {
	kind  store.PayloadKind
	owner string
}

// contentOf lists what is kept of an action apart from its record. Arguments belong to the intent, and stay while another
// action of it is kept.
func (g *Gateway) contentOf(ctx context.Context, id action.ID) ([]payload, error) {
	act, err := g.store.Action(ctx, id)
	if err != nil {
		return nil, err
	}
	content := []payload{{store.Operation, string(id)}, {store.Job, string(id)}}
	if act.Result != "" {
		for _, kind := range []store.PayloadKind{store.Answer, store.Headers, store.Repeat} {
			content = append(content, payload{kind, string(act.Result)})
		}
	}
	seen, err := g.store.Observations(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, o := range seen {
		content = append(content, payload{store.Evidence, string(o.ID)})
	}
	siblings, err := g.store.Actions(ctx, store.Query{Intent: act.Intent})
	if err != nil {
		return nil, err
	}
	for _, s := range siblings {
		if s.ID != id && !s.Purged {
			return content, nil
		}
	}
	return append(content, payload{store.Arguments, string(act.Intent)}), nil
}

func purgeIn(tx store.Tx, id action.ID, content []payload) error {
	act, err := tx.Action(id)
	if err != nil || act.Purged || !act.State.Final() {
		return err
	}
	for _, p := range content {
		if err := tx.Erase(p.kind, p.owner); err != nil {
			return err
		}
	}
	ev := about(tx, act, action.ActionPurged)
	ev.PurgedBody = &action.Purged{Kept: act.KeepResult}
	_, err = apply(tx, act, ev)
	return err
}
