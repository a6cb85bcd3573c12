package gateway_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// case 001: the action can be found from the caller's own name for its call alone, while it runs and afterwards, and is
// never called failed.
func TestCase001TheCallerThatTimedOutFindsItsActionByItsOwnKey(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Wait: 50 * time.Millisecond})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	call := func() action.Answer {
		return r.Call("charge", `{"amount":1,"customer":"c"}`).Key("S", 1, "toolu_1").Do()
	}
	a := call()
	b := call()
	for _, early := range []action.Answer{a, b} {
		if s := early.Status(); s.State != action.Dispatched || s.Code != action.CodeInProgress || s.ActionID != a.Action.ID || !s.Retryable || !slices.Contains(s.Next, action.NextWait) {
			t.Errorf("while it runs the caller is told %+v", s)
		}
	}
	r.AwaitEffects(1)
	r.Break()
	r.Restart("")
	if c := call(); c.Action.ID != a.Action.ID || c.Action.State != action.Completed || string(c.Result) != string(r.Provider.Effects()[0].Body) {
		t.Errorf("afterwards it is %s, %s with %s", c.Action.ID, c.Action.State, c.Result)
	}
	if r.Effects() != 1 || r.Stored(a.Action.ID).Attempt != 1 {
		t.Errorf("%d effects in %d attempts, want 1 in 1", r.Effects(), r.Stored(a.Action.ID).Attempt)
	}
}

// case 002: every one of four calls gets the same id, a state for machines and a way on.
func TestCase002EachReplyNamesTheActionAndTheWayOn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	ids := map[action.ID]bool{}
	for range 4 {
		s := r.Call("send_email", `{"to":"a"}`).Key("S", 1, "toolu_1").Do().Status()
		ids[s.ActionID] = true
		if s.State != action.Unknown || s.Code != action.CodeOutcomeUnknown || len(s.Next) == 0 || s.ExecutionID != s.ActionID {
			t.Errorf("a reply says %+v, want unknown, its code and a way on", s)
		}
	}
	if len(ids) != 1 || r.Effects() != 1 {
		t.Errorf("%d ids and %d effects, want 1 and 1", len(ids), r.Effects())
	}
}

// case 005: a killed agent's framework repeats the step in a new process and a new session. The claim stood before the send.
func TestCase005ANewProcessOfTheSameRunFindsItsAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	a := r.From(rig.Agent("agent", 10), "send_email", `{"to":"a"}`).Key("S", 4, "step-4").ID("1", "s").Do()
	b := r.From(rig.Agent("agent", 11), "send_email", `{"to":"a"}`).Key("S", 4, "step-4").ID("1", "t").Do()
	if b.Action.ID != a.Action.ID || b.Action.State != action.Unknown || r.Effects() != 1 {
		t.Errorf("the second call is %s, %s with %d effects; want %s unknown with 1", b.Action.ID, b.Action.State, r.Effects(), a.Action.ID)
	}
	kinds := rig.Kinds(r.EventsOf(a.Action.ID))
	if slices.Index(kinds, "action.accepted") > slices.Index(kinds, "action.dispatched") || slices.Index(kinds, "call.accepted") != 0 {
		t.Errorf("the journal has %q, want the claim before the dispatch", kinds)
	}
}

// case 015: each window of a crash has one rule. Behind the outcome the result is replayed, before it nothing is sent again.
func TestCase015EachCrashWindowHasItsRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   provider.Kind // "" lets the call end before the crash
		effects int
		state   action.State
	}{
		"after the plan, before the effect":   {provider.HangAfterRead, 0, action.Unknown},
		"after the effect, before its record": {provider.CommitThenHang, 1, action.Unknown},
		"after the record, before the reply":  {"", 1, action.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			if c.fault != "" {
				r.Break(provider.Fault{Kind: c.fault})
			}
			call := r.Call("send_email", `{"to":"a"}`).Key("S", 1, "toolu_1").Go()
			r.AwaitRequests(1)
			r.AwaitEffects(c.effects)
			if c.fault == "" {
				call.Answer()
			}
			r.Abandon()
			r.Break()
			r.Start()
			a := r.Call("send_email", `{"to":"a"}`).Key("S", 1, "toolu_1").Do()
			if a.Action.State != c.state || a.Action.Attempt != 1 || r.Effects() != c.effects || r.Requests() != 1 {
				t.Errorf("%s after %d attempts, %d requests, %d effects; want %s after 1, 1, %d", a.Action.State, a.Action.Attempt, r.Requests(), r.Effects(), c.state, c.effects)
			}
			if replayed := a.Status().Replayed; replayed != (c.state == action.Completed) {
				t.Errorf("replayed is %t", replayed)
			}
		})
	}
}

// case 020: an answer that only accepts the work is no success and no failure, its body is kept, and the work is not asked
// for twice.
func TestCase020AcceptedIsNotFinished(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenStatus, Status: 202, Body: `{"job":"j1"}`})
	a := r.Call("send_email", `{"to":"a"}`).Do()
	if a.Action.State == action.Completed || a.Action.State == action.Failed || a.Action.TargetStatus != 202 {
		t.Errorf("the action is %s with status %d", a.Action.State, a.Action.TargetStatus)
	}
	_, body, err := r.Reader().Result(t.Context(), a.Action.Result)
	if err != nil || string(body) != `{"job":"j1"}` {
		t.Errorf("the answer is kept as %q (%v), want the job", body, err)
	}
	if b := r.Call("send_email", `{"to":"a"}`).Do(); b.Action.ID != a.Action.ID || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("a repeat is %s with %d effects of %d requests, want %s with 1 of 1", b.Action.ID, r.Effects(), r.Requests(), a.Action.ID)
	}
}

// case 034: one key with another body is a conflict of its own kind that names the first action and gives nothing of it.
func TestCase034OneKeyWithAnotherBodyIsAConflict(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", `{"amount":100,"customer":"c"}`).Key("S", 1, "k").Do()
	_, err := r.Call("charge", `{"amount":200,"customer":"c"}`).Key("S", 1, "k").Try()
	var known *action.Error
	if !errors.As(err, &known) || known.Code != action.CodeKeyReused || known.Action != a.Action.ID {
		t.Fatalf("got %v, want %s about %s", err, action.CodeKeyReused, a.Action.ID)
	}
	if !strings.Contains(known.Message, string(a.Action.ID)) || strings.Contains(known.Message, string(a.Result)) || known.Status().Retryable {
		t.Errorf("the conflict reads %q, retryable %t", known.Message, known.Status().Retryable)
	}
	if r.Effects() != 1 || r.Requests() != 1 || len(r.Actions()) != 1 {
		t.Errorf("%d effects, %d requests, %d actions; want one of each", r.Effects(), r.Requests(), len(r.Actions()))
	}
}
