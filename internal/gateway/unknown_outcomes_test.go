package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// Tools that an unknown outcome is tried on: with keys, without anything, and one whose proof stands in the answer's body.
const (
	unknownCharge = `{"amount":25000,"customer":"cus_42"}`
	unknownMail   = `{"to":"ann"}`
	unknownByBody = `
tool: file_report
description: An effect that only the whole answer proves.
input:
  type: object
  required: [name]
  properties:
    name: {type: string}
http:
  method: POST
  url: PROXY/v1/objects/{name}
  credential: provider
  private: [127.0.0.0/8]
  json: {name: "${args.name}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status == 201 && body.object == "object"}
no_effect_when: ${status in [400, 404, 422]}
timeout: TIMEOUT
keep_result: 30d
`
)

func unknownTimes(kind provider.Kind, n int) provider.Fault {
	return provider.Fault{Kind: kind, Times: n}
}

func unknownWant(t *testing.T, a action.Action, state action.State, reason string) {
	t.Helper()
	if a.State != state || a.Reason != reason {
		t.Errorf("%s is %s (%s), want %s (%s)", a.ID, a.State, a.Reason, state, reason)
	}
}

// UN-01: a lost response and a timeout are a third outcome, stored as such, whatever the target did.
func TestLostResponseAndTimeoutAreUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason string
		timeout      string
		fault        provider.Kind
		effects      int
		state        action.AttemptState
	}{
		{"committed and dropped", "response_lost", "20s", provider.CommitThenDrop, 1, action.AttemptTransportError},
		{"hangs without effect", "timeout", "600ms", provider.HangAfterRead, 0, action.AttemptTimeout},
		{"committed and hangs", "timeout", "600ms", provider.CommitThenHang, 1, action.AttemptTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Timeout: c.timeout})
			r.Break(unknownTimes(c.fault, 1))
			a := r.Call("send_email", unknownMail).Do()
			unknownWant(t, r.Stored(a.Action.ID), action.Unknown, c.reason)
			if got := r.Effects(); got != c.effects {
				t.Errorf("effects %d, want %d", got, c.effects)
			}
			if len(a.Attempts) != 1 || a.Attempts[0].State != c.state || a.Attempts[0].Certainty != action.Indeterminate {
				t.Errorf("attempts %+v, want one that is %s and indeterminate", a.Attempts, c.state)
			}
			events := r.EventsOf(a.Action.ID)
			last := events[len(events)-1]
			if last.Kind() != "action.unknown" || last.Text("action.reason") != c.reason {
				t.Errorf("the journal ends with %s (%s), want action.unknown (%s)", last.Kind(), last.Text("action.reason"), c.reason)
			}
		})
	}
}

// UN-02, UN-21, UN-22, UN-23: what an agent is told of an unknown outcome never denies the effect, is no plain error, and
// says what can be done.
func TestUnknownIsNeverToldAsAFailure(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Timeout: "600ms"})
	r.Break(provider.Fault{Kind: provider.CommitThenHang})
	fresh, err := r.Call("send_email", unknownMail).Key("run", 1, "a").Try()
	if err != nil {
		t.Fatalf("an unknown outcome came as a plain error: %v", err)
	}
	again := r.Call("send_email", unknownMail).Key("run", 1, "a").Do()
	other := r.Call("send_email", unknownMail).Key("other run", 1, "b").Do()
	for name, a := range map[string]action.Answer{"fresh": fresh, "attached": again, "held": other} {
		s := a.Status()
		if s.State != action.Unknown || s.EffectMode == action.Replay || s.Result != "" {
			t.Errorf("%s: state %s, effect mode %s, result %q", name, s.State, s.EffectMode, s.Result)
		}
		if !slices.Contains(s.Next, action.NextReview) || !slices.Contains(s.Next, action.NextStatus) {
			t.Errorf("%s: next is %v, want at least a review and the status", name, s.Next)
		}
		if slices.Contains(s.Next, action.NextRetry) || slices.Contains(s.Next, action.NextRepeat) {
			t.Errorf("%s: next is %v, and offers to do it again", name, s.Next)
		}
		if !strings.Contains(s.Message, "may have") {
			t.Errorf("%s: the message does not say that it may have happened: %q", name, s.Message)
		}
		text, _ := json.Marshal(s)
		low := strings.ToLower(string(text))
		for _, word := range []string{"fail", "not executed", "no effect", "nothing happened", "did not happen", "not done", "no_effect"} {
			if strings.Contains(low, word) {
				t.Errorf("%s: %q is said of an unknown outcome: %s", name, word, text)
			}
		}
	}
	if fresh.Status().Reason != "timeout" || again.Status().AttachedTo != fresh.Action.ID || other.Status().HeldBy != fresh.Action.ID {
		t.Errorf("reason %q, attached to %q, held by %q", fresh.Status().Reason, again.Status().AttachedTo, other.Status().HeldBy)
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("effects %d, requests %d, want 1 and 1", r.Effects(), r.Requests())
	}
	if meaning := strings.ToLower(action.Codes[action.CodeOutcomeUnknown].Meaning); strings.Contains(meaning, "fail") {
		t.Errorf("the code's meaning says %q", meaning)
	}
}

