package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// last is the newest attempt of an action; the zero value if there is none.
func last(tx store.Tx, act action.Action) (action.Attempt, error) {
	if act.Attempt == 0 {
		return action.Attempt{}, nil
	}
	attempts, err := tx.Attempts(act.ID)
	if err != nil || len(attempts) == 0 {
		return action.Attempt{}, err
	}
	return attempts[len(attempts)-1], nil
}

// withdraw ends an action while nothing of it could have had an effect. It is no decision: an equal call is a new action.
func (g *Gateway) withdraw(act action.Action, why action.RejectReason, reason string) action.Action {
	next := act
	err := g.mustCommit(func(tx store.Tx) error {
		now, err := tx.Action(act.ID)
		if err != nil || now.State != action.Authorized {
			return err
		}
		next, err = g.move(tx, now, action.Moved{Transition: action.T10, RejectReason: why, Reason: reason})
		return err
	})
	if err != nil {
		g.log.Error("the end of an action could not be recorded", "action_id", act.ID, "error", err)
		return act
	}
	return next
}

// written is what an outcome put on record: the attempt, the target's answer and the token that stands in it.
type written struct {
	attempt action.Attempt
	result  action.StoredResult
	body    []byte
	token   string
}

// settle writes an outcome down inside a change: as a move, as a job that the target took on, or, when another owner has
// taken the action over since, as a stale report that moves nothing.
func (g *Gateway) settle(tx store.Tx, now action.Action, held int64, planned action.Attempt, o action.Outcome, w *written) (action.Action, error) {
	switch {
	case now.Epoch != held:
		return g.stale(tx, now, held, planned, o)
	case o.Job != "":
		return g.delegated(tx, now, planned, o, w)
	}
	moved, err := outcomeIn(tx, now, planned, o, w)
	if err != nil {
		return now, err
	}
	next, err := g.move(tx, now, moved)
	if err == nil && next.State == action.Authorized && next.Withdrawn { // it was revoked on its way, and had no effect
		return g.ready(tx, next)
	}
	return next, err
}

// ended is the attempt as its outcome left it.
func ended(now time.Time, planned action.Attempt, o action.Outcome) *action.Attempt {
	return &action.Attempt{
		ID: planned.ID, Action: planned.Action, Number: planned.Number, State: o.State, Certainty: o.Certainty,
		BytesSent: o.BytesSent, Status: o.Status, Reason: o.Reason, Remote: o.Remote,
		SpanID: planned.SpanID, RetryOf: planned.RetryOf, Started: planned.Started, Ended: now,
	}
}

// outcomeIn turns an outcome into the move that it leads to, and keeps the target's answer.
func outcomeIn(tx store.Tx, act action.Action, planned action.Attempt, o action.Outcome, w *written) (action.Moved, error) {
	s := act.Settle(o)
	moved := action.Moved{
		Transition: s.Transition, Reason: s.Reason,
		FailureClass: s.FailureClass, Recovery: s.Recovery, ResendOver: s.ResendOver,
		Ended: ended(tx.Now(), planned, o),
	}
	w.attempt = *moved.Ended
	if o.Retry && o.RetryAfter > 0 {
		moved.NotBefore = in(tx, o.RetryAfter)
	}
	if o.Status == 0 {
		return moved, nil
	}
	var err error
	moved.Result, err = keep(tx, act, s.Transition, o.Result, w)
	return moved, err
}

// in is a time to wait for. A wait passes by the clock on the wall, also while that is behind the journal.
func in(tx store.Tx, wait time.Duration) time.Time {
	if tx.ClockBack() {
		return time.Now().Add(wait)
	}
	return tx.Now().Add(wait)
}

// keep stores the target's answer apart from the journal. A completed action with effects also gets the token that a
// deliberate repeat has to cite: it stands nowhere else.
func keep(tx store.Tx, act action.Action, t action.Transition, r action.Result, w *written) (*action.StoredResult, error) {
	stored := &action.StoredResult{
		ID: action.ResultID(newID(action.ResultPrefix)), MediaType: r.MediaType, Size: r.Size,
		Complete: r.Complete, Withheld: r.Withheld,
	}
	var err error
	if stored.Commitment, err = tx.PutPayload(store.Answer, string(stored.ID), r.Body); err != nil {
		return nil, err
	}
	if len(r.Headers) > 0 { // they tell a first answer from one out of the target's memory
		headers, err := json.Marshal(r.Headers)
		if err != nil {
			return nil, err
		}
		if _, err := tx.PutPayload(store.Headers, string(stored.ID), headers); err != nil {
			return nil, err
		}
	}
	if t.To() == action.Completed && act.Class != action.ReadOnly {
		token := newToken(action.RepeatPrefix)
		if _, err = tx.PutPayload(store.Repeat, string(stored.ID), []byte(token)); err != nil {
			return nil, err
		}
		stored.RepeatToken, w.token = tokenDigest(token), token
	}
	w.result, w.body = *stored, r.Body
	return stored, nil
}

