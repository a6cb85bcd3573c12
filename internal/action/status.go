package action

import (
	"encoding/json"
	"math"
)

// The tools that every front door for agents offers beside those of the contracts. They read and send nothing.
const (
	ToolStatus = "action_status" // how an action of the caller's stands
	ToolWait   = "action_wait"   // the same, once it is settled or the time is over
)

// HelperTool reports whether a name is one of deed's own tools, which no contract may take.
func HelperTool(name string) bool { return name == ToolStatus || name == ToolWait }

// Status is the machine-readable half of every answer, the same at every front door.
type Status struct {
	ActionID    ID         `json:"action_id,omitempty"`
	ExecutionID ID         `json:"execution_id,omitempty"` // always equal to action_id
	IntentID    IntentID   `json:"intent_id,omitempty"`
	RunID       RunID      `json:"run_id,omitempty"`
	State       State      `json:"state,omitempty"`
	Shown       string     `json:"shown,omitempty"` // state and delivery as people read the pair
	Recovery    Recovery   `json:"recovery,omitempty"`
	Delivery    Delivery   `json:"delivery,omitempty"`
	EffectMode  EffectMode `json:"effect_mode"`
	Replayed    bool       `json:"replayed"`
	AttachedTo  ID         `json:"attached_to,omitempty"`
	HeldBy      ID         `json:"held_by,omitempty"`
	Match       MatchKind  `json:"match,omitempty"`

	Code       Code     `json:"code,omitempty"`
	ErrorType  string   `json:"error_type,omitempty"` // NeedsHumanApproval where a person is waited for
	Reason     string   `json:"reason,omitempty"`
	Retryable  bool     `json:"retryable"`
	RetryAfter *int64   `json:"retry_after_seconds"`
	Next       []string `json:"next"`
	Message    string   `json:"message"`

	Delegated    bool            `json:"delegated,omitempty"` // the target has accepted it and finishes later
	Job          string          `json:"job,omitempty"`       // under this id of its own
	SettledBy    string          `json:"settled_by,omitempty"`
	TargetStatus int             `json:"target_status,omitempty"`
	Decision     DecisionID      `json:"approval_id,omitempty"`
	Approval     *ApprovalStatus `json:"approval,omitempty"` // while a person is asked
	Result       ResultID        `json:"result_reference,omitempty"`
	Complete     bool            `json:"result_complete"`
	ResultBytes  int64           `json:"result_bytes,omitempty"`
	RepeatOf     string          `json:"repeat_of,omitempty"`
	Attempts     []AttemptStatus `json:"attempts,omitempty"`
	Journal      *Place          `json:"journal,omitempty"`
}

// ApprovalStatus is what a person is asked, as callers see it.
type ApprovalStatus struct {
	Asks     string `json:"asks"` // "each_use": about this action; "run": about the run of the agent's process
	About    string `json:"about"`
	Expires  string `json:"expires_at"`
	Needed   int    `json:"needed"`
	Approved int    `json:"approved"`
}

// AttemptStatus is one send, as callers see it.
type AttemptStatus struct {
	ID        AttemptID    `json:"attempt_id"`
	Number    int          `json:"attempt"`
	State     AttemptState `json:"state"`
	Certainty string       `json:"certainty"`
	BytesSent *int64       `json:"bytes_sent"` // null when nobody was left to count
	Status    int          `json:"target_status,omitempty"`
	Reason    string       `json:"reason,omitempty"`
}

// Place is where a record stands in the journal. A caller that keeps it holds evidence of its own.
type Place struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Status gives the facts of an answer.
func (a Answer) Status() Status {
	act := a.Action
	s := Status{
		ActionID: act.ID, ExecutionID: act.ID, IntentID: act.Intent, RunID: act.Run,
		State: act.State, Shown: Shown(act.State, act.Delivery), Recovery: act.Recovery, Delivery: act.Delivery,
		EffectMode: a.EffectMode, Replayed: a.EffectMode == Replay, Match: a.Match,
		Code: a.Code, ErrorType: a.ErrorType(), Delegated: act.Delegated(), Job: a.Job, SettledBy: a.SettledBy, Reason: act.Reason, Retryable: a.Retryable(), Next: a.Next(), Message: a.Sentence(),
		TargetStatus: act.TargetStatus, Result: act.Result, Complete: a.Complete, ResultBytes: a.ResultSize, RepeatOf: a.RepeatOf,
	}
	if a.Attached {
		s.AttachedTo = act.ID
	}
	if a.Hash != "" {
		s.Journal = &Place{Seq: a.Seq, Hash: a.Hash}
	}
	if a.RetryAfter > 0 {
		seconds := int64(math.Ceil(a.RetryAfter.Seconds()))
		s.RetryAfter = &seconds
	}
	switch act.State {
	case Rejected:
		s.Decision = act.Binding.Decision
	case AwaitingApproval:
		s.Decision = act.Approval
	}
	if p := a.Approval; p != nil {
		s.Approval = &ApprovalStatus{
			Asks: p.Rule, About: act.place(), Expires: p.Expires.UTC().Format("2006-01-02T15:04:05.000000Z"),
			Needed: p.Needed, Approved: len(p.Decisions),
		}
	}
	for _, t := range a.Attempts {
		s.Attempts = append(s.Attempts, AttemptStatus{
			ID: t.ID, Number: t.Number, State: t.State, Certainty: t.Certainty.String(),
			BytesSent: t.Counted(), Status: t.Status, Reason: t.Reason,
		})
	}
	if a.Held { // the open action is shown, and nothing of it belongs to this call
		return Status{
			HeldBy: act.ID, State: act.State, EffectMode: NoEffect, Match: a.Match, Code: a.Code, Retryable: s.Retryable,
			RetryAfter: s.RetryAfter, Next: s.Next, Message: s.Message,
		}
	}
	return s
}

// Status gives the facts of a refusal.
func (e *Error) Status() Status {
	next := []string{NextChange}
	if Codes[e.Code].Retryable {
		next = []string{NextRetry}
	}
	return Status{
		EffectMode: NoEffect, Code: e.Code, Reason: e.Reason, Retryable: Codes[e.Code].Retryable, Next: next, Message: e.Message,
	}
}

// ResultJSON is the target's answer as a value for machines: the JSON itself, or text. It is nil without an answer.
func (a Answer) ResultJSON() json.RawMessage {
	if a.Held || len(a.Result) == 0 {
		return nil
	}
	if json.Valid(a.Result) {
		return json.RawMessage(a.Result)
	}
	text, err := json.Marshal(string(a.Result))
	if err != nil {
		return nil
	}
	return text
}
