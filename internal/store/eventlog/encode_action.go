package eventlog

import (
	"time"

	"deed.dev/deed/internal/action"
)

// actionMembers adds what an action's event records: the resolved place always, then what the event brought.
func actionMembers(m members, ev action.Event, about action.Action) {
	act := members{
		"host":     about.Target.Host,
		"port":     int64(about.Target.Port),
		"protocol": about.Target.Scheme,
	}
	put(act, "channel", about.Channel)
	put(act, "method", about.Method)
	put(act, "path_template", about.Template)
	put(act, "credential_ref", about.Credential)
	m["action"] = act

	switch {
	case ev.AcceptedBody != nil:
		acceptedMembers(m, act, about)
		requestMembers(m, ev.Request)
	case ev.MoveBody != nil:
		moveMembers(m, act, *ev.MoveBody)
	case ev.ObservedBody != nil:
		observedMembers(m, act, *ev.ObservedBody)
	case ev.DelegatedBody != nil:
		delegatedMembers(m, act, *ev.DelegatedBody)
	case ev.ApprovalBody != nil:
		m["approval"] = approvalMembers(*ev.ApprovalBody)
	case ev.DecidedBody != nil:
		m["decision"] = decidedMembers(*ev.DecidedBody)
	case ev.RevokedBody != nil:
		m["revocation"] = revocationMembers(*ev.RevokedBody)
	case ev.VoidedBody != nil:
		m["void"] = members{"approval_id": string(ev.VoidedBody.Approval), "why": ev.VoidedBody.Why}
	case ev.PurgedBody != nil:
		m["purge"] = members{"kept_us": ev.PurgedBody.Kept.Microseconds()}
	default:
		d := members{"from": string(ev.DeliveryBody.From), "to": string(ev.DeliveryBody.To)}
		put(d, "why", ev.DeliveryBody.Why)
		m["delivery"] = d
	}
}

func acceptedMembers(m, act members, a action.Action) {
	act["state"] = string(action.Accepted)
	act["max_attempts"] = int64(a.MaxAttempts)
	put(act, "class", a.Class)
	put(act, "contract", a.Contract)
	put(act, "operation", a.Operation)
	put(act, "repeats", a.Repeats)
	put(act, "similar_to", a.Similar)
	put(act, "compensates", a.Compensates)
	putMicros(act, "review_after_us", a.ReviewAfter)
	putMicros(act, "keep_result_us", a.KeepResult)
	putTrue(act, "can_ask", a.CanAsk)
	putMicros(act, "key_life_us", a.KeyLife)
	putMicros(act, "attach_for_us", a.AttachFor)
	if len(a.Target.Private) > 0 {
		act["private"] = a.Target.Private
	}
	if d := a.Digests; d != (action.Digests{}) {
		digests := members{}
		put(digests, "key_id", d.KeyID)
		put(digests, "fingerprint", d.Fingerprint)
		put(digests, "effect_fingerprint", d.Effect)
		put(digests, "args_fingerprint", d.Args)
		put(digests, "resource_fingerprint", d.Resource)
		m["digests"] = digests
	}
}

func requestMembers(m members, q *action.RequestSeen) {
	if q == nil {
		return
	}
	request := members{"body_bytes": q.BodyBytes, "redaction_status": string(q.Redaction)}
	put(request, "body_digest", q.BodyDigest)
	if len(q.HeaderNames) > 0 {
		request["header_names"] = q.HeaderNames
	}
	if len(q.Steps) > 0 {
		steps := make([]any, len(q.Steps))
		for i, s := range q.Steps {
			step := members{"kind": s.Kind}
			put(step, "field", s.Field)
			put(step, "detail", s.Detail)
			steps[i] = map[string]any(step)
		}
		request["steps"] = steps
	}
	m["request"] = request
}

func putMicros(m members, name string, d time.Duration) {
	if d != 0 {
		m[name] = d.Microseconds()
	}
}