// UN-22: an agent that repeats whatever comes back as a plain error makes no second call on an unknown outcome.
func TestModelThatRetriesErrorsDoesNotRetryUnknown(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Timeout: "600ms"})
	r.Break(provider.Fault{Kind: provider.CommitThenHang})
	calls := 0
	for range 5 {
		calls++
		if _, err := r.Call("send_email", unknownMail).Try(); err == nil {
			break
		}
	}
	if calls != 1 || r.Effects() != 1 {
		t.Errorf("calls %d, effects %d, want 1 and 1", calls, r.Effects())
	}
}

// UN-21: the choices of each state, as data.
func TestChoicesOfEachState(t *testing.T) {
	t.Parallel()
	unknown := func(r action.Recovery) action.Action { return action.Action{State: action.Unknown, Recovery: r} }
	for name, c := range map[string]struct {
		answer action.Answer
		want   string
	}{
		"dispatched":      {action.Answer{Action: action.Action{State: action.Dispatched}}, "wait ask_status ask_for_review"},
		"reconciling":     {action.Answer{Action: unknown(action.Reconciling)}, "wait ask_status ask_for_review"},
		"review required": {action.Answer{Action: unknown(action.ReviewRequired)}, "ask_for_review ask_status"},
		"held":            {action.Answer{Held: true, Action: unknown(action.ReviewRequired)}, "wait ask_status ask_for_review"},
		"authorized":      {action.Answer{Action: action.Action{State: action.Authorized}}, "retry"},
		"not sent":        {action.Answer{Action: action.Action{State: action.Failed, FailureClass: action.NotSent}}, "retry change_the_call"},
		"refused":         {action.Answer{Action: action.Action{State: action.Failed, FailureClass: action.RejectedByTarget}}, "change_the_call"},
		"completed":       {action.Answer{Action: action.Action{State: action.Completed}, RepeatOf: "rep_x"}, "repeat_on_purpose"},
	} {
		if got := strings.Join(c.answer.Status().Next, " "); got != c.want {
			t.Errorf("%s: next is %q, want %q", name, got, c.want)
		}
	}
}

