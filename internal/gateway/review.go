package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Review records a person's decision about an unknown action, and does what it says. It is the only way out of unknown
// without evidence from the target, and the only way to a second send of an action whose contract allows none.
func (g *Gateway) Review(ctx context.Context, by action.Actor, asked action.ReviewAsked) (action.Answer, error) {
	if err := checkReview(by, asked); err != nil {
		return action.Answer{}, err
	}
	if !g.enter() {
		return action.Answer{}, action.Errorf(action.CodeOverloaded, "deed is stopping; nothing was changed, try again in a moment")
	}
	defer g.work.Done()
	f, free := g.flights.take(asked.Action)
	if !free {
		return action.Answer{}, refuseReview(asked.Action, "deed is finding out about it at this moment; look again when that is over")
	}
	g.live()
	var act action.Action
	var planned plan
	var w written
	err := g.store.Commit(ctx, func(tx store.Tx) (err error) {
		act, planned, err = g.reviewIn(tx, by, asked, &w)
		return err
	})
	if err != nil {
		g.flights.land(f, act)
		if errors.Is(err, store.ErrNotFound) {
			return action.Answer{}, refuseReview(asked.Action, "no such action is on record")
		}
		return action.Answer{}, unavailable(err)
	}
	if planned.nothing() {
		f.written = &w
		g.flights.land(f, act)
	} else {
		g.fly(f, act, planned)
		select {
		case <-f.done:
			act = f.action
		case <-ctx.Done():
		}
	}
	return g.deliver(context.WithoutCancel(ctx), action.Call{}, claimed{action: act}, act, nil)
}

// redoFor is how long a reviewer's redo of something that needs a person each time counts.
const redoFor = 15 * time.Minute

// reviewIn makes the move that a decision asks for, inside one change.
func (g *Gateway) reviewIn(tx store.Tx, by action.Actor, asked action.ReviewAsked, w *written) (action.Action, plan, error) {
	act, err := tx.Action(asked.Action)
	if err != nil {
		return act, plan{}, err
	}
	seq, hash, err := tx.Place(act.ID)
	if err != nil {
		return act, plan{}, err
	}
	theirs, err := g.others(tx, act)
	switch {
	case err != nil:
		return act, plan{}, err
	case act.State != action.Unknown:
		return act, plan{}, refuseReview(act.ID, "it is "+action.Shown(act.State, act.Delivery)+", and only an unknown action is settled by a person")
	case act.Abandoned:
		return act, plan{}, refuseReview(act.ID, "it was closed by an earlier decision")
	case asked.Seen != "" && asked.Seen != hash:
		return act, plan{}, refuseReview(act.ID, "something was recorded about it since you looked; look again and decide on that")
	case theirs:
		return act, plan{}, refuseReview(act.ID, "another gateway is finding out about it at this moment; look again when that is over")
	case asked.Decision == action.Redo && act.Credential != "" && g.vault.Locked():
		return act, plan{}, action.Errorf(action.CodeVaultLocked, "the vault is locked, so nothing was decided and nothing was sent").About(act.ID)
	case asked.Decision == action.Redo && g.gate.Open() != nil:
		return act, plan{}, notAnchored().About(act.ID)
	}
	moved := action.Moved{
		Transition: asked.Decision.Transition(), Owner: g.lease.owner, Reason: reasonReviewed,
		Review: &action.Review{
			ID: action.DecisionID(newID(action.DecisionPrefix)), Decision: asked.Decision, Reviewer: by.String(), Strength: by.Strength,
			Why: asked.Why, Evidence: asked.Evidence, SeenSeq: seq, SeenHash: hash,
		},
	}
	var next plan
	switch asked.Decision {
	case action.Happened:
		if asked.Result != nil {
			r := action.Result{Body: asked.Result, MediaType: "application/json", Complete: true, Size: int64(len(asked.Result))}
			if moved.Result, err = keep(tx, act, moved.Transition, r, w); err != nil {
				return act, plan{}, err
			}
		}
	case action.DidNot:
		moved.FailureClass = action.NoEffectConfirmed
	case action.Abandon:
		moved.Recovery = action.ReviewRequired
	case action.Redo:
		before, err := last(tx, act)
		if err != nil {
			return act, plan{}, err
		}
		next.attempt = &action.Attempt{
			ID: action.AttemptID(newID(action.AttemptPrefix)), Action: act.ID, Number: act.Attempt + 1,
			State: action.AttemptSent, BytesSent: action.BytesUnknown, SpanID: newSpanID(), RetryOf: before.ID, Started: tx.Now(),
		}
		moved.Started, next.lapses = next.attempt, g.lapses()
		if !act.Binding.Until.IsZero() { // what was approved once may be over; this is a decision of its own, about the same bytes (AP-19)
			moved.Binding = &action.Binding{
				Decision: moved.Review.ID, Kind: action.ByReview, Rule: string(action.Redo), Digest: act.Binding.Digest, Until: in(tx, redoFor),
			}
		}
	}
	act, err = g.move(tx, act, moved)
	return act, next, err
}

func checkReview(by action.Actor, r action.ReviewAsked) error {
	switch {
	case !by.Verified():
		return action.Errorf(action.CodeUnauthenticated, "nothing was proved about the reviewer, so nothing was changed")
	case r.Decision.Transition() == "":
		return refuseReview(r.Action, "a decision is happened, absent, redo or abandon")
	case r.Decision.NeedsEvidence() && r.Evidence == "":
		return refuseReview(r.Action, "say what shows it (evidence); nothing clears an unknown outcome without that")
	case !r.Decision.NeedsEvidence() && r.Why == "":
		return refuseReview(r.Action, "say why")
	case len(r.Why) > action.MaxReviewText || len(r.Evidence) > action.MaxReviewText || !utf8.ValidString(r.Why+r.Evidence):
		return refuseReview(r.Action, "a text is longer than 4096 bytes or is not UTF-8")
	case r.Result != nil && (r.Decision != action.Happened || !json.Valid(r.Result)):
		return refuseReview(r.Action, "a result has to be JSON, and goes with happened only")
	}
	return nil
}

func refuseReview(id action.ID, why string) *action.Error {
	return action.Errorf(action.CodeReviewRefused, "nothing was changed: %s", why).About(id)
}
