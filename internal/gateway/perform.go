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

// perform works on an action until it is settled or nothing may be done about it by itself: plan, send or ask, write down
// what came of it. Each plan is durable before its first byte, and what came of it is durable before anybody is told.
func (g *Gateway) perform(f *flight, act action.Action, planned plan) action.Action {
	for {
		if planned.nothing() {
			if act, planned = g.plan(act); planned.nothing() {
				return act
			}
		}
		var err error
		if planned.question != nil {
			act, err = g.learn(f, act, *planned.question, g.ask(g.ctx, act, *planned.question))
		} else {
			act, err = g.record(f, act, *planned.attempt, g.send(g.ctx, act, planned))
		}
		if err != nil {
			g.log.Error("what came of an action could not be recorded: it may have had its effect", "action_id", act.ID, "error", err)
			return act // as planned: nothing sends it again, and the next start finds it and calls it unknown
		}
		planned = plan{}
		if !g.pause(f, act) {
			return act
		}
	}
}

// plan writes the next attempt or question down, if the rule allows one, in a change of its own.
func (g *Gateway) plan(act action.Action) (action.Action, plan) {
	next := act
	var planned plan
	g.live()
	err := g.mustCommit(func(tx store.Tx) error {
		if err := g.ctx.Err(); err != nil { // deed is closing
			return err
		}
		now, err := tx.Action(act.ID)
		if err != nil {
			return err
		}
		next, planned, err = g.planIn(tx, now)
		return err
	})
	if err != nil {
		g.log.Error("nothing could be planned, so nothing is sent", "action_id", act.ID, "error", err)
		return act, plan{}
	}
	return next, planned
}

// send hands a planned attempt to its executor; nothing else in deed sends. It sends the recorded bytes, and only if they
// are what was allowed and this gateway still owns the action.
func (g *Gateway) send(ctx context.Context, act action.Action, p plan) action.Outcome {
	planned := *p.attempt
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
	if act.Lapsed(time.Now(), false) {
		return g.notSent(act, voidLapsed, nil)
	}
	crashpoint.Here(crashpoint.AfterPlan) // W2
	if !g.holds(p.lapses) {
		return g.notSent(act, "lease_lost", nil)
	}
	outcome := executor.Perform(ctx, action.Dispatch{
		Action: act.ID, Attempt: planned.ID, Number: planned.Number,
		Operation: op, Token: string(act.ID), Allowed: act.Binding.Digest, Binding: binding,
		Trace: action.Trace{TraceID: act.Trace.TraceID, SpanID: planned.SpanID, ParentSpanID: act.Trace.SpanID},
		Judge: g.judge(ctx, act), Secret: g.opener(act.ID, op),
		Late: func(o action.Outcome) { g.late(act, planned, o) },
	})
	crashpoint.Here(crashpoint.AfterEffect) // W3
	return sound(outcome)
}

// ask hands a planned question to its executor. It has no effect, and it is one request as well.
func (g *Gateway) ask(ctx context.Context, act action.Action, planned action.Observation) reply {
	q, err := g.question(ctx, act, planned)
	if err != nil {
		return g.notAsked(act, "question_unreadable", err)
	}
	executor, ok := g.executors[q.operation.Channel]
	if !ok {
		return g.notAsked(act, "no_executor", nil)
	}
	crashpoint.Here(crashpoint.AfterQuestion)
	return q.reply(executor.Perform(ctx, q.dispatch(act, planned)))
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
		settled, err = g.settle(tx, now, act.Epoch, planned, o, &w)
		return err
	}
	err := g.mustCommit(write)
	if err != nil && !errors.Is(err, store.ErrLatched) { // something in the answer cannot be recorded: what it proves can be
		g.log.Error("a target's answer could not be recorded; its outcome is recorded without it", "action_id", act.ID, "error", err)
		o, w = bare(o), written{}
		err = g.mustCommit(write)
	}
	if err != nil {
		return act, err
	}
	f.written = &w
	crashpoint.Here(crashpoint.AfterOutcome) // W4
	return settled, nil
}

// pause waits before the next step and reports whether there is one to make. A longer wait is the caller's: it gets the
// action back, with the time from which the same call goes on. Nothing new is sent for callers that have all left.
func (g *Gateway) pause(f *flight, act action.Action) bool {
	const moment = 2 * time.Second
	wait := until(act)
	stop := g.ctx.Done()
	switch work, _ := act.Next(time.Now(), false); work {
	case action.WorkNone:
		return false
	case action.WorkSend:
		wait = max(wait, action.Pause(act.Attempt))
	case action.WorkAsk:
		stop = g.shut.Done() // the next start asks
	case action.WorkClose, action.WorkReview:
		return true
	}
	if wait > moment {
		return false
	}
	left := g.flights.want(f)
	if act.State != action.Authorized { // finding out what happened is wanted by the record, not by a caller
		left = nil
	}
	select {
	case <-time.After(wait):
		return true
	case <-left:
		return false
	case <-stop:
		return false
	}
}
