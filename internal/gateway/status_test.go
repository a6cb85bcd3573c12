package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

func statusAs(actor action.Actor, run string) action.Call {
	return action.Call{Tool: action.ToolStatus, Actor: actor, Caller: action.CallerKey{Run: run}, At: time.Now()}
}

// API-09: whoever awaits an action is no caller of it. Its callers left, so nothing more is sent, and it is not taken up again.
func TestAwaitingCarriesNothingOn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "1"})
	ctx, leave := context.WithCancel(context.Background())
	call := r.Call("charge", `{"amount":1,"customer":"c"}`).Under(ctx).Go()
	r.AwaitRequests(1)
	id := r.Only().ID
	awaited := make(chan action.Answer, 1)
	go func() {
		a, err := r.Gateway.Await(context.Background(), statusAs(rig.Agent("agent", 4711), ""), id, 3*time.Second)
		if err != nil {
			t.Error(err)
		}
		awaited <- a
	}()
	time.Sleep(100 * time.Millisecond) // the other one is waiting by now
	leave()
	call.Answer()
	a := <-awaited
	if a.Action.State != action.Authorized || a.Code != action.CodeTryLater || r.Requests() != 1 {
		t.Errorf("the action is %s (%s) after %d requests, want authorized and 1", a.Action.State, a.Code, r.Requests())
	}
}

// API-20: whoever stops waiting takes nothing with it.
func TestLeavingAWaitStopsNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	call := r.Call("send_email", answersMail).Go()
	r.AwaitEffects(1)
	ctx, leave := context.WithCancel(context.Background())
	leave()
	a, err := r.Gateway.Await(ctx, statusAs(rig.Agent("agent", 4711), ""), r.Only().ID, 10*time.Second)
	if err != nil || a.Action.State != action.Dispatched {
		t.Errorf("got %s, %v; want dispatched", a.Action.State, err)
	}
	r.Break()
	if a := call.Answer(); a.Action.State != action.Completed {
		t.Errorf("the call was answered %s", a.Action.State)
	}
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "call.left" {
			t.Error("a reader that left is on record as a caller that did")
		}
	}
}

// API-07: what the target asked for is told, rounded up to whole seconds.
func TestStatusTellsWhenToComeAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "1800"})
	id := r.Call("charge", `{"amount":1,"customer":"c"}`).Do().Action.ID
	a, err := r.Gateway.Status(context.Background(), statusAs(rig.Agent("agent", 4711), ""), id)
	if err != nil {
		t.Fatal(err)
	}
	if s := a.Status(); s.RetryAfter == nil || *s.RetryAfter < 1700 || *s.RetryAfter > 1800 || s.EffectMode != action.NoEffect {
		t.Errorf("got %+v", s)
	}
}

// API-09: every caller but the principal itself is told the same, and so is one about whom nothing was proved.
func TestStatusIsThePrincipalsOwn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("send_email", answersMail).Do().Action.ID
	again := rig.Agent("agent", 12) // another process of the same agent, after a restart perhaps
	if a, err := r.Gateway.Status(context.Background(), statusAs(again, "any"), id); err != nil || a.Action.ID != id {
		t.Errorf("the agent's next process is told %v", err)
	}
	for name, c := range map[string]struct {
		actor action.Actor
		id    action.ID
		code  action.Code
	}{
		"another agent": {rig.Agent("other", 4711), id, action.CodeNoSuchAction},
		"no action":     {again, "act_00000000000000000000000000", action.CodeNoSuchAction},
		"no id":         {again, "", action.CodeNoSuchAction},
		"bytes":         {again, "\x00\xff", action.CodeNoSuchAction},
		"nobody":        {action.Actor{}, id, action.CodeUnauthenticated},
	} {
		_, err := r.Gateway.Await(context.Background(), statusAs(c.actor, ""), c.id, time.Minute)
		var known *action.Error
		if !errors.As(err, &known) || known.Code != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
}
