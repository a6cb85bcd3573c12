package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// lateRig is a rig whose tools give up on an answer long before it comes.
func lateRig(t *testing.T, contracts string) *rig.Rig {
	t.Helper()
	return rig.New(t, rig.Options{Timeout: "500ms", Contracts: contracts})
}

// late is a fault of the next request that does something.
func late(f provider.Fault, after time.Duration) provider.Fault {
	f.Method, f.Times, f.Delay = "POST", 1, after
	return f
}

// UN-19, case 001: the answer comes a while after the timeout was recorded. It settles the action, and the first attempt has
// its status. Nothing was sent twice, and nobody was ever told that it failed.
func TestCase001ALateAnswerSettlesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]provider.Kind{"the effect at once": provider.CommitThenDelay, "the effect late": provider.Delay} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lateRig(t, "")
			r.Break(late(provider.Fault{Kind: kind}, 1600*time.Millisecond))
			ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer leave()
			r.Call("send_email", unknownMail).Key("S", 1, "toolu_1").Under(ctx).Do()
			first := r.Call("send_email", unknownMail).Key("S", 1, "toolu_1").Do() // found by its own key alone
			if first.Action.State != action.Unknown || first.Code != action.CodeOutcomeUnknown || len(first.Attempts) != 1 || first.Attempts[0].State != action.AttemptTimeout {
				t.Fatalf("before the answer it is %s with attempts %+v", first.Action.State, first.Attempts)
			}
			before := first.Attempts[0]
			a := eventually(t, r, first.Action.ID, inState(action.Completed))
			all := r.AttemptsOf(a.ID)
			if len(all) != 1 || all[0].ID != before.ID || all[0].Status != 201 || all[0].Certainty != action.EffectProven || !all[0].Started.Equal(before.Started) {
				t.Errorf("the attempts are %+v, want the first one with its status", all)
			}
			if got := findings(t, r, a.ID); !slices.Equal(got, []string{"late_answer found"}) {
				t.Errorf("learned %q, want one late answer", got)
			}
			again := r.Call("send_email", unknownMail).Key("S", 1, "toolu_1").Do()
			if again.SettledBy != action.SettledByLate || string(again.Result) != string(r.Provider.Effects()[0].Body) || !again.Status().Replayed {
				t.Errorf("a repeat is told %s by %q with %s", again.Action.State, again.SettledBy, again.Result)
			}
			if r.Effects() != 1 || r.Requests() != 1 {
				t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
			}
			kinds := rig.Kinds(r.EventsOf(a.ID))
			if u, o, c := slices.Index(kinds, "action.unknown"), slices.Index(kinds, "action.observed"), slices.Index(kinds, "action.completed"); u < 0 || o < u || c < o {
				t.Errorf("the journal has %v", kinds)
			}
		})
	}
}

// UN-19: a refusal that comes late, and that the contract says precedes any effect, proves that there was none. There was one
// attempt, so that settles the action.
func TestALateRefusalOfTheOnlyAttemptSettlesIt(t *testing.T) {
	t.Parallel()
	r := lateRig(t, "")
	r.Break(late(provider.Fault{Kind: provider.AnswerStatus, Status: 400}, 1100*time.Millisecond))
	id := r.Call("send_email", unknownMail).Do().Action.ID
	a := eventually(t, r, id, inState(action.Failed))
	if a.FailureClass != action.NoEffectConfirmed || a.TargetStatus != 400 || a.Attempt != 1 {
		t.Errorf("it is failed (%s) with status %d after %d attempts", a.FailureClass, a.TargetStatus, a.Attempt)
	}
	if got := findings(t, r, id); len(got) != 1 || !strings.HasPrefix(got[0], "late_answer ended_without_effect") {
		t.Errorf("learned %q", got)
	}
	if r.Effects() != 0 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 0 of 1", r.Effects(), r.Requests())
	}
}

// UN-19: a late answer that proves nothing is kept, and settles nothing.
func TestALateAnswerThatProvesNothingSettlesNothing(t *testing.T) {
	t.Parallel()
	r := lateRig(t, "")
	r.Break(late(provider.Fault{Kind: provider.AnswerStatus, Status: 500}, 1000*time.Millisecond))
	id := r.Call("send_email", unknownMail).Do().Action.ID
	a := eventually(t, r, id, func(a action.Action) bool { return a.Observations == 1 })
	if got := findings(t, r, id); a.State != action.Unknown || a.Recovery != action.ReviewRequired || len(got) != 1 || !strings.HasPrefix(got[0], "late_answer") {
		t.Errorf("it is %s, %s; learned %q", a.State, a.Recovery, got)
	}
}