// UN-03, HT-10, HT-11: a connection that was refused sent nothing; that is recorded as zero bytes, and the next attempt is
// one of the same action.
func TestRefusedConnectionIsNotSentAndTriedAgainUnderTheSameAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	first := r.Call("charge", unknownCharge).Do()
	if s := first.Action.State; s != action.Failed && s != action.Authorized {
		t.Fatalf("state %s (%s), want one without effect", s, first.Action.Reason)
	}
	if first.Action.State == action.Failed && first.Action.FailureClass != action.NotSent {
		t.Errorf("failure class %s, want not_sent", first.Action.FailureClass)
	}
	r.Cut(chaos.Plan{})
	second := r.Call("charge", unknownCharge).Do()
	if second.Action.ID != first.Action.ID || second.Action.State != action.Completed {
		t.Fatalf("the next call is %s, %s; want %s completed", second.Action.ID, second.Action.State, first.Action.ID)
	}
	if r.Effects() != 1 || r.Requests() != 1 || len(r.Actions()) != 1 {
		t.Errorf("effects %d, requests %d, actions %d, want one each", r.Effects(), r.Requests(), len(r.Actions()))
	}
	for i, at := range second.Attempts[:len(second.Attempts)-1] {
		if at.State != action.AttemptNotSent || at.BytesSent != 0 || at.Certainty != action.NoEffectProven {
			t.Errorf("attempt %d is %s with %d bytes, %s; want not_sent with 0", i+1, at.State, at.BytesSent, at.Certainty)
		}
	}
	for _, e := range r.EventsOf(first.Action.ID) {
		if e.Text("outcome.state") == "not_sent" && e.Text("outcome.bytes_sent") != "0" {
			t.Errorf("the journal gives %q bytes for an attempt that was not sent", e.Text("outcome.bytes_sent"))
		}
	}
}

// UN-04, HT-10, HT-11: once bytes left, silence and resets prove nothing, however few bytes arrived, and the count is the
// one on the wire.
func TestBytesThatLeftMakeSilenceUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		plan chaos.Plan
	}{
		{"swallowed after 200 bytes", chaos.Plan{Mode: chaos.SwallowRequest, Bytes: 200}},
		{"cut on the first byte", chaos.Plan{Mode: chaos.CutRequest, Bytes: 0}},
		{"cut after 200 bytes", chaos.Plan{Mode: chaos.CutRequest, Bytes: 200}},
		{"answer cut on its first byte", chaos.Plan{Mode: chaos.CutResponse, Bytes: 0}},
		{"answer cut after 5 bytes", chaos.Plan{Mode: chaos.CutResponse, Bytes: 5}},
		{"answer swallowed", chaos.Plan{Mode: chaos.SwallowResponse, Bytes: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Timeout: "600ms"})
			r.Cut(c.plan)
			a := r.Call("send_email", unknownMail).Do()
			if a.Action.State != action.Unknown || a.Action.Recovery != action.ReviewRequired {
				t.Fatalf("state %s, recovery %s (%s), want unknown", a.Action.State, a.Action.Recovery, a.Action.Reason)
			}
			conns := r.Proxy.Connections()
			if len(conns) != 1 || len(a.Attempts) != 1 {
				t.Fatalf("connections %d, attempts %d, want one each", len(conns), len(a.Attempts))
			}
			if got, want := a.Attempts[0].BytesSent, conns[0].FromClient; got != want || got == 0 {
				t.Errorf("bytes_sent %d, and the wire carried %d", got, want)
			}
			events := r.EventsOf(a.Action.ID)
			var recorded int64
			_ = json.Unmarshal([]byte(events[len(events)-1].Text("outcome.bytes_sent")), &recorded)
			if recorded != conns[0].FromClient {
				t.Errorf("the journal says %d bytes, the wire carried %d", recorded, conns[0].FromClient)
			}
			if r.Requests() > 1 {
				t.Errorf("the provider saw %d requests", r.Requests())
			}
		})
	}
}

