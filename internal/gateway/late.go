package gateway

import (
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// late settles an unknown action by the answer of an attempt that was given up on. It never waits for a caller, and it
// changes nothing that has been settled since.
func (g *Gateway) late(act action.Action, planned action.Attempt, o action.Outcome) {
	if !g.enter() {
		return
	}
	defer g.work.Done()
	for {
		again := false
		err := g.mustCommit(func(tx store.Tx) error {
			now, err := tx.Action(act.ID)
			switch {
			case err != nil:
				return err
			case now.Owner != g.lease.owner:
				_, err = g.stale(tx, now, act.Epoch, planned, o)
				return err
			case now.State == action.Unknown && !now.Abandoned:
				_, err = g.lateIn(tx, now, planned, o)
				return err
			case now.State == action.Dispatched && now.Job == "": // another attempt runs: let it end first
				again = true
			case now.State != action.Completed && o.Certainty == action.EffectProven: // whoever settled it otherwise may want to know
				_, err = g.stale(tx, now, act.Epoch, planned, o)
			}
			return err
		})
		if err != nil {
			g.log.Error("a late answer could not be recorded", "action_id", act.ID, "error", err)
		}
		if !again || err != nil {
			return
		}
		select {
		case <-g.ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lateIn records a late answer, and what it proves. That one attempt had no effect settles the action only if there was
// no other.
func (g *Gateway) lateIn(tx store.Tx, act action.Action, planned action.Attempt, o action.Outcome) (action.Action, error) {
	seen := fromOutcome(tx, act, action.ByLate, planned, o)
	switch {
	case o.Certainty == action.EffectProven:
		seen.Finding = action.Found
	case o.Certainty == action.NoEffectProven && act.Attempt == 1:
		seen.Finding = action.EndedWithout
	}
	act, err := g.observe(tx, act, action.ActionObserved, action.Observed{Observation: seen, NotBefore: act.NotBefore})
	if err != nil {
		return act, err
	}
	var w written
	moved := action.Moved{Reason: string(action.ByLate), Ended: ended(tx.Now(), planned, o)}
	switch {
	case o.Job != "" && act.Job == "":
		if act, err = g.delegated(tx, act, planned, o, &w); err != nil || act.Recovery != action.ReviewRequired {
			return act, err
		}
		return g.move(tx, act, action.Moved{ // there is something to ask about now, so no person is needed yet
			Transition: action.T19, Reason: "accepted_late", Recovery: action.Reconciling, NotBefore: act.NotBefore,
		})
	case seen.Finding == action.Found:
		moved.Transition = action.T17
	case seen.Finding == action.EndedWithout:
		moved.Transition, moved.FailureClass = action.T20, action.NoEffectConfirmed
	default:
		return act, nil
	}
	if moved.Result, err = keep(tx, act, moved.Transition, o.Result, &w); err != nil {
		return act, err
	}
	return g.move(tx, act, moved)
}

// stale records what an owner reports after it was overtaken, by another owner or by a person's decision. It moves nothing:
// something may have been done about the action already.
func (g *Gateway) stale(tx store.Tx, now action.Action, held int64, planned action.Attempt, o action.Outcome) (action.Action, error) {
	seen := fromOutcome(tx, now, action.ByStale, planned, o)
	g.log.Warn("an outcome came after the action was taken over or settled: it is on record, and settles nothing",
		"action_id", now.ID, "certainty", o.Certainty.String())
	return g.observe(tx, now, action.ActionObserved, action.Observed{Observation: seen, FromEpoch: held})
}

func fromOutcome(tx store.Tx, act action.Action, kind action.ObservationKind, planned action.Attempt, o action.Outcome) action.Observation {
	return action.Observation{
		ID: action.ObservationID(newID(action.ObservationPrefix)), Action: act.ID, Number: act.Observations + 1, Kind: kind,
		About: planned.ID, Certainty: o.Certainty, Status: o.Status, Reason: o.Reason, Remote: o.Remote, SpanID: planned.SpanID,
		Started: planned.Started, Ended: tx.Now(),
	}
}

// delegated records that the target took the action on and finishes it later, with its id for the work.
func (g *Gateway) delegated(tx store.Tx, act action.Action, planned action.Attempt, o action.Outcome, w *written) (action.Action, error) {
	first := time.Second
	if c, err := g.version(g.ctx, act.Tool, act.Contract); err == nil && c.Poll != nil {
		first = min(first, c.Poll.Every)
	}
	d := action.Delegated{FromAttempt: act.Attempt, FromEpoch: act.Epoch, Ended: ended(tx.Now(), planned, o), NotBefore: in(tx, first)}
	var err error
	if d.Job, err = tx.PutPayload(store.Job, string(act.ID), []byte(o.Job)); err != nil {
		return act, err
	}
	w.attempt = *d.Ended
	ev := about(tx, act, action.ActionDelegated)
	ev.Attempt = planned.ID
	ev.Trace = action.Trace{TraceID: act.Trace.TraceID, SpanID: planned.SpanID, ParentSpanID: act.Trace.SpanID}
	ev.DelegatedBody = &d
	return apply(tx, act, ev)
}
