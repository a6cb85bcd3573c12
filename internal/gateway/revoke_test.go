package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

func revoke(t *testing.T, r *rig.Rig, asked action.RevokeAsked) action.RevokeDone {
	t.Helper()
	asked.Why = "the wrong customer"
	done, err := r.Gateway.Revoke(t.Context(), rig.Operator(), asked)
	must(t, err)
	return done
}

// AP-17, VA-10: what is allowed and not sent yet is rejected when it is revoked: no byte, no dispatch, and who did it stands on
// record. (T10)
func TestWhatIsRevokedIsNotSent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 429, RetryAfter: "3600", Times: 1})
	call := func() *rig.Call { return r.Call("charge", approvalCharge).Key("t", 1, "a") }
	a := call().Do()
	if a.Action.State != action.Authorized {
		t.Fatalf("it is %s", a.Action.State)
	}
	done := revoke(t, r, action.RevokeAsked{Action: a.Action.ID})
	if len(done.Rejected) != 1 || done.Rejected[0] != a.Action.ID || len(done.Sent) != 0 {
		t.Errorf("it is told %+v", done)
	}
	now := r.Stored(a.Action.ID)
	if now.State != action.Rejected || now.RejectReason != action.Revoked {
		t.Errorf("it is %s (%s)", now.State, now.RejectReason)
	}
	b := call().Do()
	if b.Action.ID != a.Action.ID || b.Code != action.CodeRejected || b.Status().Decision != done.ID || !strings.Contains(b.Sentence(), "revoked") || r.Requests() != 1 {
		t.Errorf("asked again it is told %+v after %d requests", b.Status(), r.Requests())
	}
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "action.rejected" {
			if e.Text("revocation.by") != rig.Operator().String() || e.Text("revocation.why") != "the wrong customer" || e.Text("action.transition") != "T10" ||
				e.Text("revocation.strength") == "" || e.Text("revocation.decision_id") != string(done.ID) {
				t.Errorf("it is recorded as %v", e)
			}
			return
		}
	}
	t.Error("no rejection is on record")
}

// AP-17: what a person is asked about, and what a person approved, ends with its revocation; the approval is void.
func TestARevocationVoidsTheApproval(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("")})
	asking := r.Call("send_email", `{"to":"a"}`).Key("t", 1, "a").Go()
	p := r.Asked("")
	revoke(t, r, action.RevokeAsked{Action: p.Action})
	if a := asking.Answer(); a.Action.State != action.Rejected || a.Action.RejectReason != action.Revoked {
		t.Errorf("the caller that waits is told %s (%s)", a.Action.State, a.Action.RejectReason)
	}
	_, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
	wantRefused(t, "approved afterwards", err, action.CodeApprovalRefused)
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 429, RetryAfter: "3600", Times: 1})
	asking = r.Call("charge", approvalCharge).Key("t", 2, "b").Go()
	q := r.Asked("")
	r.Approve(q.Action)
	asking.Answer()
	revoke(t, r, action.RevokeAsked{Action: q.Action})
	for _, id := range []action.ID{p.Action, q.Action} {
		all := r.RequestsAbout(id)
		if len(all) != 1 || all[0].State != action.ApprovalVoid || all[0].Why != "revoked" {
			t.Errorf("the requests about %s are %+v", id, all)
		}
	}
	if r.Requests() != 1 || r.Effects() != 0 {
		t.Errorf("%d requests, %d effects", r.Requests(), r.Effects())
	}
}