// UN-09, UN-10: after a lost response the order on record is unknown, a same-key resend, evidence, completed; and the
// answer is the one of the first request.
func TestUnknownIsSettledByTheTargetsOwnMemory(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	a := r.Call("charge", unknownCharge).Do()
	if a.Action.State != action.Completed || r.Effects() != 1 || r.Requests() != 2 {
		t.Fatalf("state %s, effects %d, requests %d; want completed, 1, 2", a.Action.State, r.Effects(), r.Requests())
	}
	if row := r.Provider.Effects()[0]; string(a.Result) != string(row.Body) {
		t.Errorf("the result is %s, the first request was told %s", a.Result, row.Body)
	}
	events := r.EventsOf(a.Action.ID)
	kinds := rig.Kinds(events)
	from := slices.Index(kinds, "action.dispatched")
	want := []string{"action.dispatched", "action.unknown", "action.dispatched", "action.completed"}
	if from < 0 || !slices.Equal(kinds[from:], want) {
		t.Fatalf("the journal has %v, want to end with %v", kinds, want)
	}
	lost, resend, evidence := events[from+1], events[from+2], events[from+3]
	if lost.Text("action.reason") != "response_lost" || lost.Text("action.recovery") != "reconciling" {
		t.Errorf("unknown because of %q, recovery %q", lost.Text("action.reason"), lost.Text("action.recovery"))
	}
	if resend.Text("action.transition") != "T18" || resend.Text("attempt.retry_of") != lost.Text("attempt_id") {
		t.Errorf("the resend is %s and retries %q, want T18 and %q", resend.Text("action.transition"), resend.Text("attempt.retry_of"), lost.Text("attempt_id"))
	}
	if evidence.Text("outcome.http_status") != "201" || evidence.Text("outcome.ended_at") == "" || evidence.Text("result.commitment") == "" {
		t.Errorf("the evidence has status %q, time %q, answer %q", evidence.Text("outcome.http_status"), evidence.Text("outcome.ended_at"), evidence.Text("result.commitment"))
	}
}

// UN-15, case 031: only an answer that the contract says precedes any effect is a failure. Everything else that is no
// proof of success is unknown, whether or not the effect happened.
func TestOnlyADeclaredRefusalIsAFailure(t *testing.T) {
	t.Parallel()
	status := func(n int) provider.Fault { return provider.Fault{Kind: provider.AnswerStatus, Status: n} }
	after := func(n int) provider.Fault { return provider.Fault{Kind: provider.CommitThenStatus, Status: n} }
	for _, c := range []struct {
		name, tool, args string
		fault            provider.Fault
		state            action.State
		effects          int
	}{
		{"400", "send_email", unknownMail, status(400), action.Failed, 0},
		{"422", "send_email", unknownMail, status(422), action.Failed, 0},
		{"500 before", "send_email", unknownMail, status(500), action.Unknown, 0},
		{"500 after", "send_email", unknownMail, after(500), action.Unknown, 1},
		{"502", "send_email", unknownMail, status(502), action.Unknown, 0},
		{"503 that is not listed", "send_email", unknownMail, provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "1"}, action.Unknown, 0},
		{"504 after", "send_email", unknownMail, after(504), action.Unknown, 1},
		{"409", "send_email", unknownMail, status(409), action.Unknown, 0},
		{"202 that is not listed", "send_email", unknownMail, after(202), action.Unknown, 1},
		{"reset", "send_email", unknownMail, provider.Fault{Kind: provider.ResetBeforeRead}, action.Unknown, 0},
		{"dropped before the effect", "send_email", unknownMail, provider.Fault{Kind: provider.DropAfterRead}, action.Unknown, 0},
		{"cut answer whose body is the proof", "file_report", `{"name":"q3"}`, provider.Fault{Kind: provider.TruncateBody}, action.Unknown, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: rig.Usual + "---" + unknownByBody})
			r.Break(c.fault)
			a := r.Call(c.tool, c.args).Do()
			if got := r.Stored(a.Action.ID); got.State != c.state {
				t.Errorf("state %s (%s), want %s", got.State, got.Reason, c.state)
			}
			if c.fault.Status != 0 && r.Stored(a.Action.ID).TargetStatus != c.fault.Status {
				t.Errorf("target status %d, want %d", r.Stored(a.Action.ID).TargetStatus, c.fault.Status)
			}
			if r.Effects() != c.effects || r.Requests() != 1 {
				t.Errorf("effects %d, requests %d, want %d and 1", r.Effects(), r.Requests(), c.effects)
			}
		})
	}
}

