package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

const (
	doubtMail   = `{"to":"a"}`
	doubtCharge = `{"amount":1,"customer":"cus_9"}`
)

// doubtUnknown makes a mail whose response is lost.
func doubtUnknown(t *testing.T, r *rig.Rig) action.Answer {
	t.Helper()
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("send_email", doubtMail).Do()
	if a.Action.State != action.Unknown {
		t.Fatalf("the first mail is %s, want unknown", a.Action.State)
	}
	return a
}

// A call under a changed contract did not see the unknown action that an equal call had made under the contract before,
// and the effect was made a second time.
func TestAnUnknownActionStandsInTheWayAfterAChangeOfTheContract(t *testing.T) {
	t.Parallel()
	subject := strings.Replace(rig.Usual, "    subject: {type: string}", "    subject: {type: string, default: hello}", 1)
	for name, text := range map[string]string{
		"a default more":                         subject,
		"a default more and no resource":         strings.Replace(subject, "resource: mailbox/${args.to}\n", "", 1),
		"other attempts, times and descriptions": strings.NewReplacer("attempts: 5", "attempts: 4", "attach_for: 15m", "attach_for: 10m", "An effect at", "Some effect at").Replace(rig.Usual),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			a := doubtUnknown(t, r)
			r.Restart(text)
			b := r.Call("send_email", doubtMail).Do()
			if b.Action.ID != a.Action.ID || !b.Held && !b.Attached {
				t.Errorf("the equal call is %s (held %t, attached %t), want it held by or attached to %s", b.Action.ID, b.Held, b.Attached, a.Action.ID)
			}
			if r.Effects() != 1 || r.Requests() != 1 {
				t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
			}
		})
	}
}

// A deliberate repeat passed a hold: the token of an older result proved nothing about the equal action that was unknown.
func TestARepeatWaitsForWhatIsUnknown(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	a := r.Call("send_email", doubtMail).Do()
	clock.Move(time.Hour) // an equal call is a new action now
	b := doubtUnknown(t, r)
	if b.Action.ID == a.Action.ID {
		t.Fatal("the second mail attached to the first")
	}
	c := r.Call("send_email", `{"to":"a","repeat_of":"`+a.RepeatOf+`"}`).Do()
	if !c.Held || c.Status().HeldBy != b.Action.ID {
		t.Errorf("the repeat is %s (held %t), want it held by %s", c.Action.ID, c.Held, b.Action.ID)
	}
	if r.Effects() != 2 || len(r.Actions()) != 2 {
		t.Errorf("%d effects of %d actions, want 2 of 2", r.Effects(), len(r.Actions()))
	}
}

// While an unknown action was sent again it counted as dispatched, and an equal call of another run passed.
func TestAnActionThatIsSentAgainStillHolds(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1}, provider.Fault{Kind: provider.HangAfterRead, Times: 1})
	first := r.Call("charge", doubtCharge).Run("one").Go()
	r.AwaitRequests(2)
	open := r.Only()
	if open.State != action.Dispatched || open.Attempt != 2 {
		t.Fatalf("the charge is %s in attempt %d, want dispatched in attempt 2", open.State, open.Attempt)
	}
	b := r.Call("charge", doubtCharge).Run("two").Do()
	if !b.Held || b.Status().HeldBy != open.ID {
		t.Errorf("the other run's call is %s (held %t), want it held by %s", b.Action.ID, b.Held, open.ID)
	}
	r.Break()
	if a := first.Answer(); a.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("the charge is %s with %d effects, want completed with 1", a.Action.State, r.Effects())
	}
}

// Recovery met a full queue and dropped what it had not taken up yet: those actions stayed unknown until somebody called.
func TestEveryOpenActionIsTakenUpAtTheStart(t *testing.T) {
	t.Parallel()
	const many = 30 // more than are worked on side by side, and far more than the queue has room for
	r := rig.New(t, rig.Options{Queue: 4})
	r.Break(provider.Fault{Kind: provider.CommitThenHang})
	for i := range many {
		r.Call("charge", fmt.Sprintf(`{"amount":%d,"customer":"cus_%d"}`, i+1, i)).Go()
		r.AwaitEffects(i + 1)
	}
	r.Abandon()
	r.Break()
	r.Start()
	records, done := r.Reader(), 0
	for deadline := time.Now().Add(10 * time.Second); done < many && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		all, err := records.Actions(t.Context(), store.Query{States: []action.State{action.Completed}})
		if err != nil {
			t.Fatal(err)
		}
		done = len(all)
	}
	if done != many || r.Effects() != many {
		t.Errorf("%d of %d actions came to their end, with %d effects", done, many, r.Effects())
	}
}

// A caller's cancel was kept with the work, and ended the action of a caller who asked for the same afterwards.
func TestACancelDoesNotReachALaterCaller(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.HangAfterRead, Times: 1}) // answers 503 in the end: to be tried later
	ctx, cancel := context.WithCancelCause(context.Background())
	first := r.Call("charge", doubtCharge).Run("one").Under(ctx).Go()
	r.AwaitRequests(1)
	cancel(gateway.ErrCancelled)
	a := first.Answer()
	second := r.Call("charge", doubtCharge).Run("one").Go()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(r.Export(), `"call.attached"`); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second call did not attach")
		}
	}
	r.Break()
	b := second.Answer()
	if b.Action.ID != a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("the later call is %s, %s (%s) with %d effects; want %s, completed, 1",
			b.Action.ID, b.Action.State, b.Action.RejectReason, r.Effects(), a.Action.ID)
	}
}

// After the clock was set back, a target's Retry-After of one second was counted from the old time, and the action waited
// for a year.
func TestAClockThatWasSetBackDoesNotProlongAWait(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	clock.Move(365 * 24 * time.Hour)
	r := rig.New(t, rig.Options{Now: clock.Now})
	r.Call("get_echo", `{}`).Do()
	clock.Move(-365 * 24 * time.Hour)
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 429, RetryAfter: "1", Times: 1})
	a := r.Call("charge", doubtCharge).Do()
	if a.RetryAfter > 2*time.Second {
		t.Errorf("the caller is told to wait for %s", a.RetryAfter)
	}
	b := r.Call("charge", doubtCharge).Do()
	if b.Action.ID != a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("the same call is %s, %s with %d effects; want %s, completed, 1", b.Action.ID, b.Action.State, r.Effects(), a.Action.ID)
	}
}

// UN-30: what is unknown is taken up from time to time without any call, once the target wants to be asked again.
func TestWhatIsUnknownIsTakenUpWithoutAnyCall(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1}, provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "3", Times: 1})
	a := r.Call("charge", `{"amount":1,"customer":"c"}`).Do()
	if a.Action.State != action.Unknown || a.Action.Recovery != action.Reconciling || r.Requests() != 2 {
		t.Fatalf("got %s %s after %d requests", a.Action.State, a.Action.Recovery, r.Requests())
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Gateway.Run(ctx) }()
	r.AwaitRequests(3)
	for deadline := time.Now().Add(10 * time.Second); r.Stored(a.Action.ID).State != action.Completed; {
		if time.Now().After(deadline) {
			t.Fatalf("it is still %s", r.Stored(a.Action.ID).State)
		}
	}
	stop()
	<-done
	if r.Effects() != 1 || r.Requests() != 3 {
		t.Errorf("%d effects, %d requests", r.Effects(), r.Requests())
	}
}
