package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

const (
	statesCharge = `{"amount":25000,"customer":"cus_42"}`
	statesMail   = `{"to":"a"}`
)

// statesAsActions keeps the events that change or begin an action.
func statesAsActions(events []rig.Event) (some []rig.Event) {
	for _, e := range events {
		if strings.HasPrefix(e.Kind(), "action.") {
			some = append(some, e)
		}
	}
	return some
}

// ST-01: accepted, authorized, dispatched, outcome observed, result delivered.
func TestTheHappyPathRecordsFiveTransitionsInOrder(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", statesCharge).Do()
	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	r.Settled()
	got := rig.Kinds(statesAsActions(r.EventsOf(a.Action.ID)))
	want := []string{"action.accepted", "action.authorized", "action.dispatched", "action.completed", "action.delivery"}
	if !slices.Equal(got, want) {
		t.Errorf("the journal has %q, want %q", got, want)
	}
	if s := r.Stored(a.Action.ID); s.State != action.Completed || s.Delivery != action.Delivered {
		t.Errorf("the record is %s, %s", s.State, s.Delivery)
	}
}

// ST-02: what is not valid makes no action, and nothing is sent.
func TestOnlyAValidRequestIsAccepted(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	for _, args := range []string{`{"amount":1}`, `{"amount":"1","customer":"c"}`, `{"amount":1,"customer":"c","extra":true}`, `not json`, `{"amount":1,"amount":2,"customer":"c"}`} {
		_, err := r.Call("charge", args).Try()
		var known *action.Error
		if !errors.As(err, &known) || known.Code != action.CodeInvalidArguments || known.Action != "" {
			t.Errorf("%s: %v, want %s without an action", args, err, action.CodeInvalidArguments)
		}
	}
	if n := len(r.Actions()); n != 0 || r.BytesToProvider() != 0 {
		t.Errorf("%d actions and %d bytes to the target, want none", n, r.BytesToProvider())
	}
	if a := r.Stored(r.Call("charge", statesCharge).Do().Action.ID); a.AcceptedAt.IsZero() {
		t.Error("a valid call has no time of acceptance")
	}
}

// ST-03: authorized names the decision that allowed it, bound to this action alone.
func TestAuthorizedNamesItsDecision(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	var decisions, digests []string
	for _, args := range []string{`{"amount":1,"customer":"a"}`, `{"amount":1,"customer":"b"}`} {
		e := statesAsActions(r.EventsOf(r.Call("charge", args).Do().Action.ID))[1]
		if e.Kind() != "action.authorized" || e.Text("binding.kind") != "policy" || e.Text("binding.rule") == "" {
			t.Errorf("the second event is %v, want an authorization by a rule of the policy", e)
		}
		decisions, digests = append(decisions, e.Text("binding.decision_id")), append(digests, e.Text("binding.binding_digest"))
	}
	if !action.ValidID(action.DecisionPrefix, decisions[0]) || decisions[0] == decisions[1] || digests[0] == "" || digests[0] == digests[1] {
		t.Errorf("decisions %q with digests %q, want one of each for each action", decisions, digests)
	}
}

