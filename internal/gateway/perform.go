package gateway

import (
	"context"
	"errors"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/crashpoint"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/store"
)

// perform works on an action until it is settled or may not be sent again: plan, send, write down what came of it. The
// plan of each attempt is durable before its first byte, and its outcome is durable before anybody is told.
func (g *Gateway) perform(f *flight, act action.Action, planned *action.Attempt) action.Action {
	for {
		if planned == nil {
			if act, planned = g.plan(act); planned == nil {
				return act
			}
		}
		outcome := g.send(g.ctx, act, *planned)
		settled, err := g.record(f, act, *planned, outcome)
		if err != nil {
			g.log.Error("the outcome of an attempt could not be recorded: it may have had its effect", "action_id", act.ID, "error", err)
			return act // still dispatched: nothing sends it again, and the next start finds it and calls it unknown
		}
		act, planned = settled, nil
		if !g.pause(f, act) {
			return act
		}
	}
}

// plan writes the next attempt down, if the rule allows one, in a change of its own.
func (g *Gateway) plan(act action.Action) (action.Action, *action.Attempt) {
	next := act
	var attempt *action.Attempt
	err := g.mustCommit(func(tx store.Tx) error {
		if err := g.ctx.Err(); err != nil { // deed is closing
			return err
		}
		now, err := tx.Action(act.ID)
		if err != nil {
			return err
		}
		next, attempt, err = g.planIn(tx, now)
		return err
	})
	if err != nil {
		g.log.Error("an attempt could not be planned, so nothing is sent", "action_id", act.ID, "error", err)
		return act, nil
	}
	return next, attempt
}

// send hands a planned attempt to its executor; nothing else in deed calls one. It sends the recorded bytes, and only if
// they are what was allowed.
func (g *Gateway) send(ctx context.Context, act action.Action, planned action.Attempt) action.Outcome {
	op, err := g.recorded(ctx, act)
	if err != nil {
		return g.notSent(act, "record_unreadable", err)
	}
	binding, err := digest.Binding(act.ID, op, act.Operation)
	if err != nil || binding != act.Binding.Digest {
		return g.notSent(act, "binding_changed", err)
	}
	executor, ok := g.executors[op.Channel]
	if !ok {
		return g.notSent(act, "no_executor", nil)
	}
	crashpoint.Here(crashpoint.AfterPlan) // W2
	outcome := executor.Perform(ctx, action.Dispatch{
		Action: act.ID, Attempt: planned.ID, Number: planned.Number,
		Operation: op, Token: string(act.ID), Allowed: act.Binding.Digest, Binding: binding,
		Trace: action.Trace{TraceID: act.Trace.TraceID, SpanID: planned.SpanID, ParentSpanID: act.Trace.SpanID},
		Judge: g.judge(ctx, act),
	})
	crashpoint.Here(crashpoint.AfterEffect) // W3
	return sound(outcome)
}

// record writes an outcome down. It depends on no caller, and it waits for room: an outcome is never refused.
func (g *Gateway) record(f *flight, act action.Action, planned action.Attempt, o action.Outcome) (action.Action, error) {
	var settled action.Action
	var w written
	o = g.refreshed(act, o) // one 401 may be a stale credential
	write := func(tx store.Tx) error {
		now, err := tx.Action(act.ID)
		if err != nil {
			return err
		}
		moved, err := outcomeIn(tx, now, planned, o, &w)
		if err != nil {
			return err
		}
		settled, err = g.move(tx, now, moved)
		return err
	}
	err := g.mustCommit(write)
	if err != nil && !errors.Is(err, store.ErrLatched) { // something in the answer cannot be recorded: what it proves can be
		g.log.Error("a target's answer could not be recorded; its outcome is recorded without it", "action_id", act.ID, "error", err)
		o, w = bare(o), written{}
		err = g.mustCommit(write)
	}
	if err == nil {
		f.written = &w
		crashpoint.Here(crashpoint.AfterOutcome) // W4
	}
	return settled, err
}

// pause waits before the next attempt and reports whether there is one to make. A longer wait is the caller's: it gets
// the action back, with the time from which the same call goes on. Nothing new is sent for callers that have all left.
func (g *Gateway) pause(f *flight, act action.Action) bool {
	const moment = 2 * time.Second
	if _, ok := act.MaySend(time.Now(), false); !ok {
		return false
	}
	wait := max(action.Pause(act.Attempt), until(act))
	if wait > moment {
		return false
	}
	left := g.flights.want(f)
	if act.State == action.Unknown { // finding out what happened is wanted by the record, not by a caller
		left = nil
	}
	select {
	case <-time.After(wait):
		return true
	case <-left:
		return false
	case <-g.ctx.Done():
		return false
	}
}