// VA-10: what is on its way goes on, its outcome is recorded, and it is not sent again; the answer says so.
func TestWhatIsSentGoesOn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("send_email", `{"to":"a"}`).Key("t", 1, "a").Do() // unknown
	c := r.Call("get_echo", `{}`).Key("t", 3, "c").Do()
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	hanging := r.Call("send_email", `{"to":"b"}`).Key("t", 2, "b").Go() // dispatched, and its answer does not come
	r.AwaitEffects(2)
	b := r.Actions()[0]
	done := revoke(t, r, action.RevokeAsked{Run: a.Action.Run})
	if len(done.Rejected) != 0 || len(done.Sent) != 2 || done.Settled != 1 {
		t.Errorf("it is told %+v", done)
	}
	for _, id := range []action.ID{a.Action.ID, b.ID} {
		if now := r.Stored(id); !now.Withdrawn || now.State == action.Rejected {
			t.Errorf("%s is %s, withdrawn %t", id, now.State, now.Withdrawn)
		}
	}
	if c := r.Stored(c.Action.ID); c.State != action.Completed || c.Withdrawn {
		t.Errorf("what was over is %s, withdrawn %t", c.State, c.Withdrawn)
	}
	r.Break()
	if now := hanging.Answer(); now.Action.ID != b.ID || now.Action.State != action.Completed {
		t.Errorf("what was on its way ends %s", now.Action.State)
	}
	again := revoke(t, r, action.RevokeAsked{Run: a.Action.Run})
	if len(again.Sent) != 1 || again.Settled != 2 {
		t.Errorf("again: %+v", again)
	}
	// A new call of the run begins nothing.
	d := r.Call("get_echo", `{"customer":"other"}`).Key("t", 4, "d").Do()
	if d.Action.State != action.Rejected || d.Action.RejectReason != action.Revoked {
		t.Errorf("a new call of a revoked run is %s (%s)", d.Action.State, d.Action.RejectReason)
	}
	if e := r.Call("get_echo", `{"customer":"other"}`).Key("another", 1, "e").Do(); e.Action.State != action.Completed {
		t.Errorf("a call of another run is %s", e.Action.State)
	}
}

// AP-18: one branch is revoked and its siblings go on; so does the other actor.
func TestABranchIsRevokedAndItsSiblingsGoOn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 50 * time.Millisecond})
	one := r.Call("send_email", `{"to":"a"}`).Key("t", 1, "a").Do()
	two := r.Call("send_email", `{"to":"b"}`).Key("t", 2, "b").Do()
	other := r.From(rig.Agent("other", 99), "send_email", `{"to":"c"}`).Key("t", 1, "a").Do()
	third := r.From(rig.Agent("other", 99), "send_email", `{"to":"d"}`).Key("u", 1, "a").Do()
	if done := revoke(t, r, action.RevokeAsked{Intent: one.Action.Intent}); len(done.Rejected) != 1 || done.Rejected[0] != one.Action.ID {
		t.Errorf("the branch: %+v", done)
	}
	if r.Approve(two.Action.ID).Action.State != action.Completed || r.Stored(one.Action.ID).State != action.Rejected || r.Effects() != 1 {
		t.Errorf("the branch is %s, its sibling %s", r.Stored(one.Action.ID).State, r.Stored(two.Action.ID).State)
	}
	if done := revoke(t, r, action.RevokeAsked{Actor: other.Action.Actor}); len(done.Rejected) != 2 {
		t.Errorf("the actor: %+v", done)
	}
	for _, id := range []action.ID{other.Action.ID, third.Action.ID} {
		if a := r.Stored(id); a.RejectReason != action.Revoked {
			t.Errorf("%s is %s (%s)", id, a.State, a.RejectReason)
		}
	}
	if f := r.From(rig.Agent("other", 99), "send_email", `{"to":"e"}`).Key("t", 9, "z").Do(); f.Action.RejectReason != action.Revoked {
		t.Errorf("the revoked actor's run goes on: %s", f.Action.State)
	}
	if f := r.Call("send_email", `{"to":"f"}`).Key("t", 9, "z").Do(); f.Action.State != action.AwaitingApproval {
		t.Errorf("another actor is stopped too: %s", f.Action.State)
	}
}

// An action that was sent, came back with the promise of no effect, and was revoked meanwhile, is not sent again.
func TestARevokedActionIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 100})
	pending := r.Call("charge", approvalCharge).Key("t", 1, "a").Go() // sent again under its key, by itself
	r.AwaitRequests(1)
	id := r.Only().ID
	revoke(t, r, action.RevokeAsked{Action: id})
	a := pending.Answer()
	at := r.Requests()
	r.Break()
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	r.Gateway.Run(ctx)
	r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	if now := r.Stored(id); now.State != action.Unknown || now.Recovery != action.ReviewRequired || now.Reason != "revoked" || r.Requests() != at {
		t.Errorf("it is %s, %s (%s), after %d and then %d requests; the caller was told %s", now.State, now.Recovery, now.Reason, at, r.Requests(), a.Action.State)
	}
}

func TestARevocationSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("get_echo", `{}`).Do()
	for name, asked := range map[string]action.RevokeAsked{
		"nothing":       {Why: "x"},
		"two things":    {Why: "x", Action: a.Action.ID, Run: a.Action.Run},
		"no reason":     {Action: a.Action.ID, Why: " "},
		"no actor":      {Actor: "agent", Why: "x"},
		"a long reason": {Action: a.Action.ID, Why: strings.Repeat("x", action.MaxReviewText+1)},
	} {
		_, err := r.Gateway.Revoke(t.Context(), rig.Operator(), asked)
		wantRefused(t, name, err, action.CodeInvalidArguments)
	}
	_, err := r.Gateway.Revoke(t.Context(), rig.Operator(), action.RevokeAsked{Action: "act_none", Why: "x"})
	wantRefused(t, "no such action", err, action.CodeNoSuchAction)
	_, err = r.Gateway.Revoke(t.Context(), rig.Operator(), action.RevokeAsked{Run: "run_none", Why: "x"})
	wantRefused(t, "no such run", err, action.CodeNoSuchAction)
	_, err = r.Gateway.Revoke(t.Context(), action.Actor{}, action.RevokeAsked{Run: a.Action.Run, Why: "x"})
	wantRefused(t, "by nobody", err, action.CodeUnauthenticated)
}

// runsAsk makes a person authorize each new agent process.
func runsAsk(o *gateway.Options) { o.AuthorizeRuns = true }

// VA-04, VA-05: a person authorizes the run of a new agent process, once. It ends with the process, and a number that another
// process gets later inherits nothing.
func TestAPersonAuthorizesEachNewProcess(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Parts: runsAsk})
	agent := rig.Agent("agent", 4711)
	one := r.From(agent, "get_echo", `{"customer":"a"}`).Go()
	p := r.Asked("")
	two := r.From(agent, "get_echo", `{"customer":"b"}`).Go()
	for len(r.Actions()) < 2 || r.Actions()[0].State != action.AwaitingApproval {
		time.Sleep(5 * time.Millisecond)
	}
	if p.Rule != action.AsksRun || p.Binding == "" || r.BytesToProvider() != 0 {
		t.Fatalf("asked is %+v", p)
	}
	r.Approve(p.Action)
	if a, b := one.Answer(), two.Answer(); a.Action.State != action.Completed || b.Action.State != action.Completed || a.Action.Run != b.Action.Run {
		t.Errorf("the run's actions are %s and %s", a.Action.State, b.Action.State)
	}
	if c := r.From(agent, "get_echo", `{"customer":"c"}`).Do(); c.Action.State != action.Completed || c.Action.Binding.Kind != action.ByPolicy || !c.Action.Binding.Until.Equal(p.Expires) {
		t.Errorf("a later one is %s, bound as %+v", c.Action.State, c.Action.Binding)
	}
	if n := strings.Count(r.Export(), `"event":"approval.requested"`); n != 1 {
		t.Errorf("%d prompts for one run", n)
	}
	// The same number and the same program, started at another time: another process.
	reused := agent
	reused.Evidence.StartTime++
	for name, other := range map[string]action.Actor{"a number used again": reused, "another process": rig.Agent("agent", 4712)} {
		pending := r.From(other, "get_echo", `{"customer":"d"}`).Go()
		q := r.Asked("")
		if q.Rule != action.AsksRun || q.Run == p.Run || q.Binding == p.Binding {
			t.Errorf("%s: asked is %+v", name, q)
		}
		r.Deny(q.Action)
		if a := pending.Answer(); a.Action.State != action.Rejected {
			t.Errorf("%s: %s", name, a.Action.State)
		}
	}
	token := action.Actor{Kind: "token", Identity: "ci", Strength: action.StrengthToken}
	if a := r.From(token, "get_echo", `{"customer":"e"}`).Run("x").Do(); a.Action.State != action.Completed {
		t.Errorf("a token that an operator gave out is asked about again: %s", a.Action.State)
	}
}