// ST-05, ST-27: an answer, a refusal and a clear delivery failure are outcomes of different kinds, each with its proof.
func TestEachKindOfOutcomeIsRecordedAsItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults    []provider.Fault
		plan      chaos.Plan
		state     action.State
		class     action.FailureClass
		attempt   action.AttemptState
		certainty action.Certainty
		status    int
		effects   int
	}{
		"answer":           {state: action.Completed, attempt: action.AttemptCompleted, certainty: action.EffectProven, status: 201, effects: 1},
		"refusal":          {faults: []provider.Fault{{Kind: provider.AnswerStatus, Status: 422}}, state: action.Failed, class: action.RejectedByTarget, attempt: action.AttemptRefused, certainty: action.NoEffectProven, status: 422},
		"delivery failure": {plan: chaos.Plan{Mode: chaos.Refuse}, state: action.Failed, class: action.NotSent, attempt: action.AttemptNotSent, certainty: action.NoEffectProven},
		"no answer":        {faults: []provider.Fault{{Kind: provider.CommitThenDrop}}, state: action.Unknown, attempt: action.AttemptTransportError, effects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			r.Break(c.faults...)
			r.Cut(c.plan)
			id := r.Call("send_email", statesMail).Do().Action.ID
			a, attempts := r.Stored(id), r.AttemptsOf(id)
			last := attempts[len(attempts)-1]
			if a.State != c.state || a.FailureClass != c.class || a.TargetStatus != c.status {
				t.Errorf("the action is %s %q with status %d, want %s %q %d", a.State, a.FailureClass, a.TargetStatus, c.state, c.class, c.status)
			}
			if last.State != c.attempt || last.Certainty != c.certainty || last.Status != c.status {
				t.Errorf("the attempt is %s, %s, status %d; want %s, %s, %d", last.State, last.Certainty, last.Status, c.attempt, c.certainty, c.status)
			}
			if sent := last.BytesSent > 0; sent != (c.attempt != action.AttemptNotSent) || last.BytesSent < 0 {
				t.Errorf("%d bytes are recorded for an attempt that is %s", last.BytesSent, last.State)
			}
			if r.Effects() != c.effects {
				t.Errorf("%d effects, want %d", r.Effects(), c.effects)
			}
		})
	}
}

// ST-09: the activity record has every field that recovery and people need, in the export alone.
func TestTheExportHoldsTheWholeActivityRecord(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", statesCharge).Do()
	of := map[string]rig.Event{}
	for _, e := range r.Events() {
		of[e.Kind()] = e
	}
	for field, got := range map[string]string{
		"execution_id":     of["action.accepted"].Text("action_id"),
		"fingerprint":      of["action.accepted"].Text("digests.fingerprint"),
		"tool":             of["intent.logged"].Text("intent.tool"),
		"actor":            of["action.accepted"].Text("actor.identity"),
		"target":           of["action.accepted"].Text("action.host"),
		"state":            of["action.completed"].Text("action.state"),
		"accepted_at":      of["action.accepted"].Text("time"),
		"dispatched_at":    of["action.dispatched"].Text("time"),
		"completed_at":     of["action.completed"].Text("time"),
		"target_status":    of["action.completed"].Text("outcome.http_status"),
		"result_reference": of["action.completed"].Text("result.result_id"),
	} {
		if got == "" {
			t.Errorf("the export has no %s", field)
		}
	}
	if s := of["action.completed"]; s.Text("outcome.http_status") != "201" || s.Text("result.result_id") != string(a.Action.Result) {
		t.Errorf("the export ends with %v", s)
	}
}

// ST-10: the states are those of the table, no more and no fewer, and delivery is no state.
func TestTheLifecycleIsNotSuccessOrFailure(t *testing.T) {
	t.Parallel()
	want := []action.State{"accepted", "awaiting_approval", "authorized", "dispatched", "unknown", "completed", "failed", "rejected"}
	if !slices.Equal(action.States, want) {
		t.Errorf("the states are %q, want %q", action.States, want)
	}
	effects := map[action.Effect]int{}
	for _, s := range action.States {
		effects[s.Effect()]++
	}
	if len(effects) != 3 || effects[action.EffectMaybe] != 2 || effects[action.EffectOnce] != 1 {
		t.Errorf("the states answer %v, want no, maybe (2) and once (1)", effects)
	}
}