// refreshed reads the credential anew after the first refusal of it. The contract promised that such a refusal comes
// before any effect; a second one is the target's last word.
func (g *Gateway) refreshed(act action.Action, o action.Outcome) action.Outcome {
	if o.Reason != "unauthorized" || !o.Retry {
		return o
	}
	if attempts, err := g.store.Attempts(g.ctx, act.ID); err != nil || refreshedBefore(attempts) {
		o.Retry = false
		return o
	}
	if err := g.vault.Refresh(g.ctx, act.Credential); err != nil {
		g.log.Warn("a refused credential could not be read anew", "action_id", act.ID, "credential", act.Credential)
		o.Retry = false
		return o
	}
	o.Reason = "credential_refreshed"
	return o
}

func refreshedBefore(attempts []action.Attempt) bool {
	return slices.ContainsFunc(attempts, func(t action.Attempt) bool { return t.Reason == "credential_refreshed" })
}

// sound gives an outcome that says nothing the words for that, so that it can be recorded.
func sound(o action.Outcome) action.Outcome {
	if o.State == "" {
		o.State, o.Certainty, o.Retry = action.AttemptTransportError, action.Indeterminate, false
	}
	if o.Reason == "" && o.Certainty == action.Indeterminate {
		o.Reason = "no_evidence"
	}
	return o
}

// bare is an outcome without anything that a target wrote.
func bare(o action.Outcome) action.Outcome {
	return action.Outcome{
		State: o.State, Certainty: o.Certainty, Retry: o.Retry, BytesSent: o.BytesSent, Reason: "answer_unrecordable",
		Started: o.Started, Ended: o.Ended,
	}
}

// move journals a transition and gives the action as it stands after it.
func (g *Gateway) move(tx store.Tx, act action.Action, m action.Moved) (action.Action, error) {
	m.FromAttempt, m.FromEpoch = act.Attempt, act.Epoch
	ev := about(tx, act, kindOf(m.Transition))
	ev.MoveBody = &m
	for _, attempt := range []*action.Attempt{m.Ended, m.Started} {
		if attempt != nil && attempt.ID != "" {
			ev.Attempt = attempt.ID
			ev.Trace = action.Trace{TraceID: act.Trace.TraceID, SpanID: attempt.SpanID, ParentSpanID: act.Trace.SpanID}
		}
	}
	return apply(tx, act, ev)
}

// about is an event about an action, without its body.
func about(tx store.Tx, act action.Action, kind action.EventKind) action.Event {
	return action.Event{
		ID: action.EventID(newID(action.EventPrefix)), Time: tx.Now(), Kind: kind,
		Run: act.Run, Intent: act.Intent, Action: act.ID, Trace: act.Trace,
	}
}

// apply journals an event and gives the action as it stands after it.
func apply(tx store.Tx, act action.Action, ev action.Event) (action.Action, error) {
	if err := tx.Append(ev); err != nil {
		return act, err
	}
	return act.Apply(ev)
}

// kindOf names the event of a transition after the state that it reaches.
func kindOf(t action.Transition) action.EventKind {
	if t == action.T19 { // it stays where it is
		return action.ActionRecovered
	}
	return action.MovedTo(t.To())
}

// recorded reads the operation back from the record, checked against the commitment in the journal.
func (g *Gateway) recorded(ctx context.Context, act action.Action) (action.Operation, error) {
	var op action.Operation
	data, err := g.store.Payload(ctx, store.Operation, string(act.ID))
	if err != nil {
		return op, err
	}
	if err := json.Unmarshal(data, &op); err != nil {
		return op, fmt.Errorf("the recorded operation of %s: %w", act.ID, err)
	}
	return op, nil
}

// mustCommit commits a change that may not be refused for want of room, such as an outcome.
func (g *Gateway) mustCommit(change func(store.Tx) error) error {
	for {
		err := g.store.Commit(context.Background(), change)
		if !errors.Is(err, store.ErrFull) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// notSent is the outcome of an attempt that ended before anything could leave.
func (g *Gateway) notSent(act action.Action, reason string, err error) action.Outcome {
	g.log.Error("nothing was sent", "action_id", act.ID, "reason", reason, "error", err)
	return action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: reason}
}

func tokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
