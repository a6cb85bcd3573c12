package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

const deliveryCharge = `{"amount":25000,"customer":"cus_42"}`

// deliveryLost makes a charge whose caller leaves after the effect and before the answer.
func deliveryLost(t *testing.T, r *rig.Rig, cause error) action.ID {
	t.Helper()
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, leave := context.WithCancelCause(context.Background())
	call := r.Call("charge", deliveryCharge).ID("41", "s").Under(ctx).Go()
	r.AwaitEffects(1)
	leave(cause)
	a := call.Answer()
	if a.Action.State != action.Dispatched || a.Code != action.CodeInProgress {
		t.Errorf("whoever left is told %s, %s; want dispatched, in progress", a.Action.State, a.Code)
	}
	r.Break()
	return a.Action.ID
}

// deliveryEnds stops the gateway, which waits for the work under way, and reads what came of the action.
func deliveryEnds(r *rig.Rig, id action.ID) action.Action {
	r.T.Helper()
	r.Restart("")
	return r.Stored(id)
}

// ST-07, RM-03, RM-24: the target answered and the caller was gone: completed, and only the delivery is interrupted.
func TestALostCallerInterruptsTheDeliveryAndNothingElse(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := deliveryLost(t, r, nil)
	a := deliveryEnds(r, id)
	if a.State != action.Completed || a.Delivery != action.DeliveryInterrupted || a.TargetStatus != 201 {
		t.Errorf("the action is %s, %s, status %d; want completed, interrupted, 201", a.State, a.Delivery, a.TargetStatus)
	}
	if got := action.Shown(a.State, a.Delivery); got != "completed_result_not_delivered" {
		t.Errorf("it is shown as %q", got)
	}
	for _, e := range r.EventsOf(id) {
		if k := e.Kind(); k == "action.failed" || k == "action.unknown" || k == "action.rejected" {
			t.Errorf("the leaving of the caller made %s", k)
		}
	}
}

// ST-08, RM-13, RM-02: the repeat after a lost answer gets the same body by its reference, and the target is not asked.
func TestAnUndeliveredResultIsReturnedWithoutASecondRequest(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, leave := context.WithCancel(context.Background())
	call := r.Call("charge", deliveryCharge).Under(ctx).Go()
	r.AwaitEffects(1)
	leave()
	id := call.Answer().Action.ID
	r.Break()
	r.Restart("")

	b := r.Call("charge", deliveryCharge).ID("42", "t").Do()
	if b.Action.ID != id || string(b.Result) != string(r.Provider.Effects()[0].Body) {
		t.Errorf("the repeat is %s with %s, want %s with %s", b.Action.ID, b.Result, id, r.Provider.Effects()[0].Body)
	}
	if s := b.Status(); s.Result == "" || s.AttachedTo != id || !s.Replayed || s.EffectMode != action.Replay {
		t.Errorf("the repeat says %+v, want an attached replay with its reference", s)
	}
	if r.Requests() != 1 || r.Effects() != 1 {
		t.Errorf("%d requests and %d effects, want 1 and 1", r.Requests(), r.Effects())
	}
}

// ST-06: only what a transport can establish is recorded as delivered; a hand-over without proof is unconfirmed, and later
// proof can raise it. Nothing takes a delivery back.
func TestDeliveryIsWhatTheTransportCanProve(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", deliveryCharge).Do().Action.ID
	if d := r.Stored(id).Delivery; d != action.DeliveryPending {
		t.Errorf("before anything is known of it the delivery is %s, want pending", d)
	}
	for _, step := range []struct{ said, want action.Delivery }{
		{action.DeliveryUnconfirmed, action.DeliveryUnconfirmed},
		{action.DeliveryInterrupted, action.DeliveryInterrupted},
		{action.Delivered, action.Delivered},
		{action.DeliveryUnconfirmed, action.Delivered},
		{action.DeliveryInterrupted, action.Delivered},
		{action.DeliveryNone, action.Delivered},
	} {
		r.Gateway.Delivered(id, step.said, "evidence")
		a := r.Stored(id)
		if a.Delivery != step.want || a.State != action.Completed {
			t.Errorf("after %s the record is %s, %s; want completed, %s", step.said, a.State, a.Delivery, step.want)
		}
	}
}

// ST-06: an unconfirmed result still attaches, a delivered one does not.
func TestAnUnconfirmedResultStillAttaches(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", deliveryCharge).Do()
	r.Gateway.Delivered(a.Action.ID, action.DeliveryUnconfirmed, "handed_over")
	r.Settled()
	if b := r.Call("charge", deliveryCharge).Do(); b.Action.ID != a.Action.ID || r.Effects() != 1 {
		t.Errorf("unconfirmed: an equal call is %s with %d effects, want %s with 1", b.Action.ID, r.Effects(), a.Action.ID)
	}
	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	r.Settled()
	if b := r.Call("charge", deliveryCharge).Do(); b.Action.ID == a.Action.ID || r.Effects() != 2 {
		t.Errorf("delivered: an equal call is %s with %d effects, want a new action with 2", b.Action.ID, r.Effects())
	}
}