// ST-11, ST-20, case 015: a crash just before the effect and one just after it leave the same record, dispatched without an
// outcome, and both are unknown afterwards. Nothing is sent again.
func TestACrashAroundTheEffectLeavesAnIncompletePair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   provider.Kind
		effects int
	}{"before the effect": {provider.HangAfterRead, 0}, "after the effect": {provider.CommitThenHang, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			r.Break(provider.Fault{Kind: c.fault})
			r.Call("send_email", statesMail).Go()
			r.AwaitRequests(1)
			r.AwaitEffects(c.effects)
			id := r.Only().ID
			r.Abandon()

			left, err := r.Reader().Actions(context.Background(), store.Query{States: []action.State{action.Dispatched}})
			if err != nil || len(left) != 1 || left[0].ID != id {
				t.Fatalf("incomplete pairs after the crash: %v (%v), want %s alone", left, err, id)
			}
			events := rig.Kinds(statesAsActions(r.EventsOf(id)))
			if want := []string{"action.accepted", "action.authorized", "action.dispatched"}; !slices.Equal(events, want) {
				t.Errorf("the crash left %q, want %q", events, want)
			}

			r.Start()
			if a := r.Only(); a.State != action.Unknown || a.Recovery != action.ReviewRequired || a.Reason != "process_lost" {
				t.Errorf("after the restart the action is %s, %s, %s", a.State, a.Recovery, a.Reason)
			}
			again := r.Call("send_email", statesMail).Do()
			if again.Action.ID != id || again.Action.State != action.Unknown || r.Requests() != 1 || r.Effects() != c.effects {
				t.Errorf("a repeat is %s %s with %d requests and %d effects, want %s unknown with 1 and %d", again.Action.ID, again.Action.State, r.Requests(), r.Effects(), id, c.effects)
			}
			if got := r.AttemptsOf(id); len(got) != 1 || got[0].Counted() != nil {
				t.Errorf("attempts are %+v, want one whose bytes nobody counted", got)
			}
		})
	}
}

// ST-12, ST-08, RM-13, EX-11: after a crash behind the outcome the result is there, by reference, and nothing is asked again.
func TestTheResultIsDurableWithTheOutcome(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", statesCharge).Do()
	r.Crash()
	stored, body, err := r.Reader().Result(context.Background(), a.Action.Result)
	if err != nil || string(body) != string(a.Result) || stored.Size != int64(len(body)) || len(body) == 0 {
		t.Errorf("the result of %s is %q (%v), want %q", a.Action.Result, body, err, a.Result)
	}
	b := r.Call("charge", statesCharge).Do()
	if b.Action.ID != a.Action.ID || string(b.Result) != string(a.Result) || b.EffectMode != action.Replay || b.Status().Result != a.Action.Result {
		t.Errorf("a repeat is %s, %s, %s with %s", b.Action.ID, b.EffectMode, b.Result, b.Status().Result)
	}
	if r.Requests() != 1 || r.Effects() != 1 {
		t.Errorf("%d requests and %d effects, want 1 and 1", r.Requests(), r.Effects())
	}
}

// ST-13: what the target answered is kept for recovery and stands in no exported record; people see status, size and target.
func TestTheAnswerIsProtectedAndTheSummaryIsNot(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	// Hashes in the export are hex: a short number would stand in one of them now and then.
	a := r.Call("charge", `{"amount":313373133731337,"customer":"cus_private"}`).Do()
	var answer struct{ ID string }
	if err := json.Unmarshal(a.Result, &answer); err != nil || answer.ID == "" {
		t.Fatalf("the answer is %s (%v)", a.Result, err)
	}
	export := r.Export()
	for _, private := range []string{answer.ID, "cus_private", "313373133731337", rig.Secret, a.RepeatOf} {
		if strings.Contains(export, private) {
			t.Errorf("the export holds %q", private)
		}
	}
	done := statesAsActions(r.EventsOf(a.Action.ID))[3]
	if done.Text("outcome.http_status") != "201" || done.Text("action.host") == "" || done.Text("result.media_type") != "application/json" {
		t.Errorf("the export says too little: %v", done)
	}
	if again := r.Call("charge", `{"amount":313373133731337,"customer":"cus_private"}`).Do(); string(again.Result) != string(a.Result) {
		t.Errorf("recovery reads %s, want %s", again.Result, a.Result)
	}
}

// ST-16: a move that brings no result keeps the earlier one, and stamps the time.
func TestAMoveWithoutAResultKeepsTheEarlierOne(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 500, Times: 1}, provider.Fault{Kind: provider.DropAfterRead})
	a := r.Call("charge", statesCharge).Do()
	if a.Action.State != action.Unknown || a.Action.Attempt != 5 {
		t.Fatalf("the action is %s after %d attempts", a.Action.State, a.Action.Attempt)
	}
	var first, last rig.Event
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "action.unknown" {
			if first == nil {
				first = e
			}
			last = e
		}
	}
	now := r.Stored(a.Action.ID)
	if first.Text("result.result_id") == "" || last.Text("result.result_id") != "" || string(now.Result) != first.Text("result.result_id") {
		t.Errorf("the results are %q, then %q, on record %q; want the first kept", first.Text("result.result_id"), last.Text("result.result_id"), now.Result)
	}
	if stamp := now.UpdatedAt.UTC().Format("2006-01-02T15:04:05.000000Z"); stamp != last.Text("time") || last.Text("time") <= first.Text("time") {
		t.Errorf("the record was updated at %s, its last event at %s", stamp, last.Text("time"))
	}
}

