package gateway_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

const repeatCharge = `{"amount":25000,"customer":"cus_42"}`

func repeatArgs(token string) string {
	return `{"amount":25000,"customer":"cus_42","repeat_of":"` + token + `"}`
}

// RM-21, API-17: a deliberate repeat is a new action inside the window, on record as the client's word, and proves the delivery.
func TestADeliberateRepeatIsANewAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", repeatCharge).Do()
	if !strings.HasPrefix(a.RepeatOf, action.RepeatPrefix) || a.Status().RepeatOf != a.RepeatOf || !slices.Contains(a.Next(), action.NextRepeat) {
		t.Fatalf("the result carries the token %q", a.RepeatOf)
	}
	b := r.Call("charge", repeatArgs(a.RepeatOf)).ID("42", "s").Do()
	if b.Action.ID == a.Action.ID || b.Action.State != action.Completed || b.Attached || r.Effects() != 2 {
		t.Errorf("the repeat is %s, %s (attached %t) with %d effects; want a new action and 2", b.Action.ID, b.Action.State, b.Attached, r.Effects())
	}
	if got := r.Stored(b.Action.ID).Repeats; got != a.Action.ID {
		t.Errorf("the repeat names %q as its predecessor, want %s", got, a.Action.ID)
	}
	if d := r.Stored(a.Action.ID).Delivery; d != action.Delivered {
		t.Errorf("the cited result is %s, want delivered", d)
	}
	events := r.EventsOf(b.Action.ID)
	if events[0].Kind() != "call.accepted" || events[0].Text("call.match") != "repeat_of" || events[0].Text("call.request_id") != "42" || events[1].Text("action.repeats") != string(a.Action.ID) {
		t.Errorf("the journal has %v and %v, want the client's word and the predecessor", events[0], events[1])
	}
	if tokens := r.Tokens(); tokens[0] == tokens[1] {
		t.Errorf("both actions used the key %s", tokens[0])
	}
}

// RM-21, RM-18: one predecessor has one successor, however often and from how many sides the repeat is asked for.
func TestARepeatIsMadeOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", repeatCharge).Do()
	answers := r.Call("charge", repeatArgs(a.RepeatOf)).Parallel(20)
	answers = append(answers, r.Call("charge", repeatArgs(a.RepeatOf)).Run("later").Do())
	attached := 0
	for i, b := range answers {
		if b.Action.ID != answers[0].Action.ID || b.Action.ID == a.Action.ID {
			t.Errorf("answer %d is %s, want %s", i, b.Action.ID, answers[0].Action.ID)
		}
		if b.Attached && b.Match == action.MatchRepeat {
			attached++
		}
	}
	if attached != 20 || r.Effects() != 2 || len(r.Actions()) != 2 {
		t.Errorf("%d attached, %d effects, %d actions; want 20, 2, 2", attached, r.Effects(), len(r.Actions()))
	}
}

// RM-21: a repeat that does not cite a completed result of the same call is refused, and nothing is sent.
func TestAFalseRepeatIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", repeatCharge).Do()
	mail := r.Call("send_email", `{"to":"a"}`).Do()
	requests := r.Requests()
	for name, c := range map[string]*rig.Call{
		"invented":        r.Call("charge", repeatArgs("rep_0123456789abcdefghjkmnpqrs")),
		"the action's id": r.Call("charge", repeatArgs(string(a.Action.ID))),
		"other arguments": r.Call("charge", `{"amount":1,"customer":"cus_42","repeat_of":"`+a.RepeatOf+`"}`),
		"another tool's":  r.Call("charge", repeatArgs(mail.RepeatOf)),
		"another agent's": r.From(rig.Agent("other", 1), "charge", repeatArgs(a.RepeatOf)),
	} {
		_, err := c.Try()
		var known *action.Error
		if !errors.As(err, &known) || known.Code != action.CodeRepeatInvalid || known.Status().Retryable {
			t.Errorf("%s: %v, want %s", name, err, action.CodeRepeatInvalid)
		}
	}
	if r.Requests() != requests || len(r.Actions()) != 2 {
		t.Errorf("%d more requests and %d actions, want none and 2", r.Requests()-requests, len(r.Actions()))
	}
}

// RM-21, RM-28: what is unknown carries no token, and the sentence of an attached answer says how to repeat on purpose.
func TestOnlyACompletedResultCanBeRepeated(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	if a := r.Call("send_email", `{"to":"a"}`).Do(); a.RepeatOf != "" || slices.Contains(a.Next(), action.NextRepeat) {
		t.Errorf("an unknown action carries the token %q and the way on %q", a.RepeatOf, a.Next())
	}
	a := r.Call("charge", repeatCharge).Do()
	b := r.Call("charge", repeatCharge).Do()
	if b.RepeatOf != a.RepeatOf || !strings.Contains(b.Sentence(), "To do it again on purpose, pass repeat_of="+a.RepeatOf) {
		t.Errorf("the attached answer reads %q", b.Sentence())
	}
	if strings.Contains(r.Export(), a.RepeatOf) {
		t.Error("the journal holds the token itself")
	}
	if read := r.Call("get_echo", `{}`).Do(); read.RepeatOf != "" {
		t.Errorf("a read carries the token %q", read.RepeatOf)
	}
}

// RM-21: the chain goes on: the successor's own result can be repeated, the predecessor's no second time.
func TestARepeatCanBeRepeated(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", repeatCharge).Do()
	b := r.Call("charge", repeatArgs(a.RepeatOf)).Do()
	c := r.Call("charge", repeatArgs(b.RepeatOf)).Do()
	again := r.Call("charge", repeatArgs(a.RepeatOf)).Do()
	if c.Action.ID == b.Action.ID || again.Action.ID != b.Action.ID || r.Effects() != 3 {
		t.Errorf("repeats are %s, %s and again %s with %d effects; want %s again and 3", b.Action.ID, c.Action.ID, again.Action.ID, r.Effects(), b.Action.ID)
	}
}
