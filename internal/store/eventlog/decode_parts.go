package eventlog

import (
	"time"

	"deed.dev/deed/internal/action"
)

func (w *wire) run(r *reader) *action.Run {
	run := &action.Run{ID: action.RunID(w.RootRunID), Key: w.Run.Key, Started: r.time(w.Run.StartedAt)}
	if a := w.Actor; a != nil {
		run.Actor = action.Actor{Kind: a.Kind, Identity: a.Identity, Strength: action.Strength(a.Strength), Shared: a.Shared}
	}
	if p := w.Process; p != nil {
		run.Actor.Evidence = action.Evidence{PID: p.PID, StartTime: r.uint(p.StartTicks), BootID: p.BootID,
			Executable: p.Executable, Digest: p.Digest, Via: p.Via}
	}
	return run
}

func (w *wire) actor() string {
	if w.Actor == nil || w.Actor.Kind == "" {
		return ""
	}
	return w.Actor.Kind + ":" + w.Actor.Identity
}

func (w *wire) call() *action.CallSeen {
	c := w.Call
	seen := &action.CallSeen{
		Protocol: action.Correlation{Transport: c.Transport, Era: c.Era, RequestID: c.RequestID, Session: c.Session, Client: c.Client},
		Upstream: action.Upstream{Source: c.Upstream, Traceparent: c.Traceparent, Tracestate: c.Tracestate},
		Actor:    w.actor(), IdemKey: c.IdemKey, Match: action.MatchKind(c.Match), Prior: action.State(c.PriorState), Why: c.Why, Code: action.Code(c.Code), Times: c.Times,
	}
	if w.Actor != nil {
		seen.Strength = action.Strength(w.Actor.Strength)
	}
	return seen
}

func (w *wire) intent(r *reader) *action.Intent {
	i := w.Intent
	return &action.Intent{ID: action.IntentID(w.IntentID), Run: action.RunID(w.RootRunID), Tool: i.Tool, Contract: i.Contract,
		IdemKey: i.IdemKey, Step: i.Step, ToolCallID: i.ToolCallID, KeySource: i.KeySource,
		Arguments: action.Commitment(i.Arguments), At: r.time(i.LoggedAt)}
}

func (w *wire) accepted() *action.Action {
	a := w.Action
	act := &action.Action{
		ID: action.ID(w.ActionID), Intent: action.IntentID(w.IntentID), Run: action.RunID(w.RootRunID), Actor: w.actor(),
		Class: action.Class(a.Class), Contract: a.Contract, MaxAttempts: a.MaxAttempts,
		KeyLife: time.Duration(a.KeyLifeUS) * time.Microsecond, AttachFor: time.Duration(a.AttachForUS) * time.Microsecond,
		Channel: a.Channel, Method: a.Method, Template: a.PathTemplate, Credential: a.CredentialRef,
		Target:    action.Target{Scheme: a.Protocol, Host: a.Host, Port: a.Port, Private: a.Private},
		Operation: action.Commitment(a.Operation), Repeats: action.ID(a.Repeats), Similar: action.ID(a.SimilarTo),
		Compensates: action.ID(a.Compensates), ReviewAfter: time.Duration(a.ReviewAfterUS) * time.Microsecond, CanAsk: a.CanAsk, KeepResult: time.Duration(a.KeepResultUS) * time.Microsecond,
	}
	if d := w.Digests; d != nil {
		act.Digests = action.Digests{KeyID: d.KeyID, Fingerprint: d.Fingerprint, Effect: d.Effect, Args: d.Args, Resource: d.Resource}
	}
	return act
}

func (w *wire) move(r *reader) *action.Moved {
	a := w.Action
	m := &action.Moved{
		Transition: action.Transition(a.Transition), FromAttempt: a.FromAttempt, Reason: a.Reason,
		FailureClass: action.FailureClass(a.FailureClass), RejectReason: action.RejectReason(a.RejectReason),
		Recovery: action.Recovery(a.Recovery), ResendBefore: r.time(a.ResendBefore), NotBefore: r.time(a.NotBefore),
		ResendOver: a.ResendOver, FromEpoch: a.FromEpoch, Owner: action.OwnerID(a.Owner), Approval: action.DecisionID(a.Approval),
	}
	if b := w.Binding; b != nil {
		m.Binding = &action.Binding{Decision: action.DecisionID(b.DecisionID), Kind: b.Kind, Rule: b.Rule, Digest: b.Digest, Until: r.time(b.Until)}
	}
	if w.Attempt != nil {
		m.Started = w.Attempt.attempt(r, w.ActionID)
	}
	if w.Outcome != nil {
		m.Ended = w.Outcome.attempt(r, w.ActionID)
	}
	if res := w.Result; res != nil {
		m.Result = &action.StoredResult{ID: action.ResultID(res.ResultID), Commitment: action.Commitment(res.Commitment),
			MediaType: res.MediaType, Size: res.Size, Complete: res.Complete, Withheld: res.Withheld, RepeatToken: res.RepeatDigest}
	}
	if v := w.Review; v != nil {
		m.Review = &action.Review{ID: action.DecisionID(v.DecisionID), Decision: action.ReviewDecision(v.Decision),
			Reviewer: v.Reviewer, Strength: action.Strength(v.Strength), Why: v.Why, Evidence: v.Evidence,
			SeenSeq: v.SeenSeq, SeenHash: v.SeenHash}
	}
	if w.Revocation != nil {
		m.Revocation = w.Revocation.revocation()
	}
	return m
}