// ST-18, ST-22, case 001: a timeout after bytes left is a timeout of the attempt and unknown of the action; the next attempt of
// the same action finds the answer.
func TestATimeoutIsNotAFailure(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Timeout: "300ms"})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	a := r.Call("charge", statesCharge).Do()
	attempts := r.AttemptsOf(a.Action.ID)
	if a.Action.State != action.Completed || len(attempts) != 2 || r.Effects() != 1 {
		t.Fatalf("%s after %d attempts with %d effects, want completed after 2 with 1", a.Action.State, len(attempts), r.Effects())
	}
	if one := attempts[0]; one.State != action.AttemptTimeout || one.Certainty != action.Indeterminate || one.BytesSent != r.Proxy.Connections()[0].FromClient {
		t.Errorf("attempt 1 is %s, %s, %d bytes; want timeout, indeterminate, %d bytes", one.State, one.Certainty, one.BytesSent, r.Proxy.Connections()[0].FromClient)
	}
	if two := attempts[1]; two.State != action.AttemptCompleted || two.Status != 201 || two.SpanID == attempts[0].SpanID {
		t.Errorf("attempt 2 is %s with %d, want completed with 201 in a span of its own", two.State, two.Status)
	}
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "action.failed" {
			t.Errorf("the journal calls the timeout a failure: %v", e)
		}
	}
}

// ST-18: without a way to find out, a timeout stays unknown and is never called failed.
func TestATimeoutWithoutEvidenceStaysUnknown(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Timeout: "300ms"})
	r.Break(provider.Fault{Kind: provider.HangAfterRead})
	a := r.Call("send_email", statesMail).Do()
	if s := r.Stored(a.Action.ID); s.State != action.Unknown || s.FailureClass != "" || s.Reason != "timeout" || s.Attempt != 1 {
		t.Errorf("the action is %s %q (%s) after %d attempts, want unknown (timeout) after 1", s.State, s.FailureClass, s.Reason, s.Attempt)
	}
	if a.Code != action.CodeOutcomeUnknown {
		t.Errorf("the caller was told %q", a.Code)
	}
}

// ST-19: for each attempt the plan is on record before the outcome, and attempts follow one another.
func TestEachAttemptIsPlannedThenSettled(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, Times: 2})
	a := r.Call("charge", statesCharge).Do()
	var steps []string
	for _, e := range r.EventsOf(a.Action.ID) {
		if n := e.Text("attempt.number"); n != "" {
			steps = append(steps, "plan "+n)
		}
		if n := e.Text("outcome.number"); n != "" {
			steps = append(steps, "outcome "+n)
		}
	}
	if want := []string{"plan 1", "outcome 1", "plan 2", "outcome 2", "plan 3", "outcome 3"}; !slices.Equal(steps, want) {
		t.Errorf("the journal has %q, want %q", steps, want)
	}
}

// ST-21: the call was taken and its intent logged, and the action failed; both are on record and both are true.
func TestCallAndActionHaveOutcomesOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	a := r.Call("send_email", statesMail).Do()
	kinds := rig.Kinds(r.Events())
	if !slices.Contains(kinds, "call.accepted") || !slices.Contains(kinds, "intent.logged") || slices.Contains(kinds, "call.refused") {
		t.Errorf("the call is on record as %q", kinds)
	}
	if s := r.Stored(a.Action.ID); s.State != action.Failed || s.FailureClass != action.NotSent {
		t.Errorf("the action is %s %q, want failed not_sent", s.State, s.FailureClass)
	}
}

