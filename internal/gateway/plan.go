package gateway

import (
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// A plan is the next step for an action, durable before it is taken: one attempt, or one question to its target.
type plan struct {
	attempt  *action.Attempt
	question *action.Observation
	lapses   int // of the lease, when the attempt was planned
}

func (p plan) nothing() bool { return p.attempt == nil && p.question == nil }

// planIn writes the next step down inside a change that is under way, if the rule allows one.
func (g *Gateway) planIn(tx store.Tx, act action.Action) (action.Action, plan, error) {
	if act.State.Effect() == action.EffectMaybe { // somebody may be at it this moment
		if theirs, err := g.others(tx, act); theirs || err != nil {
			return act, plan{}, err
		}
	}
	act, err := g.ready(tx, act)
	if err != nil {
		return act, plan{}, err
	}
	work, transition := act.Next(tx.Now(), tx.ClockBack())
	switch {
	case work == action.WorkClose, work == action.WorkReview:
		act, err = g.giveUp(tx, act, transition)
		return act, plan{}, err
	case work == action.WorkNone, !tx.ClockBack() && tx.Now().Before(act.NotBefore):
		return act, plan{}, nil
	}
	if act.State == action.Unknown { // what was never sent says by itself that the vault was locked
		locked := false
		if act, locked, err = g.vaultStops(tx, act); locked || err != nil {
			return act, plan{}, err
		}
	}
	if work == action.WorkAsk {
		return g.planQuestion(tx, act)
	}
	if act, waits := g.waitsForAnchor(act); waits {
		return act, plan{}, nil
	}
	return g.planAttempt(tx, act, transition)
}

func (g *Gateway) planAttempt(tx store.Tx, act action.Action, t action.Transition) (action.Action, plan, error) {
	before, err := last(tx, act)
	if err != nil {
		return act, plan{}, err
	}
	attempt := &action.Attempt{
		ID: action.AttemptID(newID(action.AttemptPrefix)), Action: act.ID, Number: act.Attempt + 1,
		State: action.AttemptSent, BytesSent: action.BytesUnknown, SpanID: newSpanID(), RetryOf: before.ID, Started: tx.Now(),
	}
	moved := action.Moved{Transition: t, Owner: g.lease.owner, Reason: act.Reason, Started: attempt}
	if act.KeyLife > 0 && act.DispatchedAt.IsZero() {
		moved.ResendBefore = in(tx, act.KeyLife) // the target forgets by its own clock
	}
	act, err = g.move(tx, act, moved)
	return act, plan{attempt: attempt, lapses: g.lapses()}, err
}

func (g *Gateway) planQuestion(tx store.Tx, act action.Action) (action.Action, plan, error) {
	before, err := last(tx, act)
	if err != nil {
		return act, plan{}, err
	}
	question := action.Observation{
		ID: action.ObservationID(newID(action.ObservationPrefix)), Action: act.ID, Number: act.Observations + 1,
		Kind: action.ByLookup, About: before.ID, SpanID: newSpanID(), Started: tx.Now(),
	}
	if act.Job != "" {
		question.Kind = action.ByPoll
	}
	act, err = g.observe(tx, act, action.ReconcileStarted, action.Observed{Observation: question, Owner: g.lease.owner})
	return act, plan{question: &question}, err
}

// ready brings an action to where the rule can speak about it: allowed, or unknown when whoever sent it is gone.
func (g *Gateway) ready(tx store.Tx, act action.Action) (next action.Action, err error) {
	switch {
	case act.State == action.Authorized && act.Withdrawn:
		return g.move(tx, act, action.Moved{Transition: action.T10, RejectReason: action.Revoked, Reason: voidRevoked})
	case act.State == action.Authorized && act.Lapsed(tx.Now(), tx.ClockBack()):
		return g.lapsed(tx, act, voidLapsed)
	case act.State == action.Accepted:
		op, err := g.recorded(g.ctx, act)
		if err != nil {
			return act, err
		}
		return g.authorize(tx, act, op)
	case act.State == action.Dispatched && act.Job == "": // nobody works on it, or this would not be asked
		return g.orphan(tx, act)
	case act.State == action.Failed && act.FailureClass == action.NotSent && act.AttemptsLeft() > 0:
		if act, err = g.move(tx, act, action.Moved{Transition: action.T22, Reason: "asked_again"}); err != nil {
			return act, err
		}
		return g.ready(tx, act) // what was allowed may be over since
	default:
		return act, nil
	}
}

// orphan takes over an action that was sent by a process which is gone: it becomes unknown, under a new fencing number.
// Its last attempt stays as it is known: sent.
func (g *Gateway) orphan(tx store.Tx, act action.Action) (action.Action, error) {
	attempt, err := last(tx, act)
	if err != nil {
		return act, err
	}
	s := act.Settle(action.Outcome{Reason: "process_lost"})
	attempt.State, attempt.Reason = action.AttemptSent, s.Reason
	return g.move(tx, act, action.Moved{
		Transition: s.Transition, Owner: g.lease.owner, Reason: s.Reason, Recovery: s.Recovery, Ended: &attempt,
	})
}

// vaultStops says on record that an action waits for the vault, and that it goes on when the vault is open again.
func (g *Gateway) vaultStops(tx store.Tx, act action.Action) (action.Action, bool, error) {
	locked := act.Credential != "" && g.vault.Locked()
	waits := act.Reason == reasonVaultLocked
	if locked == waits {
		return act, locked, nil
	}
	moved := action.Moved{Transition: action.T19, Reason: reasonVaultLocked, Recovery: action.Reconciling}
	if !locked {
		moved.Reason = "vault_unlocked"
	}
	act, err := g.move(tx, act, moved)
	return act, locked, err
}

// Reasons that tell, when an action is shown again, what settled it or what it waits for.
const (
	reasonVaultLocked = "vault_locked"
	reasonAbsent      = "absence_proved"
	reasonJobEnded    = "job_ended_without_effect"
	reasonReviewed    = "reviewed"
	foundBy           = "found_by_"
)

// giveUp ends what deed can do about an unknown action by itself: absence is proved and it may not be sent again, or a
// person has to settle it.
func (g *Gateway) giveUp(tx store.Tx, act action.Action, t action.Transition) (action.Action, error) {
	moved := action.Moved{Transition: t, Reason: reasonAbsent, FailureClass: action.NoEffectConfirmed}
	if t == action.T19 {
		moved.Reason, moved.FailureClass, moved.Recovery = "resend_time_over", "", action.ReviewRequired
		switch {
		case act.AttemptsLeft() <= 0:
			moved.Reason = "attempts_exhausted"
		case act.Withdrawn:
			moved.Reason = voidRevoked
		case act.Lapsed(tx.Now(), tx.ClockBack()):
			moved.Reason = voidLapsed
		}
	}
	return g.move(tx, act, moved)
}

// until is how long the next step still has to wait. More than any target is believed means that the clock was set back
// since.
func until(act action.Action) time.Duration {
	const longest = time.Hour // what an executor reads out of Retry-After at the most
	if wait := time.Until(act.NotBefore); wait <= longest {
		return wait
	}
	return 0
}
