package gateway

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Revoke takes back what was allowed or is still asked: of one action, of one intent (a branch whose siblings go on), of a
// run or of everything that an actor has open. What was not sent is rejected. What was sent goes on and is not sent again;
// the answer names it. A run that was revoked begins nothing more.
func (g *Gateway) Revoke(ctx context.Context, by action.Actor, asked action.RevokeAsked) (action.RevokeDone, error) {
	what, err := checkRevoke(by, asked)
	if err != nil {
		return action.RevokeDone{}, err
	}
	if !g.enter() {
		return action.RevokeDone{}, action.Errorf(action.CodeOverloaded, "deed is stopping; nothing was changed, try again in a moment")
	}
	defer g.work.Done()
	r := action.Revocation{ID: newDecision(), By: by.String(), Strength: by.Strength, What: what, Why: asked.Why}
	done := action.RevokeDone{ID: r.ID}
	runs, err := g.runsOf(ctx, asked)
	if err != nil {
		return done, unavailable(err)
	}
	if len(runs) > 0 { // first, so that nothing is begun while the rest is taken back
		if err := g.store.Commit(ctx, func(tx store.Tx) error { return g.revokeRuns(tx, runs, r) }); err != nil {
			return done, revokeFailed(err)
		}
	}
	targets, err := g.toRevoke(ctx, asked)
	if err != nil {
		return done, unavailable(err)
	}
	for _, id := range targets {
		if err := g.store.Commit(ctx, func(tx store.Tx) error { return g.revokeOne(tx, id, r, &done) }); err != nil {
			return done, revokeFailed(err)
		}
	}
	g.bells.ring(done.Rejected)
	g.log.Info("revoked", "what", what, "by", r.By, "rejected", len(done.Rejected), "sent", len(done.Sent))
	return done, nil
}

func revokeFailed(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return action.Errorf(action.CodeNoSuchAction, "no such record; nothing was revoked")
	}
	return unavailable(err)
}

func checkRevoke(by action.Actor, asked action.RevokeAsked) (what string, err error) {
	n := 0
	for _, name := range []string{string(asked.Action), string(asked.Intent), string(asked.Run), asked.Actor} {
		if name != "" {
			what, n = name, n+1
		}
	}
	invalid := func(why string) error {
		return action.Errorf(action.CodeInvalidArguments, "nothing was revoked: %s", why)
	}
	switch {
	case !by.Verified():
		return "", action.Errorf(action.CodeUnauthenticated, "nothing was proved about who revokes, so nothing was changed")
	case n != 1:
		return "", invalid("name one action, intent, run or actor")
	case asked.Actor != "" && !strings.Contains(asked.Actor, ":"):
		return "", invalid("an actor is named as records show it, such as token:billing-agent")
	case strings.TrimSpace(asked.Why) == "":
		return "", invalid("say why")
	case len(asked.Why) > action.MaxReviewText || !utf8.ValidString(asked.Why):
		return "", invalid("the reason is longer than 4096 bytes or is not UTF-8")
	}
	return what, nil
}

// runsOf gives the runs that end: the one that was named, or all of the actor.
func (g *Gateway) runsOf(ctx context.Context, asked action.RevokeAsked) ([]action.RunID, error) {
	if asked.Run != "" {
		return []action.RunID{asked.Run}, nil
	}
	if asked.Actor == "" {
		return nil, nil
	}
	return g.store.RunsOf(ctx, asked.Actor)
}

func (g *Gateway) revokeRuns(tx store.Tx, runs []action.RunID, r action.Revocation) error {
	for _, run := range runs {
		revoked, err := tx.RunRevoked(run)
		if err != nil {
			return err
		}
		if !revoked {
			err = tx.Append(action.Event{ID: action.EventID(newID(action.EventPrefix)), Time: tx.Now(), Kind: action.RunRevoked, Run: run, RevokedBody: &r})
			if err != nil {
				return err
			}
		}
		p, err := tx.ApprovalOfRun(run)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		if err := g.void(tx, p.ID, voidRevoked); err != nil {
			return err
		}
	}
	return nil
}

// toRevoke lists what is meant and not over. Everything is looked at again in the change that takes it back.
func (g *Gateway) toRevoke(ctx context.Context, asked action.RevokeAsked) (ids []action.ID, err error) {
	if asked.Action != "" {
		return []action.ID{asked.Action}, nil
	}
	if asked.Actor != "" {
		for _, state := range action.States {
			if state.Final() {
				continue
			}
			open, err := g.openIn(ctx, state)
			if err != nil {
				return nil, err
			}
			ids = append(ids, open...)
		}
		return g.ofActor(ctx, asked.Actor, ids)
	}
	found, err := g.store.Actions(ctx, store.Query{Intent: asked.Intent, Run: asked.Run, Limit: 100_000})
	for _, act := range found {
		ids = append(ids, act.ID)
	}
	return ids, err
}

func (g *Gateway) ofActor(ctx context.Context, actor string, ids []action.ID) (own []action.ID, err error) {
	for _, id := range ids {
		act, err := g.store.Action(ctx, id)
		if err != nil {
			return nil, err
		}
		if act.Actor == actor {
			own = append(own, id)
		}
	}
	return own, nil
}

// revokeOne takes one action back, inside a change.
func (g *Gateway) revokeOne(tx store.Tx, id action.ID, r action.Revocation, done *action.RevokeDone) error {
	act, err := tx.Action(id)
	if err != nil {
		return err
	}
	moved := action.Moved{
		RejectReason: action.Revoked, Reason: voidRevoked, Revocation: &r,
		Binding: &action.Binding{Decision: r.ID, Kind: action.ByReview, Rule: voidRevoked, Digest: act.Binding.Digest},
	}
	switch act.State {
	case action.Accepted:
		moved.Transition = action.T5
	case action.AwaitingApproval:
		moved.Transition = action.T7
	case action.Authorized:
		moved.Transition = action.T10
	case action.Dispatched, action.Unknown:
		done.Sent = append(done.Sent, id)
		if act.Withdrawn {
			return nil
		}
		_, err := g.say(tx, act, action.ActionWithdrawn, action.Event{RevokedBody: &r})
		return err
	default:
		done.Settled++
		return nil
	}
	if act, err = g.voidOwn(tx, act); err != nil {
		return err
	}
	if _, err = g.move(tx, act, moved); err == nil {
		done.Rejected = append(done.Rejected, id)
	}
	return err
}

// voidOwn ends the request that is about this action alone.
func (g *Gateway) voidOwn(tx store.Tx, act action.Action) (action.Action, error) {
	if act.Approval == "" {
		return act, nil
	}
	p, err := tx.Approval(act.Approval)
	if err != nil || p.Rule != action.AsksEachUse {
		return act, err
	}
	if err := g.void(tx, p.ID, voidRevoked); err != nil {
		return act, err
	}
	return tx.Action(act.ID)
}