// ST-23: the record of one attempt survives the next one unchanged.
func TestALaterAttemptOverwritesNothing(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "3600", Times: 1})
	a := r.Call("charge", statesCharge).Do()
	before := r.AttemptsOf(a.Action.ID)
	if len(before) != 1 || before[0].Status != 503 || before[0].State != action.AttemptRefused {
		t.Fatalf("attempts are %+v, want one that was refused with 503", before)
	}
	export := r.Export()
	r.Restart("")
	clock.Move(2 * time.Hour)
	r.Call("charge", statesCharge).Do()
	if after := r.AttemptsOf(a.Action.ID); len(after) != 2 || after[0] != before[0] {
		t.Errorf("attempts were %+v and are %+v, want one more and the first unchanged", before, after)
	}
	if now := r.Export(); !strings.HasPrefix(now, export) {
		t.Error("records that were exported have changed")
	}
}

// ST-28: a rejected action never sends a byte, whoever asks again and however often.
func TestARejectedActionIsNeverDispatched(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(rig.Usual, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true")})
	pending := r.Call("charge", statesCharge).Key("task", 1, "toolu_1").Go()
	r.Deny(r.Asked("").Action)
	a := pending.Answer()
	if a.Action.State != action.Rejected || a.Action.RejectReason != action.Denied {
		t.Fatalf("the action is %s (%s), want denied", a.Action.State, a.Action.RejectReason)
	}
	r.Restart(rig.Usual) // the policy has changed; the decision about this action has not
	for range 2 {
		b := r.Call("charge", statesCharge).Key("task", 1, "toolu_1").Do()
		if b.Action.ID != a.Action.ID || b.Action.State != action.Rejected || b.Code != action.CodeRejected {
			t.Errorf("asked again it is %s, %s, %s", b.Action.ID, b.Action.State, b.Code)
		}
	}
	if r.BytesToProvider() != 0 || r.Stored(a.Action.ID).Attempt != 0 {
		t.Errorf("%d bytes and %d attempts for a rejected action", r.BytesToProvider(), r.Stored(a.Action.ID).Attempt)
	}
	err := r.Store.Commit(context.Background(), func(tx store.Tx) error {
		return tx.Append(action.Event{ID: "evt_0123456789abcdefghjkmnpqrs", Time: tx.Now(), Kind: action.MovedTo(action.Authorized), Action: a.Action.ID,
			MoveBody: &action.Moved{Transition: action.T6, Binding: &action.Binding{Decision: "apr_x", Kind: "person", Digest: "sha256:x"}}})
	})
	var illegal *action.IllegalMoveError
	if !errors.As(err, &illegal) || r.Stored(a.Action.ID).State != action.Rejected {
		t.Errorf("a later approval gave %v, and the action is %s", err, r.Stored(a.Action.ID).State)
	}
}

// ST-30
func TestTheRecordIsFoundByEachOfItsKeys(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", statesCharge).Do()
	attempt := r.AttemptsOf(a.Action.ID)[0].ID
	reader := r.Reader()
	for name, q := range map[string]store.Query{
		"run":        {Run: a.Action.Run},
		"trace":      {TraceID: a.Action.Trace.TraceID},
		"intent":     {Intent: a.Action.Intent},
		"attempt":    {Attempt: attempt},
		"target":     {Host: a.Action.Target.Host},
		"credential": {Credential: "provider"},
		"tool":       {Tool: "charge"},
		"state":      {States: []action.State{action.Completed}},
	} {
		found, err := reader.Actions(context.Background(), q)
		if err != nil || len(found) != 1 || found[0].ID != a.Action.ID {
			t.Errorf("by %s: %v (%v), want %s", name, found, err, a.Action.ID)
		}
	}
	if found, err := reader.Action(context.Background(), a.Action.ID); err != nil || found.ID != a.Action.ID {
		t.Errorf("by itself: %s (%v)", found.ID, err)
	}
	for name, q := range map[string]store.Query{"run": {Run: "run_none"}, "attempt": {Attempt: "att_none"}, "credential": {Credential: "other"}, "target": {Host: "other.example"}} {
		if found, err := reader.Actions(context.Background(), q); err != nil || len(found) != 0 {
			t.Errorf("another %s finds %d actions (%v)", name, len(found), err)
		}
	}
}