// UN-16, HT-16: a failed action that is asked for again gives its recorded failure, and no byte leaves.
func TestFailedActionAskedAgainGivesItsFailure(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 400, Body: `{"error":"no such customer"}`})
	first := r.Call("charge", unknownCharge).Key("run", 1, "a").Do()
	if first.Code != action.CodeTargetRefused || first.Retryable() {
		t.Errorf("code %s, retryable %v", first.Code, first.Retryable())
	}
	r.Break()
	before := r.Proxy.Connections()
	again := r.Call("charge", unknownCharge).Key("run", 1, "a").Do()
	if again.Code != action.CodePreviouslyFailed || again.Retryable() || again.Action.ID != first.Action.ID {
		t.Errorf("code %s, retryable %v, action %s; want OPERATION_PREVIOUSLY_FAILED, false, %s", again.Code, again.Retryable(), again.Action.ID, first.Action.ID)
	}
	if string(again.Result) != `{"error":"no such customer"}` {
		t.Errorf("the recorded answer is %s", again.Result)
	}
	after := r.Proxy.Connections()
	if len(after) != len(before) || after[0].FromClient != before[0].FromClient || r.Requests() != 1 || r.Effects() != 0 {
		t.Errorf("bytes left: connections %d then %d, requests %d", len(before), len(after), r.Requests())
	}
	if s := r.Stored(first.Action.ID); s.State != action.Failed || s.FailureClass != action.RejectedByTarget || s.Attempt != 1 {
		t.Errorf("stored: %s, %s, %d attempts", s.State, s.FailureClass, s.Attempt)
	}
}

// UN-23: a result whose delivery broke off is told as what it is: completed, not known to have arrived.
func TestInterruptedDeliveryIsToldWithTheResult(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	first := r.Call("charge", unknownCharge).Do()
	r.Gateway.Delivered(first.Action.ID, action.DeliveryInterrupted, "caller_left")
	r.Settled()
	again := r.Call("charge", unknownCharge).Do()
	s := again.Status()
	if s.Shown != "completed_result_not_delivered" || s.Delivery != action.DeliveryInterrupted || s.EffectMode != action.Replay || !s.Replayed {
		t.Errorf("shown %q, delivery %s, effect mode %s", s.Shown, s.Delivery, s.EffectMode)
	}
	if s.AttachedTo != first.Action.ID || !strings.Contains(s.Message, "Nothing new was done") || !strings.Contains(s.Message, "not known to have arrived") {
		t.Errorf("attached to %q, message %q", s.AttachedTo, s.Message)
	}
	if string(again.Result) != string(first.Result) || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("result equal: %v, effects %d, requests %d", string(again.Result) == string(first.Result), r.Effects(), r.Requests())
	}
}

// case 026: an early refusal of a large upload is seen or lost, and is never taken for success or sent twice.
func TestEarlyAnswerToALargeUploadIsRefusedOrUnknown(t *testing.T) {
	t.Parallel()
	contracts := strings.ReplaceAll(unknownByBody, "[400, 404, 422]", "[400, 404, 413, 422]")
	contracts = strings.Replace(contracts, "name: {type: string}", "name: {type: string}\n    text: {type: string}", 1)
	contracts = strings.Replace(contracts, `{name: "${args.name}"}`, `{name: "${args.name}", text: "${args.?text}"}`, 1)
	r := rig.New(t, rig.Options{Contracts: contracts})
	r.Break(provider.Fault{Kind: provider.Early413})
	big := strings.Repeat("x", 900<<10)
	for i := range 6 {
		name := string(rune('a' + i))
		a := r.Call("file_report", `{"name":"`+name+`","text":"`+big+`"}`).Do()
		if a.Action.State != action.Unknown && (a.Action.State != action.Failed || a.Action.TargetStatus != 413) {
			t.Errorf("run %d: state %s, status %d", i, a.Action.State, a.Action.TargetStatus)
		}
		if len(a.Attempts) != 1 || r.Requests() != i+1 {
			t.Errorf("run %d: attempts %d, requests %d", i, len(a.Attempts), r.Requests())
		}
	}
	if r.Effects() != 0 {
		t.Errorf("effects %d, want 0", r.Effects())
	}
}
