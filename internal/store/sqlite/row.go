package sqlite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// row is an action with what the store itself knows of it.
type row struct {
	action.Action
	seq       int64        // of the event that accepted it
	eventSeq  int64        // of its newest event
	eventHash journal.Hash // of that event
}

// actionColumns are the columns of an action in the order in which scanAction reads them.
const actionColumns = `seq, id, intent, run, actor, tool, state, delivery, failure_class, reject_reason, recovery, doubted, reason,
	class, contract, attempt, max_attempts, not_before, resend_before, key_life, attach_for,
	channel, protocol, host, port, private, method, path_template, credential,
	key_id, fingerprint, effect, args, resource, decision, decision_kind, decision_rule, binding_digest,
	operation, repeats, similar, target_status, result, repeat_token, trace_id, span_id, parent_span_id,
	accepted_at, authorized_at, dispatched_at, finished_at, updated_at, event_seq, event_hash,
	owner, epoch, job, observations, finding, hinted, abandoned, can_ask, review_after, compensates, unknown_at,
	keep_result, purged, approval, decision_until, withdrawn`

func scanAction(scan func(...any) error) (r row, err error) {
	a := &r.Action
	var private string
	var keyLife, attachFor, reviewAfter, keepResult int64
	var hash []byte
	if err := scan(&r.seq, &a.ID, &a.Intent, &a.Run, &a.Actor, &a.Tool, &a.State, &a.Delivery, &a.FailureClass, &a.RejectReason,
		&a.Recovery, &a.Doubted, &a.Reason, &a.Class, &a.Contract, &a.Attempt, &a.MaxAttempts, instant{&a.NotBefore}, instant{&a.ResendBefore},
		&keyLife, &attachFor, &a.Channel, &a.Target.Scheme, &a.Target.Host, &a.Target.Port, &private, &a.Method, &a.Template,
		&a.Credential, &a.Digests.KeyID, &a.Digests.Fingerprint, &a.Digests.Effect, &a.Digests.Args, &a.Digests.Resource,
		&a.Binding.Decision, &a.Binding.Kind, &a.Binding.Rule, &a.Binding.Digest, &a.Operation, &a.Repeats, &a.Similar,
		&a.TargetStatus, &a.Result, &a.RepeatToken, &a.Trace.TraceID, &a.Trace.SpanID, &a.Trace.ParentSpanID,
		instant{&a.AcceptedAt}, instant{&a.AuthorizedAt}, instant{&a.DispatchedAt}, instant{&a.FinishedAt}, instant{&a.UpdatedAt},
		&r.eventSeq, &hash, &a.Owner, &a.Epoch, &a.Job, &a.Observations, &a.Finding, &a.Hinted, &a.Abandoned, &a.CanAsk, &reviewAfter,
		&a.Compensates, instant{&a.UnknownAt}, &keepResult, &a.Purged, &a.Approval, instant{&a.Binding.Until}, &a.Withdrawn); err != nil {
		return row{}, fmt.Errorf("read an action: %w", err)
	}
	if len(hash) != len(r.eventHash) {
		return row{}, fmt.Errorf("the hash of the newest event of %s has %d bytes", a.ID, len(hash))
	}
	r.eventHash = journal.Hash(hash)
	a.KeyLife, a.AttachFor = time.Duration(keyLife)*time.Microsecond, time.Duration(attachFor)*time.Microsecond
	a.ReviewAfter, a.KeepResult = time.Duration(reviewAfter)*time.Microsecond, time.Duration(keepResult)*time.Microsecond
	if private != "" {
		if err := json.Unmarshal([]byte(private), &a.Target.Private); err != nil {
			return row{}, fmt.Errorf("read the address ranges of %s: %w", a.ID, err)
		}
	}
	return r, nil
}

// privateText is the column private: a JSON list, or "" for none.
func privateText(t action.Target) (string, error) {
	if len(t.Private) == 0 {
		return "", nil
	}
	b, err := json.Marshal(t.Private)
	return string(b), err
}

