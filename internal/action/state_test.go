package action_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deed.dev/deed/internal/action"
)

// ST-17: of all pairs of states, only those of the table can be moved along.
func TestOnlyTheListedMovesArePossible(t *testing.T) {
	for _, m := range action.Moves {
		for _, from := range action.States {
			a := action.Action{ID: "act_1", State: from, FailureClass: action.NotSent, MaxAttempts: 3}
			err := a.Check(m.Name)
			if legal := from == m.From; legal != (err == nil) {
				t.Errorf("%s from %s: legal is %v, got %v", m.Name, from, legal, err)
			}
		}
	}
	if err := (action.Action{State: action.Completed}).Check("T99"); err == nil {
		t.Error("a move that is not in the table was allowed")
	}
}

// ST-28, ST-10: nothing leaves completed or rejected, and failed only to try what was never sent.
func TestFinalStatesAreLeftByNothingButT22(t *testing.T) {
	for _, m := range action.Moves {
		if m.From.Final() && m.Name != action.T22 {
			t.Errorf("%s leaves the final state %s", m.Name, m.From)
		}
		if m.To == action.Dispatched && m.Name != action.T11 && m.Name != action.T18 {
			t.Errorf("%s enters dispatched; only T11 and T18 may", m.Name)
		}
		if m.To == action.Accepted && m.From != "" {
			t.Errorf("%s goes back to accepted", m.Name)
		}
	}
	refused := action.Action{State: action.Failed, FailureClass: action.RejectedByTarget, MaxAttempts: 3}
	if err := refused.Check(action.T22); err == nil {
		t.Error("an action that the target refused was opened again")
	}
}

// ST-15: the coarse view is total and agrees with what may have happened.
func TestCoarseStateIsTotal(t *testing.T) {
	want := map[action.State]string{
		action.Accepted: "PENDING", action.AwaitingApproval: "PENDING", action.Authorized: "PENDING",
		action.Dispatched: "INVOKED", action.Unknown: "UNKNOWN", action.Completed: "COMMITTED",
		action.Failed: "FAILED", action.Rejected: "FAILED",
	}
	for _, s := range action.States {
		if got := s.Coarse(); got != want[s] {
			t.Errorf("%s is shown as %s, want %s", s, got, want[s])
		}
	}
	if got := action.State("made up").Coarse(); got != "UNKNOWN" {
		t.Errorf("a state that nobody knows is shown as %s, want UNKNOWN", got)
	}
}

// UN-15, ST-18, HT-11: an outcome that proves nothing is unknown, whatever its other fields say.
func TestWhatIsNotProvedIsUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := action.Action{
			State: action.Dispatched, Attempt: rapid.IntRange(1, 5).Draw(t, "attempt"), MaxAttempts: 5,
			Class: rapid.SampledFrom(action.Classes).Draw(t, "class"),
		}
		o := action.Outcome{
			State:     rapid.SampledFrom(action.AttemptStates).Draw(t, "state"),
			BytesSent: rapid.Int64Range(0, 1000).Draw(t, "bytes"),
			Status:    rapid.SampledFrom([]int{0, 200, 400, 500, 503}).Draw(t, "status"),
			Retry:     rapid.Bool().Draw(t, "retry"),
			Reason:    "timeout",
		}
		if s := a.Settle(o); s.Transition != action.T16 {
			t.Fatalf("an indeterminate outcome led to %s", s.Transition)
		}
		o.Certainty, o.State, o.Retry = action.NoEffectProven, action.AttemptNotSent, false
		if o.BytesSent > 0 {
			if s := a.Settle(o); s.Transition != action.T16 {
				t.Fatalf("an attempt that wrote %d bytes and calls itself not sent led to %s", o.BytesSent, s.Transition)
			}
		}
	})
}

// ST-27: each class of failure has its own proof.
func TestEachProofLeadsToItsOwnMove(t *testing.T) {
	dispatched := action.Action{State: action.Dispatched, Attempt: 1, MaxAttempts: 2, Class: action.RepeatableWithKey}
	last := dispatched
	last.Attempt = 2
	for name, c := range map[string]struct {
		act  action.Action
		out  action.Outcome
		want action.Transition
		fail action.FailureClass
	}{
		"effect":               {dispatched, action.Outcome{Certainty: action.EffectProven, State: action.AttemptCompleted}, action.T12, ""},
		"refused":              {dispatched, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptRefused, Status: 400}, action.T13, action.RejectedByTarget},
		"refused, try again":   {dispatched, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptRefused, Status: 503, Retry: true}, action.T14, ""},
		"refused, none left":   {last, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptRefused, Status: 503, Retry: true}, action.T13, action.RejectedByTarget},
		"not sent":             {dispatched, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptNotSent, Retry: true}, action.T14, ""},
		"not sent, hopeless":   {dispatched, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptNotSent}, action.T15, action.NotSent},
		"not sent, none left":  {last, action.Outcome{Certainty: action.NoEffectProven, State: action.AttemptNotSent, Retry: true}, action.T15, action.NotSent},
		"nothing known at all": {dispatched, action.Outcome{}, action.T16, ""},
	} {
		if s := c.act.Settle(c.out); s.Transition != c.want || s.FailureClass != c.fail {
			t.Errorf("%s: got %s %q, want %s %q", name, s.Transition, s.FailureClass, c.want, c.fail)
		}
	}
}

