package gateway

import (
	"errors"
	"math/rand/v2"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/crashpoint"
	"deed.dev/deed/internal/store"
)

// learn writes down what a question brought, and what follows from it for the action.
func (g *Gateway) learn(f *flight, act action.Action, asked action.Observation, r reply) (action.Action, error) {
	crashpoint.Here(crashpoint.AfterAnswer)
	c, err := g.version(g.ctx, act.Tool, act.Contract)
	if err != nil {
		c = &contract.Contract{} // nothing was asked either
	}
	var settled action.Action
	var w written
	write := func(tx store.Tx) error {
		now, err := tx.Action(act.ID)
		if err != nil {
			return err
		}
		seen := asked
		seen.Status, seen.Reason, seen.Remote, seen.Ended = r.outcome.Status, r.outcome.Reason, r.outcome.Remote, tx.Now()
		if now.Epoch != act.Epoch || now.State != act.State { // overtaken: kept, and not acted on
			seen.Kind, seen.Finding = action.ByStale, r.finding
			settled, err = g.observe(tx, now, action.ActionObserved, action.Observed{Observation: seen})
			return err
		}
		settled, err = g.learnIn(tx, c, now, seen, r, &w)
		return err
	}
	err = g.mustCommit(write)
	if err != nil && !errors.Is(err, store.ErrLatched) { // something in the answer cannot be recorded
		g.log.Error("a target's answer to a question could not be recorded", "action_id", act.ID, "error", err)
		r, w = reply{outcome: bare(r.outcome)}, written{}
		err = g.mustCommit(write)
	}
	if err != nil {
		return act, err
	}
	f.written = &w
	crashpoint.Here(crashpoint.AfterEvidence)
	return settled, nil
}

// learnIn records one answer about an action that still waits for it.
func (g *Gateway) learnIn(tx store.Tx, c *contract.Contract, act action.Action, seen action.Observation, r reply, w *written) (action.Action, error) {
	attempt, err := last(tx, act)
	if err != nil {
		return act, err
	}
	seen.Finding = r.finding
	again := g.askAgain(c, act, seen, r)
	if r.finding == action.Absent {
		settles := settledFrom(c, act, attempt)
		switch {
		case !r.authoritative:
			seen.Reason = "not_authoritative"
		case act.Hinted:
			seen.Finding, seen.Reason = action.Contradictory, "something_was_seen_before"
		case tx.ClockBack() || seen.Started.Before(settles):
			seen.Reason = "not_settled"
			again = min(again, max(settles.Sub(tx.Now()), time.Millisecond))
		default:
			seen.Finding = action.ProvedAbsent
		}
	}
	if r.outcome.Status != 0 {
		if seen.Evidence, err = tx.PutPayload(store.Evidence, string(seen.ID), r.outcome.Result.Body); err != nil {
			return act, err
		}
	}
	observed := action.Observed{Observation: seen}
	if seen.Finding != action.Found && seen.Finding != action.EndedWithout && seen.Finding != action.ProvedAbsent {
		observed.NotBefore = in(tx, again)
	}
	if act, err = g.observe(tx, act, action.ActionObserved, observed); err != nil {
		return act, err
	}
	switch seen.Finding {
	case action.Found:
		return g.found(tx, act, seen.Kind, r, w)
	case action.EndedWithout:
		return g.endedWithout(tx, act)
	case action.ProvedAbsent:
		return act, nil // the rule says what may be done about it
	}
	return g.overdue(tx, c, act)
}

// found settles an action whose effect was found at its target.
func (g *Gateway) found(tx store.Tx, act action.Action, kind action.ObservationKind, r reply, w *written) (action.Action, error) {
	moved := action.Moved{Transition: action.T17, Reason: foundBy + string(kind)}
	if act.State == action.Dispatched {
		moved.Transition = action.T12
	}
	var err error
	if moved.Result, err = keep(tx, act, moved.Transition, r.result, w); err != nil {
		return act, err
	}
	return g.move(tx, act, moved)
}

// endedWithout settles an action whose job is over and, as its contract says, had no effect.
func (g *Gateway) endedWithout(tx store.Tx, act action.Action) (action.Action, error) {
	if act.State == action.Dispatched {
		return g.move(tx, act, action.Moved{Transition: action.T13, Reason: reasonJobEnded, FailureClass: action.RejectedByTarget})
	}
	return g.move(tx, act, action.Moved{Transition: action.T20, Reason: reasonJobEnded, FailureClass: action.NoEffectConfirmed})
}

// overdue hands an action to a person when its target could not or would not say for too long.
func (g *Gateway) overdue(tx store.Tx, c *contract.Contract, act action.Action) (action.Action, error) {
	switch {
	case act.State == action.Dispatched:
		if tx.Now().Before(act.DispatchedAt.Add(giveUpAfter(c))) {
			return act, nil
		}
		return g.move(tx, act, action.Moved{Transition: action.T16, Reason: "job_not_finished", Recovery: action.ReviewRequired})
	case act.Job != "" && tx.Now().Before(act.DispatchedAt.Add(giveUpAfter(c))),
		act.Job == "" && tx.Now().Before(act.UnknownAt.Add(act.ReviewAfter)):
		return act, nil
	}
	return g.move(tx, act, action.Moved{Transition: action.T19, Reason: "evidence_not_conclusive", Recovery: action.ReviewRequired})
}

// giveUpAfter is how long a job is followed.
func giveUpAfter(c *contract.Contract) time.Duration {
	if c.Poll == nil { // the contract cannot be read
		return 24 * time.Hour
	}
	return c.Poll.GiveUpAfter
}

// settledFrom is the instant from which the target's "absent" may be believed: the time to settle, reckoned from when the
// last send was certainly over.
func settledFrom(c *contract.Contract, act action.Action, attempt action.Attempt) time.Time {
	over := act.UnknownAt
	if limit := attempt.Started.Add(c.Timeout); attempt.Ended.IsZero() && limit.After(over) { // nobody saw it end
		over = limit
	}
	return over.Add(c.Lookup.Settle)
}

// askAgain is how long to wait before the next question: longer each time, and never in step with others.
func (g *Gateway) askAgain(c *contract.Contract, act action.Action, seen action.Observation, r reply) time.Duration {
	wait := action.AskAgain(seen.Number)
	if seen.Kind == action.ByPoll && r.finding == action.Pending && c.Poll != nil {
		wait = c.Poll.Every
	}
	wait += time.Duration(rand.Int64N(int64(wait)/5 + 1)) //nolint:gosec // it only keeps questions apart
	return max(wait, r.outcome.RetryAfter)
}

// observe journals what was asked or learned, and gives the action as it stands after it.
func (g *Gateway) observe(tx store.Tx, act action.Action, kind action.EventKind, o action.Observed) (action.Action, error) {
	if o.Kind != action.ByStale {
		o.FromEpoch = act.Epoch
	}
	ev := about(tx, act, kind)
	ev.Trace = action.Trace{TraceID: act.Trace.TraceID, SpanID: o.SpanID, ParentSpanID: act.Trace.SpanID}
	ev.ObservedBody = &o
	return apply(tx, act, ev)
}