// RM-24: a caller that leaves, or cancels, while its action is being sent leaves a record of it as a wish. The outcome is
// recorded all the same, and the state is not what the caller wished.
func TestLeavingDuringTheSendIsRecordedAsAWish(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		why   string
	}{"left": {errors.New("gone"), "caller_left"}, "cancelled": {gateway.ErrCancelled, "cancel_requested"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			id := deliveryLost(t, r, c.cause)
			a := deliveryEnds(r, id)
			if a.State != action.Completed || a.RejectReason != "" {
				t.Errorf("the action is %s %q, want completed", a.State, a.RejectReason)
			}
			var wishes []string
			for _, e := range r.EventsOf(id) {
				if e.Kind() == "call.left" {
					wishes = append(wishes, e.Text("call.why")+" of "+e.Text("call.request_id")+" while "+e.Text("call.prior_state"))
				}
			}
			if want := []string{c.why + " of 41 while dispatched"}; !slices.Equal(wishes, want) {
				t.Errorf("the journal records %q, want %q", wishes, want)
			}
		})
	}
}

// RM-24, RM-29: a caller that leaves before its claim is durable leaves nothing: no action, no byte.
func TestLeavingBeforeTheClaimLeavesNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("get_echo", `{}`).Do() // the run is known, so that only the claim has to be written
	bytes, events := r.BytesToProvider(), len(r.Actions())

	busy, release := make(chan struct{}), make(chan struct{})
	written := make(chan error, 1)
	go func() {
		written <- r.Store.Commit(context.Background(), func(store.Tx) error { close(busy); <-release; return nil })
	}()
	<-busy
	ctx, leave := context.WithCancel(context.Background())
	call := r.Call("charge", deliveryCharge).Under(ctx).Go()
	leave()
	_, err := call.Try()
	close(release)
	if e := <-written; e != nil {
		t.Fatal(e)
	}
	var known *action.Error
	if !errors.As(err, &known) || known.Code != action.CodeNotSent || known.Action != "" {
		t.Errorf("the caller was told %v, want %s without an action", err, action.CodeNotSent)
	}
	if n := len(r.Actions()); n != events || r.BytesToProvider() != bytes || r.Effects() != 0 {
		t.Errorf("%d more actions, %d more bytes, %d effects; want none", n-events, r.BytesToProvider()-bytes, r.Effects())
	}
}

// RM-24: several callers wait for one action; that one of them leaves interrupts nothing for the others.
func TestOneOfSeveralCallersMayLeave(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, leave := context.WithCancel(context.Background())
	first := r.Call("charge", deliveryCharge).Under(ctx).Go()
	r.AwaitEffects(1)
	second := r.Call("charge", deliveryCharge).ID("42", "t").Go()
	deliveryAwaitAttached(r)
	leave()
	if a := first.Answer(); a.Action.State != action.Dispatched {
		t.Errorf("the first caller is told %s", a.Action.State)
	}
	r.Break()
	b := second.Answer()
	if b.Action.State != action.Completed || !b.Attached || string(b.Result) != string(r.Provider.Effects()[0].Body) {
		t.Errorf("the second caller gets %s (attached %t) and %s", b.Action.State, b.Attached, b.Result)
	}
	if a := r.Stored(b.Action.ID); a.Delivery == action.DeliveryInterrupted || r.Requests() != 1 {
		t.Errorf("the delivery is %s after %d requests", a.Delivery, r.Requests())
	}
}

// deliveryAwaitAttached waits until a call has attached. Each round waits for a commit.
func deliveryAwaitAttached(r *rig.Rig) {
	r.T.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); r.Settled() {
		found := false
		err := r.Store.Records(context.Background(), 0, func(_ int64, _ [32]byte, body []byte) error {
			found = found || strings.Contains(string(body), `"event":"call.attached"`)
			return nil
		})
		if err != nil {
			r.T.Fatal(err)
		}
		if found {
			return
		}
	}
	r.T.Fatal("no call has attached")
}

// ST-08, RM-20, case 050: a settled action gives its recorded result again, with its own id and marked as a replay, in every
// way of asking.
func TestACompletedActionAskedAgainReturnsTheRecordedResult(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	call := func() *rig.Call { return r.Call("charge", deliveryCharge).Key("task", 1, "toolu_1") }
	a := call().Do()
	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	r.Settled()
	for range 3 {
		b := call().Do()
		s := b.Status()
		if b.Action.ID != a.Action.ID || string(b.Result) != string(a.Result) || b.Code != "" || s.State != action.Completed {
			t.Errorf("asked again it is %s, %q with %s; want %s, the same result and no error", b.Action.ID, b.Code, b.Result, a.Action.ID)
		}
		if !s.Replayed || s.EffectMode != action.Replay || s.AttachedTo != a.Action.ID || s.Match != action.MatchKey {
			t.Errorf("asked again it says %+v, want an attached replay by key", s)
		}
		if !strings.HasPrefix(s.Message, "Nothing new was done; this is "+string(a.Action.ID)) {
			t.Errorf("asked again it reads %q", s.Message)
		}
	}
	if r.Requests() != 1 || r.Effects() != 1 {
		t.Errorf("%d requests and %d effects, want 1 and 1", r.Requests(), r.Effects())
	}
}