// UN-20, UN-28, EX-21, DOC-12: the rule of the document is the rule of the code.
func TestRetryRule(t *testing.T) {
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	for _, state := range action.States {
		for _, class := range action.Classes {
			a := action.Action{State: state, Class: class, MaxAttempts: 3, Attempt: 1, Recovery: action.Reconciling, ResendBefore: now.Add(time.Second)}
			want := action.Transition("")
			switch {
			case state == action.Authorized:
				want = action.T11
			case state == action.Unknown && (class == action.ReadOnly || class == action.RepeatableWithKey):
				want = action.T18
			}
			if got, ok := a.MaySend(now, false); got != want || ok != (want != "") {
				t.Errorf("%s, %s: got %q, want %q", state, class, got, want)
			}
			a.Attempt = 3
			if got, ok := a.MaySend(now, false); ok {
				t.Errorf("%s, %s: a fourth of three attempts was allowed as %s", state, class, got)
			}
		}
	}
	a := action.Action{State: action.Unknown, Class: action.RepeatableWithKey, Recovery: action.Reconciling, MaxAttempts: 3, Attempt: 1, ResendBefore: now}
	if _, ok := a.MaySend(now, false); ok {
		t.Error("a same-key resend was allowed after the target's key had lapsed")
	}
	a.ResendBefore = now.Add(time.Hour)
	if _, ok := a.MaySend(now, true); ok { // RM-27
		t.Error("a same-key resend was allowed although the clock is behind the journal")
	}
	a.Recovery = action.ReviewRequired
	if _, ok := a.MaySend(now, false); ok {
		t.Error("an action that waits for a person was sent again")
	}
}

// What a resend is answered proves nothing about the attempt before it: while that one is in doubt, only a proved effect
// settles the action.
func TestRefusedResendLeavesTheDoubt(t *testing.T) {
	a := action.Action{State: action.Dispatched, Attempt: 1, MaxAttempts: 5, Class: action.RepeatableWithKey}
	apply := func(m action.Moved) {
		t.Helper()
		m.FromAttempt = a.Attempt
		next, err := a.Apply(action.Event{MoveBody: &m})
		if err != nil {
			t.Fatal(err)
		}
		a = next
	}
	apply(action.Moved{Transition: action.T16, Recovery: action.Reconciling})
	apply(action.Moved{Transition: action.T18, Started: &action.Attempt{Number: 2}})
	for name, o := range map[string]action.Outcome{
		"refused":   {Certainty: action.NoEffectProven, State: action.AttemptRefused, Status: 401},
		"try later": {Certainty: action.NoEffectProven, State: action.AttemptRefused, Status: 503, Retry: true},
		"not sent":  {Certainty: action.NoEffectProven, State: action.AttemptNotSent, Retry: true},
		"hopeless":  {Certainty: action.NoEffectProven, State: action.AttemptNotSent},
	} {
		s := a.Settle(o)
		if s.Transition != action.T16 {
			t.Errorf("%s: led to %s although the first attempt is in doubt", name, s.Transition)
		}
		if want := map[bool]action.Recovery{true: action.ReviewRequired, false: action.Reconciling}[o.Status == 401]; s.Recovery != want {
			t.Errorf("%s: waits for %s, want %s", name, s.Recovery, want)
		}
	}
	if s := a.Settle(action.Outcome{Certainty: action.EffectProven}); s.Transition != action.T12 {
		t.Errorf("a proved effect led to %s", s.Transition)
	}
	read := action.Action{State: action.Dispatched, Attempt: 1, MaxAttempts: 5, Class: action.ReadOnly}
	next, err := read.Apply(action.Event{MoveBody: &action.Moved{Transition: action.T16, FromAttempt: 1}})
	if err != nil || next.Doubted {
		t.Errorf("a read has no effect to doubt: %v %v", next.Doubted, err)
	}
}

func TestStaleMovesAreRefused(t *testing.T) {
	a := action.Action{ID: "act_1", State: action.Authorized, Attempt: 1, MaxAttempts: 3}
	_, err := a.Apply(action.Event{MoveBody: &action.Moved{Transition: action.T11, FromAttempt: 0, Started: &action.Attempt{Number: 2}}})
	var illegal *action.IllegalMoveError
	if !errors.As(err, &illegal) {
		t.Errorf("a move that starts from another attempt was applied: %v", err)
	}
	if _, err = a.Apply(action.Event{MoveBody: &action.Moved{Transition: action.T11, FromAttempt: 1, Started: &action.Attempt{Number: 3}}}); err == nil {
		t.Error("an attempt number was skipped")
	}
}

// ST-16: a move without a result keeps an earlier one.
func TestMoveKeepsAnEarlierResult(t *testing.T) {
	a := action.Action{State: action.Dispatched, Attempt: 1, MaxAttempts: 2, Result: "result_1", RepeatToken: "t"}
	next, err := a.Apply(action.Event{MoveBody: &action.Moved{Transition: action.T16, FromAttempt: 1}})
	if err != nil || next.Result != "result_1" || next.RepeatToken != "t" {
		t.Errorf("got %q %q, %v", next.Result, next.RepeatToken, err)
	}
}

// ST-07: delivery never changes what is known of the effect, and evidence of arrival is not taken back.
func TestDeliveryLeavesTheStateAlone(t *testing.T) {
	for _, state := range action.States {
		for _, from := range action.Deliveries {
			for _, to := range action.Deliveries {
				a := action.Action{State: state, Delivery: from}
				next, err := a.Apply(action.Event{DeliveryBody: &action.DeliveryMoved{From: from, To: to}})
				if next.State != state {
					t.Errorf("delivery %s to %s moved the state", from, to)
				}
				if (err == nil) != from.CanBecome(to) {
					t.Errorf("delivery %s to %s: %v", from, to, err)
				}
			}
		}
		if action.Delivered.CanBecome(action.DeliveryInterrupted) {
			t.Error("a proved delivery was taken back")
		}
	}
	if got := action.Shown(action.Completed, action.DeliveryInterrupted); got != "completed_result_not_delivered" {
		t.Errorf("got %s", got)
	}
}
