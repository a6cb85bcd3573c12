package operator_test

import (
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/lab/provider"
)

// UN-27: what a redo would risk is said as the class and the time have it, and never smaller than it is.
func TestARedoSaysWhatItRisks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		class  action.Class
		before time.Time
		says   string
	}{
		{action.ReadOnly, time.Time{}, "It only reads"},
		{action.RepeatableWithKey, now.Add(time.Hour), "that makes it one effect"},
		{action.RepeatableWithKey, now, "there will be two"},
		{action.RepeatableWithKey, time.Time{}, "there will be two"},
		{action.StatusQueryable, now.Add(time.Hour), "there will be two"},
		{action.BlockedAfterUnknown, time.Time{}, "there will be two"},
		{"", time.Time{}, "there will be two"},
	} {
		for _, choice := range operator.Choices(action.Action{State: action.Unknown, Class: c.class, ResendBefore: c.before}, now) {
			sends := strings.Contains(choice.Does, "SENDS")
			if sends != (choice.Decision == action.Redo) || sends && !strings.Contains(choice.Does, c.says) {
				t.Errorf("%q, key kept until %s: %s says %q", c.class, c.before, choice.Decision, choice.Does)
			}
		}
	}
	for _, over := range []action.Action{{State: action.Completed}, {State: action.Dispatched}, {State: action.Unknown, Abandoned: true}} {
		if got := operator.Choices(over, now); len(got) != 0 {
			t.Errorf("%s, abandoned %t: %v can be decided", over.State, over.Abandoned, got)
		}
	}
}

// An answer that proves nothing is part of what is known.
func TestAnUnprovenAnswerIsShown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Break(provider.Fault{Kind: provider.CommitThenStatus, Status: 500, Times: 1})
	a := s.Call("send_email", `{"to":"a"}`).Key("run", 1, "toolu_1").Do()
	c, err := operator.NewClient(s.socket).Show(t.Context(), a.Action.ID)
	s.must(err)
	if known := strings.Join(c.Known, "\n"); !strings.Contains(known, "was answered 500, which by the contract proves nothing") {
		t.Errorf("known is\n%s", known)
	}
}