// UN-19: an answer that comes late while a resend runs waits for its end. It counts if it proves the effect; that one of two
// attempts had none proves nothing about the other.
func TestALateAnswerWhileAResendRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first   provider.Fault
		state   action.State
		finding string
		effects int
	}{
		"success": {provider.Fault{Kind: provider.CommitThenDelay}, action.Completed, "late_answer found", 1},
		"refusal": {provider.Fault{Kind: provider.AnswerStatus, Status: 400}, action.Unknown, "late_answer  refused_by_target", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Timeout: "600ms", Contracts: strings.Replace(rig.Usual, "attempts: 5", "attempts: 2", 1)})
			r.Break(late(c.first, 900*time.Millisecond), onPost(provider.HangAfterRead))
			call := r.Call("charge", unknownCharge).Go()
			r.AwaitRequests(2)
			a := r.Only()
			eventually(t, r, a.ID, func(a action.Action) bool { return len(findings(t, r, a.ID)) == 1 })
			call.Answer()
			a = r.Stored(a.ID)
			if got := findings(t, r, a.ID); a.State != c.state || a.Attempt != 2 || got[0] != c.finding {
				t.Errorf("it is %s (%s) after %d attempts; learned %q", a.State, a.Reason, a.Attempt, got)
			}
			all := r.AttemptsOf(a.ID)
			if c.state == action.Completed && (all[0].Status != 201 || all[1].Certainty != action.Indeterminate) {
				t.Errorf("the attempts are %+v, want the first to have the status", all)
			}
			if r.Effects() != c.effects || r.Requests() != 2 {
				t.Errorf("%d effects of %d requests, want %d of 2", r.Effects(), r.Requests(), c.effects)
			}
		})
	}
}

// UN-19: an answer that comes after deed has closed changes nothing, and the next start does not know of it.
func TestALateAnswerAfterTheCloseIsNotWritten(t *testing.T) {
	t.Parallel()
	r := lateRig(t, "")
	r.Break(late(provider.Fault{Kind: provider.CommitThenDelay}, time.Minute))
	id := r.Call("send_email", unknownMail).Do().Action.ID
	r.Idle()
	before := r.Export()
	r.Break()                          // answers now
	time.Sleep(150 * time.Millisecond) // for whoever would write it
	if r.Export() != before || r.Stored(id).State != action.Unknown {
		t.Errorf("something was written after the close: it is %s", r.Stored(id).State)
	}
	r.Restart("")
	if a := r.Stored(id); a.State != action.Unknown || a.Recovery != action.ReviewRequired || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("after the next start it is %s, %s; %d effects of %d requests", a.State, a.Recovery, r.Effects(), r.Requests())
	}
}

// UN-19, UN-27: a person was quicker than the answer. What a person has settled stays as it is, and that the target says
// otherwise is on record.
func TestALateAnswerDoesNotOverrideAReview(t *testing.T) {
	t.Parallel()
	for _, decision := range []action.ReviewDecision{action.DidNot, action.Abandon} {
		t.Run(string(decision), func(t *testing.T) {
			t.Parallel()
			r := lateRig(t, "")
			r.Break(late(provider.Fault{Kind: provider.CommitThenDelay}, time.Minute))
			id := r.Call("send_email", unknownMail).Do().Action.ID
			asked := action.ReviewAsked{Action: id, Decision: decision, Why: "the mailbox is empty", Evidence: "the mail server's log"}
			if _, err := r.Gateway.Review(t.Context(), reviewer, asked); err != nil {
				t.Fatal(err)
			}
			settled := r.Stored(id)
			r.Break()
			a := eventually(t, r, id, func(a action.Action) bool { return a.Observations == 1 })
			if a.State != settled.State || a.Reason != settled.Reason || a.Abandoned != settled.Abandoned {
				t.Errorf("it is %s (%s), want %s (%s) as it was reviewed", a.State, a.Reason, settled.State, settled.Reason)
			}
			all, err := r.Store.Observations(t.Context(), id)
			if err != nil || len(all) != 1 || all[0].Kind != action.ByStale || all[0].Certainty != action.EffectProven || all[0].Status != 201 {
				t.Errorf("observed %+v (%v), want the target's word", all, err)
			}
		})
	}
}

// reviewer is a person at the operator's side.
var reviewer = action.Actor{Kind: "token", Identity: "reviewer", Strength: action.StrengthToken}