func (w *wire) observed(r *reader) *action.Observed {
	o := w.Observed
	return &action.Observed{
		Observation: action.Observation{ID: action.ObservationID(o.ObservationID), Action: action.ID(w.ActionID), Number: o.Number,
			Kind: action.ObservationKind(o.Kind), About: action.AttemptID(o.About), Finding: action.Finding(o.Finding),
			Certainty: action.Certainty(o.Certainty), Status: o.HTTPStatus, Reason: o.Reason, Remote: o.Remote, SpanID: o.SpanID,
			Evidence: action.Commitment(o.Evidence), Started: r.time(o.StartedAt), Ended: r.time(o.EndedAt)},
		FromEpoch: w.Action.FromEpoch, Owner: action.OwnerID(w.Action.Owner), NotBefore: r.time(w.Action.NotBefore),
	}
}

func (w *wire) delegated(r *reader) *action.Delegated {
	d := &action.Delegated{FromAttempt: w.Action.FromAttempt, FromEpoch: w.Action.FromEpoch,
		Job: action.Commitment(w.Job.Commitment), NotBefore: r.time(w.Action.NotBefore)}
	if w.Outcome != nil {
		d.Ended = w.Outcome.attempt(r, w.ActionID)
	}
	return d
}

func (a *wireAttempt) attempt(r *reader, id string) *action.Attempt {
	certainty := action.Certainty(a.Certainty)
	if a.Certainty == action.Indeterminate.String() {
		certainty = action.Indeterminate
	}
	return &action.Attempt{ID: action.AttemptID(a.AttemptID), Action: action.ID(id), Number: a.Number,
		State: action.AttemptState(a.State), Certainty: certainty, BytesSent: a.bytesSent(), Status: a.HTTPStatus,
		Reason: a.Reason, Remote: a.Remote, SpanID: a.SpanID, RetryOf: action.AttemptID(a.RetryOf),
		Started: r.time(a.StartedAt), Ended: r.time(a.EndedAt)}
}

// bytesSent is the count, or that there is none.
func (a wireAttempt) bytesSent() int64 {
	if a.BytesSent == nil {
		return action.BytesUnknown
	}
	return *a.BytesSent
}

func (w *wire) request() *action.RequestSeen {
	q := w.Request
	if q == nil {
		return nil
	}
	seen := &action.RequestSeen{
		HeaderNames: q.HeaderNames, BodyDigest: q.BodyDigest, BodyBytes: q.BodyBytes, Redaction: action.Redaction(q.Redaction),
	}
	for _, s := range q.Steps {
		seen.Steps = append(seen.Steps, action.Step{Kind: s.Kind, Field: s.Field, Detail: s.Detail})
	}
	return seen
}

func (w *wire) read() *action.ContentRead {
	r := &action.ContentRead{Why: w.Read.Why, Kinds: w.Read.Kinds}
	if w.Actor != nil {
		r.Reader, r.Strength = w.Actor.Kind+":"+w.Actor.Identity, action.Strength(w.Actor.Strength)
	}
	return r
}

func (w *wire) approval(r *reader) *action.Approval {
	p := w.Approval
	return &action.Approval{ID: action.DecisionID(p.ApprovalID), Action: action.ID(w.ActionID), Run: action.RunID(w.RootRunID), Rule: p.Rule,
		Binding: p.Binding, Nonce: p.Nonce, Expires: r.time(p.ExpiresAt), Needed: p.Needed, NotRequester: p.NotRequester}
}

func (w *wire) decided(r *reader) *action.Decided {
	d := w.Decision
	return &action.Decided{Approval: action.DecisionID(d.ApprovalID), Action: action.ID(w.ActionID), Binding: d.Binding, Nonce: d.Nonce,
		Expires: r.time(d.ExpiresAt), Decision: action.ApprovalDecision(d.Decision), Approver: d.Approver,
		Strength: action.ApprovalStrength(d.Strength), Via: d.Via,
		Signed: action.Signed{Key: r.bytes(d.Key), Signature: r.bytes(d.Signature), AuthenticatorData: r.bytes(d.AuthenticatorData),
			ClientData: r.bytes(d.ClientData)}}
}

func (r *wireRevocation) revocation() *action.Revocation {
	return &action.Revocation{ID: action.DecisionID(r.DecisionID), By: r.By, Strength: action.Strength(r.Strength), What: r.What, Why: r.Why}
}
