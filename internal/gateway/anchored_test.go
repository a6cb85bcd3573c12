package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// gate is one that a test opens and closes.
type gate struct{ shut atomic.Bool }

func (g *gate) Open() error {
	if g.shut.Load() {
		return errors.New("ten thousand records are kept nowhere outside")
	}
	return nil
}

func gated(t *testing.T, o rig.Options) (*rig.Rig, *gate) {
	t.Helper()
	g := &gate{}
	o.Parts = func(o *gateway.Options) { o.Gate = g }
	return rig.New(t, o), g
}

// AU-10, section 1.3 of the format: while too much of the journal is kept by the gateway alone, a new call sends nothing and
// plans nothing, and is told why. Refusals are coalesced. When the gate opens the same call has its effect, once.
func TestAClosedGateSendsNothingNew(t *testing.T) {
	t.Parallel()
	r, g := gated(t, rig.Options{})
	g.shut.Store(true)
	for range 50 {
		for tool, args := range map[string]string{"charge": retryCharge, "send_email": retryMail, "get_echo": `{}`} {
			_, err := r.Call(tool, args).Key("run", 1, tool).Try()
			var refused *action.Error
			if !errors.As(err, &refused) || refused.Code != action.CodeTryLater || refused.Reason != "not_anchored" {
				t.Fatalf("%s: got %v, want try later, not_anchored", tool, err)
			}
			if s := refused.Status(); s.Reason != "not_anchored" || !s.Retryable || !strings.Contains(s.Message, "kept outside") || s.ActionID != "" {
				t.Errorf("%s: the caller is told %+v", tool, s)
			}
		}
	}
	r.Settled()
	if r.Requests() != 0 || r.BytesToProvider() != 0 || len(r.Actions()) != 0 {
		t.Errorf("%d requests, %d bytes, %d actions; want none", r.Requests(), r.BytesToProvider(), len(r.Actions()))
	}
	journal := r.Export()
	if n := strings.Count(journal, `"event":"call.refused"`); n != 1 || !strings.Contains(journal, `"why":"not_anchored"`) {
		t.Errorf("150 refusals are %d events, want 1 that says why", n)
	}
	if strings.Contains(journal, `"event":"attempt`) || strings.Contains(journal, `"action.dispatched"`) {
		t.Error("something was planned")
	}
	g.shut.Store(false)
	for range 2 {
		r.Call("charge", retryCharge).Key("run", 1, "charge").Do()
	}
	if a := r.Only(); a.State != action.Completed || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("after it opened: %s, %d effects of %d requests, want one of one", a.State, r.Effects(), r.Requests())
	}
}

// What was sent is finished, recorded and answered whatever the gate says; what is completed is answered from the record.
func TestAClosedGateStopsNothingThatWasSent(t *testing.T) {
	t.Parallel()
	r, g := gated(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	call := r.Call("charge", retryCharge).Key("run", 1, "toolu_1")
	waiting := call.Go()
	r.AwaitEffects(1)
	g.shut.Store(true)
	r.Break()
	if a := waiting.Answer(); a.Action.State != action.Completed || a.Code != "" {
		t.Errorf("the call that waited: %s %s, want completed", a.Action.State, a.Code)
	}
	if a := r.Call("charge", retryCharge).Key("run", 1, "toolu_1").Do(); !a.Attached || a.Action.State != action.Completed || len(a.Result) == 0 {
		t.Errorf("its retry: %+v, want the recorded result", a.Status())
	}
	if r.Effects() != 1 {
		t.Errorf("%d effects, want 1", r.Effects())
	}
}

// What may be sent (again) waits, visibly; a target is asked all the same, and what it says is recorded. T11, T18
func TestAClosedGateLetsQuestionsThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contracts, tool, args string
		posts, gets           int
		asks                  bool
	}{
		"sent again": {"", "charge", unknownCharge, 2, 0, false},
		"asked":      {askable("review_after: 1h", askFound+", "+askUnsure), "pay", askCharge, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g := gated(t, rig.Options{Contracts: c.contracts})
			unknownSend(r, c.tool, c.args)
			g.shut.Store(true)
			r.CrashWith(func() { r.Break() })
			stop := scheduled(t, r)
			id := r.Only().ID
			if !c.asks {
				eventually(t, r, id, inState(action.Unknown))
				for range 3 {
					a := r.Call(c.tool, c.args).Key("run", 1, "toolu_1").Do()
					if a.Action.State != action.Unknown || a.Code != action.CodeOutcomeUnknown || r.Requests() != 1 {
						t.Errorf("while it is closed: %s %s, %d requests", a.Action.State, a.Code, r.Requests())
					}
				}
				g.shut.Store(false)
			}
			eventually(t, r, id, inState(action.Completed))
			stop()
			if r.Effects() != 1 || sent(r, "POST") != c.posts || sent(r, "GET") != c.gets {
				t.Errorf("%d effects, %d sends, %d questions; want 1, %d, %d", r.Effects(), sent(r, "POST"), sent(r, "GET"), c.posts, c.gets)
			}
		})
	}
}

// An action that waits for its target's own time says what it waits for now, and a person's redo is a new send too.
func TestWhatWaitsSaysThatTheGateIsClosed(t *testing.T) {
	t.Parallel()
	r, g := gated(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "3", Times: 1})
	a := r.Call("charge", retryCharge).Key("run", 1, "toolu_1").Do()
	if a.Action.State != action.Authorized {
		t.Fatalf("got %s, want authorized", a.Action.State)
	}
	g.shut.Store(true)
	time.Sleep(time.Until(a.Action.NotBefore)) // the target's time, by the clock on the wall
	a = r.Call("charge", retryCharge).Key("run", 1, "toolu_1").Do()
	if s := a.Status(); s.Reason != "not_anchored" || s.Code != action.CodeTryLater || !strings.Contains(s.Message, "kept outside") || r.Requests() != 1 {
		t.Errorf("after %d requests the caller is told %+v", r.Requests(), s)
	}
	if stored := r.Stored(a.Action.ID); stored.Reason == "not_anchored" {
		t.Error("a reason that is gone in a moment is on record")
	}
	g.shut.Store(false)
	if a = r.Call("charge", retryCharge).Key("run", 1, "toolu_1").Do(); a.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("after it opened: %s, %d effects", a.Action.State, r.Effects())
	}

	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	mail := r.Call("send_email", retryMail).Key("run", 2, "toolu_2").Do()
	g.shut.Store(true)
	requests := r.Requests()
	redo := action.ReviewAsked{Action: mail.Action.ID, Decision: action.Redo, Why: "it did not arrive"}
	_, err := r.Gateway.Review(context.Background(), rig.Agent("reviewer", 9), redo)
	var refused *action.Error
	if !errors.As(err, &refused) || refused.Code != action.CodeTryLater || r.Requests() != requests || r.Stored(mail.Action.ID).State != action.Unknown {
		t.Errorf("a redo: %v, %d requests more", err, r.Requests()-requests)
	}
	redo.Decision, redo.Why, redo.Evidence = action.Happened, "", "the mail is in the box"
	if a, err := r.Gateway.Review(context.Background(), rig.Agent("reviewer", 9), redo); err != nil || a.Action.State != action.Completed {
		t.Errorf("a finding is no send: %v, %v", a.Action.State, err)
	}
}
