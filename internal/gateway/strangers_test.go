package gateway_test

import (
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// strangers is a token that several hold, who cannot be told apart.
var strangers = action.Actor{Kind: "token", Identity: "several", Strength: action.StrengthToken, Shared: true}

// A stranger's action that the target asked to send later could be carried on by nobody: each equal call was held by it,
// for ever.
func TestAStrangersActionDoesNotWaitForNobody(t *testing.T) {
	t.Parallel()
	const args = `{"amount":1,"customer":"cus_9"}`
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 429, RetryAfter: "60", Times: 1})
	a := r.From(strangers, "charge", args).Do()
	if stored := r.Stored(a.Action.ID); stored.State != action.Rejected || stored.RejectReason != action.Expired {
		t.Errorf("the action is %s (%s), want rejected (expired)", stored.State, stored.RejectReason)
	}
	if a.Action.State != action.Rejected {
		t.Errorf("the caller is told %s", a.Action.State)
	}
	b := r.From(strangers, "charge", args).Do()
	if b.Held || b.Attached || b.Action.ID == a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("an equal call is %s, %s (held %t, attached %t) with %d effects; want a new action, completed, 1",
			b.Action.ID, b.Action.State, b.Held, b.Attached, r.Effects())
	}
}

// A fresh tool-call id alone counted as a sign of the same caller: a second stranger got the first one's result, and the
// token to repeat it.
func TestAFreshIDDoesNotTellStrangersApart(t *testing.T) {
	t.Parallel()
	const args = `{"amount":25000,"customer":"cus_42"}`
	r := rig.New(t, rig.Options{})
	a := r.From(strangers, "charge", args).Key("", 0, "toolu_one").Do()
	b := r.From(strangers, "charge", args).Key("", 0, "toolu_two").Do()
	if !b.Held || b.Status().HeldBy != a.Action.ID {
		t.Errorf("the second call is %s (held %t), want it held by %s", b.Action.ID, b.Held, a.Action.ID)
	}
	if len(b.Result) > 0 || b.RepeatOf != "" || b.ResultJSON() != nil {
		t.Errorf("it was given the result %q and the token %q", b.Result, b.RepeatOf)
	}
	if r.Effects() != 1 || len(r.Actions()) != 1 {
		t.Errorf("%d effects of %d actions, want 1 of 1", r.Effects(), len(r.Actions()))
	}
}