// VA-05, AP-12: inside an authorized run each use is asked about all the same.
func TestEachUseIsAskedAboutInsideAnAuthorizedRun(t *testing.T) {
	t.Parallel()
	text := strings.Replace(rig.Usual, "resource: mailbox/${args.to}", "resource: mailbox/${args.to}\neach_use: true", 1)
	r := rig.New(t, rig.Options{Contracts: text, Parts: runsAsk})
	pending := r.Call("send_email", `{"to":"a"}`).Go()
	p := r.Asked("")
	if p.Rule != action.AsksRun {
		t.Fatalf("first asked is %+v", p)
	}
	r.Approve(p.Action)
	q := r.Asked(p.Action)
	if q.Rule != action.AsksEachUse || q.ID == p.ID || r.BytesToProvider() != 0 {
		t.Fatalf("then asked is %+v", q)
	}
	r.Approve(q.Action)
	if a := pending.Answer(); a.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("it is %s", a.Action.State)
	}
	pending = r.Call("send_email", `{"to":"b"}`).Go()
	if s := r.Asked(""); s.Rule != action.AsksEachUse {
		t.Errorf("the second use is asked about as %+v", s)
	} else {
		r.Approve(s.Action)
	}
	pending.Answer()
}

// VA-04, AP-17: a run's authorization ends when it is revoked, and when its time is over.
func TestARunsAuthorizationEnds(t *testing.T) {
	t.Parallel()
	clock := new(rig.Clock)
	r := rig.New(t, rig.Options{Now: clock.Now, Wait: 50 * time.Millisecond, Parts: func(o *gateway.Options) { o.AuthorizeRuns, o.RunLife = true, time.Hour }})
	a := r.Call("get_echo", `{"customer":"a"}`).Do()
	r.Approve(a.Action.ID)
	clock.Move(61 * time.Minute)
	b := r.Call("get_echo", `{"customer":"b"}`).Do()
	if b.Action.State != action.AwaitingApproval {
		t.Errorf("after an hour it is %s", b.Action.State)
	}
	r.Approve(b.Action.ID)
	revoke(t, r, action.RevokeAsked{Run: a.Action.Run})
	if c := r.Call("get_echo", `{"customer":"c"}`).Do(); c.Action.State != action.Rejected || c.Action.RejectReason != action.Revoked {
		t.Errorf("after the revocation it is %s (%s)", c.Action.State, c.Action.RejectReason)
	}
}

// A credential that is marked needs a person for every use, whichever tool sends it.
func TestAMarkedCredentialIsAskedAboutEachTime(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Wait: 50 * time.Millisecond, Parts: func(o *gateway.Options) {
		o.EachUse = func(ref string) bool { return ref == "provider" }
	}})
	for _, to := range []string{"a", "b"} {
		a := r.Call("send_email", `{"to":"`+to+`"}`).Do()
		if p := r.Asked(a.Action.ID); a.Action.State != action.AwaitingApproval || p.Rule != action.AsksEachUse {
			t.Errorf("it is %s", a.Action.State)
		}
		if b := r.Approve(a.Action.ID); b.Action.State != action.Completed {
			t.Errorf("approved it is %s", b.Action.State)
		}
	}
}

// revoking revokes every action that it is to send, and then says that the target promised to have done nothing.
type revoking struct {
	r    *rig.Rig
	sent int
}

func (e *revoking) Perform(ctx context.Context, d action.Dispatch) action.Outcome {
	e.sent++
	done, err := e.r.Gateway.Revoke(ctx, rig.Operator(), action.RevokeAsked{Action: d.Action, Why: "x"})
	if err != nil || len(done.Sent) != 1 {
		e.r.T.Errorf("revoked on its way: %+v, %v", done, err)
	}
	return action.Outcome{State: action.AttemptRefused, Certainty: action.NoEffectProven, Retry: true, Status: 429, BytesSent: 1, Reason: "asked_to_come_later"}
}

// AP-17: what was revoked on its way, and had no effect, is rejected and not tried again, though attempts are left.
func TestWhatWasRevokedOnItsWayIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	executor := &revoking{r: r}
	g := r.Another(func(o *gateway.Options) { o.Executors = map[string]gateway.Executor{"http": executor} })
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").At(g).Do()
	if a.Action.State != action.Rejected || a.Action.RejectReason != action.Revoked || executor.sent != 1 {
		t.Errorf("it is %s (%s) after %d sends", a.Action.State, a.Action.RejectReason, executor.sent)
	}
}
