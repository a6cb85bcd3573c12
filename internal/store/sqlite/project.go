package sqlite

import (
	"database/sql"
	"fmt"
	"strconv"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

const insertRun = `insert into runs (id, key, kind, identity, strength, shared, pid, start_ticks, boot_id, executable, digest,
	via, started_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (p *projector) writeRun(r action.Run) error {
	a, e := r.Actor, r.Actor.Evidence
	_, err := p.insertRun.ExecContext(background, string(r.ID), r.Key, a.Kind, a.Identity, string(a.Strength), a.Shared,
		int64(e.PID), strconv.FormatUint(e.StartTime, 10), e.BootID, e.Executable, e.Digest, e.Via, micros(r.Started))
	return err
}

const insertCall = `insert into calls (seq, id, event, run, intent, action, actor, strength, transport, era, request_id, session,
	client, upstream_source, traceparent, tracestate, idem_key, match, prior_state, why, code, trace_id, span_id, parent_span_id, at)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (p *projector) writeCall(ev action.Event, at place) error {
	c := ev.CallBody
	_, err := p.insertCall.ExecContext(background, at.seq, string(ev.Call), string(ev.Kind), string(ev.Run), string(ev.Intent),
		string(ev.Action), c.Actor, string(c.Strength), c.Protocol.Transport, c.Protocol.Era, c.Protocol.RequestID,
		c.Protocol.Session, c.Protocol.Client, c.Upstream.Source, c.Upstream.Traceparent, c.Upstream.Tracestate,
		c.IdemKey, string(c.Match), string(c.Prior), c.Why, string(c.Code), ev.Trace.TraceID, ev.Trace.SpanID, ev.Trace.ParentSpanID,
		micros(ev.Time))
	return err
}

const insertIntent = `insert into intents (id, run, tool, contract, idem_key, step, tool_call_id, key_source, arguments, logged_at)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (p *projector) writeIntent(i action.Intent) error {
	_, err := p.insertIntent.ExecContext(background, string(i.ID), string(i.Run), i.Tool, i.Contract, i.IdemKey, i.Step,
		i.ToolCallID, i.KeySource, string(i.Arguments), micros(i.At))
	if err == nil {
		p.tools[i.ID] = i.Tool
	}
	return err
}

const insertAction = `insert into actions (` + actionColumns + `, open)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
	?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)`

func (p *projector) writeAccepted(r row, at place) error {
	r.seq, r.eventSeq, r.eventHash = at.seq, at.seq, at.hash
	values, err := r.inserted()
	if err != nil {
		return err
	}
	if _, err := p.insertAction.ExecContext(background, values...); err != nil {
		return err
	}
	p.seen[r.ID] = r
	return nil
}

// The old state and attempt are in the where, so that nothing moves an action that has moved on.
const (
	moveAction = `update actions set state = ?, delivery = ?, failure_class = ?, reject_reason = ?, recovery = ?, doubted = ?, reason = ?,
		attempt = ?, not_before = ?, resend_before = ?, decision = ?, decision_kind = ?, decision_rule = ?, binding_digest = ?,
		target_status = ?, authorized_at = ?, dispatched_at = ?, finished_at = ?, updated_at = ?, event_seq = ?, event_hash = ?,
		owner = ?, epoch = ?, finding = ?, hinted = ?, abandoned = ?, unknown_at = ?, max_attempts = ?, approval = ?, decision_until = ?, withdrawn = ?`
	ofAction         = ` where seq = ? and state = ? and attempt = ? and delivery = ?`
	moveActionAcross = moveAction + `, open = ?, result = ?, repeat_token = ?` + ofAction
	deliverAction    = `update actions set delivery = ?, updated_at = ?, event_seq = ?, event_hash = ?` + ofAction
	observeAction    = `update actions set owner = ?, epoch = ?, observations = ?, finding = ?, hinted = ?, not_before = ?, updated_at = ?,
		event_seq = ?, event_hash = ?` + ofAction
	touchAction    = `update actions set withdrawn = ?, updated_at = ?, event_seq = ?, event_hash = ?` + ofAction
	purgeAction    = `update actions set purged = 1, updated_at = ?, event_seq = ?, event_hash = ?` + ofAction
	delegateAction = `update actions set job = ?, not_before = ?, target_status = ?, updated_at = ?, event_seq = ?, event_hash = ?` + ofAction
)

func (p *projector) writeChange(s step, at place) error {
	r := s.to
	r.eventSeq, r.eventHash = at.seq, at.hash
	var err error
	switch ev := s.event; {
	case ev.MoveBody != nil:
		err = p.writeMove(s.from, r, *ev.MoveBody)
	case ev.ObservedBody != nil:
		err = p.writeObserved(s.from, r, *ev.ObservedBody)
	case ev.PurgedBody != nil:
		err = p.compareAndSet(p.purge, s.from, []any{micros(r.UpdatedAt), r.eventSeq, r.eventHash[:]})
	case ev.DelegatedBody != nil:
		err = p.writeDelegated(s.from, r, *ev.DelegatedBody)
	case ev.ApprovalBody != nil, ev.DecidedBody != nil, ev.VoidedBody != nil, ev.RevokedBody != nil:
		if err = p.compareAndSet(p.touch, s.from, []any{r.Withdrawn, micros(r.UpdatedAt), r.eventSeq, r.eventHash[:]}); err == nil {
			err = p.writeApproval(s, at)
		}
	default:
		err = p.compareAndSet(p.deliver, s.from, []any{string(r.Delivery), micros(r.UpdatedAt), r.eventSeq, r.eventHash[:]})
	}
	if err != nil {
		return err
	}
	p.seen[r.ID] = r
	return nil
}

func (p *projector) writeMove(from, r row, m action.Moved) error {
	values := []any{string(r.State), string(r.Delivery), string(r.FailureClass), string(r.RejectReason), string(r.Recovery),
		r.Doubted, r.Reason, int64(r.Attempt), micros(r.NotBefore), micros(r.ResendBefore), string(r.Binding.Decision), r.Binding.Kind,
		r.Binding.Rule, r.Binding.Digest, int64(r.TargetStatus), micros(r.AuthorizedAt), micros(r.DispatchedAt),
		micros(r.FinishedAt), micros(r.UpdatedAt), r.eventSeq, r.eventHash[:],
		string(r.Owner), r.Epoch, string(r.Finding), r.Hinted, r.Abandoned, micros(r.UnknownAt), int64(r.MaxAttempts),
		string(r.Approval), micros(r.Binding.Until), r.Withdrawn}
	statement := p.move
	// Moves between open states leave the columns alone on which the larger indexes stand.
	if from.State.Final() != r.State.Final() || m.Result != nil {
		statement = p.finish
		values = append(values, !r.State.Final(), string(r.Result), r.RepeatToken)
	}
	if err := p.compareAndSet(statement, from, values); err != nil {
		return err
	}
	if m.Ended != nil {
		if err := p.writeEnded(*m.Ended); err != nil {
			return err
		}
	}
	if m.Started != nil {
		if err := p.writeStarted(*m.Started); err != nil {
			return err
		}
	}
	if m.Result != nil {
		return p.writeResult(r.ID, *m.Result)
	}
	return nil
}

func (p *projector) compareAndSet(s *sql.Stmt, from row, values []any) error {
	values = append(values, from.seq, string(from.State), int64(from.Attempt), string(from.Delivery))
	result, err := s.ExecContext(background, values...)
	if err != nil {
		return err
	}
	return onlyOne(result, string(from.ID))
}

func onlyOne(result sql.Result, what string) error {
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%s: %w", what, store.ErrStale)
	}
	return err
}

const insertAttempt = `insert into attempts (action, number, id, state, certainty, bytes_sent, status, reason, remote, span_id,
	retry_of, started_at, ended_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (p *projector) writeStarted(a action.Attempt) error {
	_, err := p.insertAttempt.ExecContext(background, string(a.Action), int64(a.Number), string(a.ID), string(a.State),
		a.Certainty.String(), a.BytesSent, int64(a.Status), a.Reason, a.Remote, a.SpanID, string(a.RetryOf),
		micros(a.Started), micros(a.Ended))
	return err
}

// What an attempt is (its number, its span, what it follows) stays as it was planned.
const endAttempt = `update attempts set state = ?, certainty = ?, bytes_sent = ?, status = ?, reason = ?, remote = ?,
	started_at = coalesce(?, started_at), ended_at = ? where id = ? and action = ?`

func (p *projector) writeEnded(a action.Attempt) error {
	result, err := p.endAttempt.ExecContext(background, string(a.State), a.Certainty.String(), a.BytesSent, int64(a.Status),
		a.Reason, a.Remote, micros(a.Started), micros(a.Ended), string(a.ID), string(a.Action))
	if err != nil {
		return err
	}
	return onlyOne(result, string(a.ID))
}

const insertResult = `insert into results (id, action, commitment, media_type, size, complete, withheld, repeat_token)
	values (?, ?, ?, ?, ?, ?, ?, ?)`

func (p *projector) writeResult(id action.ID, r action.StoredResult) error {
	_, err := p.insertResult.ExecContext(background, string(r.ID), string(id), string(r.Commitment), r.MediaType, r.Size,
		r.Complete, r.Withheld, r.RepeatToken)
	return err
}