// inserted gives the values of actionColumns for a new action.
func (r row) inserted() ([]any, error) {
	private, err := privateText(r.Target)
	if err != nil {
		return nil, err
	}
	return []any{r.seq, string(r.ID), string(r.Intent), string(r.Run), r.Actor, r.Tool, string(r.State), string(r.Delivery),
		string(r.FailureClass), string(r.RejectReason), string(r.Recovery), r.Doubted, r.Reason, string(r.Class), r.Contract,
		int64(r.Attempt), int64(r.MaxAttempts), micros(r.NotBefore), micros(r.ResendBefore),
		r.KeyLife.Microseconds(), r.AttachFor.Microseconds(), r.Channel, r.Target.Scheme, r.Target.Host, int64(r.Target.Port),
		private, r.Method, r.Template, r.Credential, r.Digests.KeyID, r.Digests.Fingerprint, r.Digests.Effect, r.Digests.Args,
		r.Digests.Resource, string(r.Binding.Decision), r.Binding.Kind, r.Binding.Rule, r.Binding.Digest, string(r.Operation),
		string(r.Repeats), string(r.Similar), int64(r.TargetStatus), string(r.Result), r.RepeatToken, r.Trace.TraceID,
		r.Trace.SpanID, r.Trace.ParentSpanID, micros(r.AcceptedAt), micros(r.AuthorizedAt), micros(r.DispatchedAt),
		micros(r.FinishedAt), micros(r.UpdatedAt), r.eventSeq, r.eventHash[:],
		string(r.Owner), r.Epoch, string(r.Job), int64(r.Observations), string(r.Finding), r.Hinted, r.Abandoned, r.CanAsk,
		r.ReviewAfter.Microseconds(), string(r.Compensates), micros(r.UnknownAt),
		r.KeepResult.Microseconds(), r.Purged, string(r.Approval), micros(r.Binding.Until), r.Withdrawn}, nil
}

func scanAttempt(scan func(...any) error) (a action.Attempt, err error) {
	var certainty string
	if err := scan(&a.Action, &a.Number, &a.ID, &a.State, &certainty, &a.BytesSent, &a.Status, &a.Reason, &a.Remote, &a.SpanID,
		&a.RetryOf, instant{&a.Started}, instant{&a.Ended}); err != nil {
		return action.Attempt{}, fmt.Errorf("read an attempt: %w", err)
	}
	if certainty != action.Indeterminate.String() {
		a.Certainty = action.Certainty(certainty)
	}
	return a, nil
}

func scanObservation(scan func(...any) error) (o action.Observation, err error) {
	var certainty string
	if err := scan(&o.ID, &o.Action, &o.Number, &o.Kind, &o.About, &o.Finding, &certainty, &o.Status, &o.Reason, &o.Remote,
		&o.SpanID, &o.Evidence, instant{&o.Started}, instant{&o.Ended}); err != nil {
		return action.Observation{}, fmt.Errorf("read an observation: %w", err)
	}
	if certainty != action.Indeterminate.String() {
		o.Certainty = action.Certainty(certainty)
	}
	return o, nil
}

func scanRun(scan func(...any) error) (r action.Run, err error) {
	e := &r.Actor.Evidence
	var ticks string
	if err := scan(&r.ID, &r.Key, &r.Actor.Kind, &r.Actor.Identity, &r.Actor.Strength, &r.Actor.Shared, &e.PID, &ticks, &e.BootID,
		&e.Executable, &e.Digest, &e.Via, instant{&r.Started}); err != nil {
		return action.Run{}, fmt.Errorf("read a run: %w", err)
	}
	if e.StartTime, err = strconv.ParseUint(ticks, 10, 64); err != nil {
		return action.Run{}, fmt.Errorf("read the start of the process of %s: %w", r.ID, err)
	}
	return r, nil
}

func scanIntent(scan func(...any) error) (i action.Intent, err error) {
	if err := scan(&i.ID, &i.Run, &i.Tool, &i.Contract, &i.IdemKey, &i.Step, &i.ToolCallID, &i.KeySource, &i.Arguments,
		instant{&i.At}); err != nil {
		return action.Intent{}, fmt.Errorf("read an intent: %w", err)
	}
	return i, nil
}

func scanResult(scan func(...any) error) (r action.StoredResult, err error) {
	if err := scan(&r.ID, &r.Commitment, &r.MediaType, &r.Size, &r.Complete, &r.Withheld, &r.RepeatToken); err != nil {
		return action.StoredResult{}, fmt.Errorf("read a result: %w", err)
	}
	return r, nil
}
