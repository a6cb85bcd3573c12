package gateway

import (
	"context"
	"errors"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// deliver makes the answer of a call from the action as it stands. The front door hands it over, and says with Delivered
// what it knows of the arrival.
func (g *Gateway) deliver(ctx context.Context, call action.Call, c claimed, act action.Action, w *written) (action.Answer, error) {
	a := action.Answer{
		Action: act, Held: c.Kind == action.Hold, Attached: c.Kind == action.Attach, Match: c.Match,
		EffectMode: action.NoEffect, Complete: true,
	}
	if ctx.Err() != nil {
		g.left(ctx, call, act)
	}
	ctx = context.WithoutCancel(ctx)
	if a.Held {
		a.Code = action.CodeHeld
		return a, nil
	}
	if g.dropped(act) {
		act = g.current(act) // it may have been settled since it was read
		a.Action, a.Unrecorded = act, g.dropped(act)
	}
	a.Code = a.StateCode()
	if wait := until(act); wait > 0 && !act.Closed() {
		a.RetryAfter = wait
	}
	a.SettledBy = settledBy(act)
	if act.State == action.AwaitingApproval {
		if p, err := g.store.Approval(ctx, act.Approval); err == nil {
			a.Approval = &p
		}
	}
	if act.Delegated() {
		if job, err := g.store.Payload(ctx, store.Job, string(act.ID)); err == nil {
			a.Job = string(job)
		}
	}
	a.Attempts = g.attempts(ctx, act, w)
	a.EffectMode = c.effectMode(act, a.Attempts)
	if err := g.fill(ctx, &a, w); err != nil {
		g.log.Error("the recorded result of an action could not be read", "action_id", act.ID, "error", err)
		a.Complete = false
	}
	return a, nil
}

// dropped reports whether this gateway has sent an action and works on it no longer, without a record of what came of it.
func (g *Gateway) dropped(act action.Action) bool {
	return act.State == action.Dispatched && !act.Delegated() && act.Owner == g.lease.owner && !g.flights.has(act.ID)
}

// settledBy says what settled an action that was unknown or under way at its target, "" when its own answer did.
func settledBy(act action.Action) string {
	switch {
	case !act.State.Final():
		return ""
	case act.Reason == reasonReviewed:
		return action.SettledByReviewer
	case act.Reason == string(action.ByLate):
		return action.SettledByLate
	case act.Reason == foundBy+string(action.ByPoll), act.Reason == reasonJobEnded:
		return action.SettledByPoll
	case act.Reason == foundBy+string(action.ByLookup), act.Reason == reasonAbsent:
		return action.SettledByLookUp
	}
	return ""
}

// effectMode says whether the answer comes from a send of this call, or from the record of an earlier one.
func (c claimed) effectMode(act action.Action, attempts []action.Attempt) action.EffectMode {
	before := 0 // attempts that were made before this call
	if c.Kind == action.Attach {
		before = c.action.Attempt
	}
	for _, t := range attempts {
		if t.Number > before && t.State != action.AttemptNotSent {
			return action.Fresh
		}
	}
	if c.Kind == action.Attach && act.Attempt > 0 && act.State.Final() {
		return action.Replay
	}
	return action.NoEffect
}

// attempts are the sends of an action. The only one of an action that was just settled need not be read.
func (g *Gateway) attempts(ctx context.Context, act action.Action, w *written) []action.Attempt {
	switch {
	case act.Attempt == 0:
		return nil
	case act.Attempt == 1 && w != nil && w.attempt.Number == 1:
		return []action.Attempt{w.attempt}
	}
	all, err := g.store.Attempts(ctx, act.ID)
	if err != nil {
		g.log.Error("the attempts of an action could not be read", "action_id", act.ID, "error", err)
	}
	return all
}

// fill adds the recorded answer of the target, and the token for a deliberate repeat of what is completed.
func (g *Gateway) fill(ctx context.Context, a *action.Answer, w *written) error {
	if a.Action.Purged {
		a.Complete = false
		return nil
	}
	if a.Action.Result == "" || !a.Action.State.Final() {
		return nil
	}
	if w != nil && w.result.ID == a.Action.Result {
		r := w.result
		a.Result, a.MediaType, a.Complete, a.Withheld, a.ResultSize, a.RepeatOf = w.body, r.MediaType, r.Complete, r.Withheld, r.Size, w.token
		return nil
	}
	stored, body, err := g.store.Result(ctx, a.Action.Result)
	if err != nil {
		return err
	}
	a.Result, a.MediaType, a.Complete, a.Withheld, a.ResultSize = body, stored.MediaType, stored.Complete, stored.Withheld, stored.Size
	if a.Action.State != action.Completed || a.Action.RepeatToken == "" {
		return nil
	}
	token, err := g.store.Payload(ctx, store.Repeat, string(a.Action.Result))
	a.RepeatOf = string(token)
	return err
}

// current reads the action as it stands; when it cannot be read, what was last known is still true.
func (g *Gateway) current(act action.Action) action.Action {
	if now, err := g.store.Action(g.ctx, act.ID); err == nil {
		return now
	}
	return act
}

// Delivered records what a front door knows of an answer's arrival. Nobody waits for it: it is evidence, and losing it
// only means that the result counts as undelivered.
func (g *Gateway) Delivered(id action.ID, to action.Delivery, why string) {
	g.later(func(tx store.Tx) error {
		act, err := tx.Action(id)
		if err != nil || !act.Delivery.CanBecome(to) || act.Delivery == to {
			return err
		}
		return tx.Append(deliveryEvent(tx.Now(), act, to, why))
	})
}

// ErrCancelled is the cause of a context that the caller ended on purpose, and not by going away.
var ErrCancelled = errors.New("the caller cancelled the call")

// left records that a caller cancelled or went away while its action ran. It is a wish: the action goes on, and its
// outcome is recorded.
func (g *Gateway) left(ctx context.Context, call action.Call, act action.Action) {
	why := "caller_left"
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		why = "cancel_requested"
	}
	run := action.Run{ID: act.Run}
	g.later(func(tx store.Tx) error {
		return tx.Append(callEvent(tx.Now(), call, run, act.ID, action.CallLeft, action.CallSeen{Prior: act.State, Why: why}))
	})
}

func deliveryEvent(now time.Time, act action.Action, to action.Delivery, why string) action.Event {
	return action.Event{
		ID: action.EventID(newID(action.EventPrefix)), Time: now, Kind: action.ActionDelivery,
		Run: act.Run, Intent: act.Intent, Action: act.ID, Trace: act.Trace,
		DeliveryBody: &action.DeliveryMoved{From: act.Delivery, To: to, Why: why},
	}
}