func moveMembers(m, act members, v action.Moved) {
	act["transition"] = string(v.Transition)
	act["from_attempt"] = int64(v.FromAttempt)
	put(act, "from_state", v.Transition.From())
	put(act, "state", v.Transition.To())
	put(act, "reason", v.Reason)
	put(act, "failure_class", v.FailureClass)
	put(act, "reject_reason", v.RejectReason)
	put(act, "recovery", v.Recovery)
	putTime(act, "resend_before", v.ResendBefore)
	putTime(act, "not_before", v.NotBefore)
	putTrue(act, "resend_over", v.ResendOver)
	putOwner(act, v.FromEpoch, v.Owner)
	if v.Binding != nil {
		m["binding"] = bindingMembers(*v.Binding)
	}
	if v.Started != nil {
		m["attempt"] = attemptMembers(*v.Started)
	}
	if v.Ended != nil {
		m["outcome"] = attemptMembers(*v.Ended)
	}
	if v.Result != nil {
		m["result"] = resultMembers(*v.Result)
	}
	if v.Review != nil {
		m["review"] = reviewMembers(*v.Review)
	}
	put(act, "approval", v.Approval)
	if v.Revocation != nil {
		m["revocation"] = revocationMembers(*v.Revocation)
	}
}

// putOwner adds the fencing number that the writer held, and who works on the action from now on.
func putOwner(act members, from int64, owner action.OwnerID) {
	if from != 0 {
		act["from_epoch"] = from
	}
	put(act, "owner", owner)
}

func reviewMembers(r action.Review) members {
	m := members{"decision": string(r.Decision), "seen_seq": r.SeenSeq}
	put(m, "decision_id", r.ID)
	put(m, "reviewer", r.Reviewer)
	put(m, "strength", r.Strength)
	put(m, "why", r.Why)
	put(m, "evidence", r.Evidence)
	put(m, "seen_hash", r.SeenHash)
	return m
}

func observedMembers(m, act members, o action.Observed) {
	putOwner(act, o.FromEpoch, o.Owner)
	putTime(act, "not_before", o.NotBefore)
	seen := members{
		"observation_id": string(o.ID),
		"number":         int64(o.Number),
		"kind":           string(o.Kind),
	}
	put(seen, "about_attempt", o.About)
	put(seen, "finding", o.Finding)
	if o.Certainty != action.Indeterminate {
		seen["certainty"] = string(o.Certainty)
	}
	if o.Status != 0 {
		seen["http_status"] = int64(o.Status)
	}
	put(seen, "reason", o.Reason)
	put(seen, "remote", o.Remote)
	put(seen, "span_id", o.SpanID)
	put(seen, "evidence", o.Evidence)
	putTime(seen, "started_at", o.Started)
	putTime(seen, "ended_at", o.Ended)
	m["observation"] = seen
}

func delegatedMembers(m, act members, d action.Delegated) {
	act["from_attempt"] = int64(d.FromAttempt)
	putOwner(act, d.FromEpoch, "")
	putTime(act, "not_before", d.NotBefore)
	m["job"] = members{"commitment": string(d.Job)}
	if d.Ended != nil {
		m["outcome"] = attemptMembers(*d.Ended)
	}
}

func bindingMembers(b action.Binding) members {
	m := members{}
	put(m, "decision_id", b.Decision)
	put(m, "kind", b.Kind)
	put(m, "rule", b.Rule)
	put(m, "binding_digest", b.Digest)
	putTime(m, "until", b.Until)
	return m
}

func attemptMembers(a action.Attempt) members {
	m := members{
		"attempt_id": string(a.ID),
		"number":     int64(a.Number),
		"certainty":  a.Certainty.String(),
	}
	if a.BytesSent != action.BytesUnknown {
		m["bytes_sent"] = a.BytesSent
	}
	if a.Status != 0 {
		m["http_status"] = int64(a.Status)
	}
	put(m, "state", a.State)
	put(m, "reason", a.Reason)
	put(m, "remote", a.Remote)
	put(m, "span_id", a.SpanID)
	put(m, "retry_of", a.RetryOf)
	putTime(m, "started_at", a.Started)
	putTime(m, "ended_at", a.Ended)
	return m
}

func resultMembers(r action.StoredResult) members {
	m := members{
		"result_id": string(r.ID),
		"size":      r.Size,
		"complete":  r.Complete,
		"withheld":  r.Withheld,
	}
	put(m, "commitment", r.Commitment)
	put(m, "media_type", r.MediaType)
	put(m, "repeat_digest", r.RepeatToken)
	return m
}
