package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

// approvalTools are the usual tools, each of which needs a person every time. extra stands after each_use.
func approvalTools(extra string) string {
	return strings.ReplaceAll(rig.Usual, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true\n"+extra)
}

const approvalCharge = `{"amount":25000,"customer":"cus_42"}`

func wantRefused(t *testing.T, what string, err error, code action.Code) {
	t.Helper()
	var known *action.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// AP-01, AP-05, AP-07, AP-09, AP-21, VA-05: what a person approved is sent once, and everything that was decided is on record
// with who, when and what exactly.
func TestWhatWasApprovedIsSentOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("")})
	call := r.Call("charge", approvalCharge).Key("task", 1, "toolu_1")
	asking := call.Go()
	p := r.Asked("")
	act := r.Stored(p.Action)
	if act.State != action.AwaitingApproval || act.Approval != p.ID || p.Rule != action.AsksEachUse || p.Needed != 1 || p.Binding == "" ||
		p.Expires.Sub(p.Requested) > 15*time.Minute || p.Expires.Sub(p.Requested) < 15*time.Minute-time.Millisecond {
		t.Fatalf("it is %s, and asked is %+v", act.State, p)
	}
	if r.BytesToProvider() != 0 {
		t.Fatalf("%d bytes were sent before anybody approved", r.BytesToProvider())
	}
	decided := r.Approve(act.ID)
	a := asking.Answer()
	if decided.Action.State != action.Completed || a.Action.State != action.Completed || a.Action.ID != act.ID || a.EffectMode != action.Fresh {
		t.Errorf("the approver is told %s, and the caller %s, %s", decided.Action.State, a.Action.State, a.EffectMode)
	}
	// A second approval, and an equal one of somebody else, lead to nothing more.
	for _, again := range []action.ApprovalAsked{rig.Signed(p, rig.Ada, action.Approve), rig.Signed(p, rig.Bob, action.Approve), rig.Signed(p, rig.Bob, action.Deny)} {
		_, err := r.Gateway.Decide(t.Context(), rig.Operator(), again)
		wantRefused(t, "decided again", err, action.CodeApprovalRefused)
	}
	if b := call.Do(); b.Action.ID != act.ID || b.EffectMode != action.Replay || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("asked again: %s %s; %d effects, %d requests", b.Action.ID, b.EffectMode, r.Effects(), r.Requests())
	}
	now := r.Stored(act.ID)
	if b := now.Binding; b.Kind != action.ByPerson || b.Decision != p.ID || b.Digest != p.Binding || !b.Until.Equal(p.Expires) {
		t.Errorf("it was allowed as %+v", b)
	}
	var kinds []string
	for _, e := range r.EventsOf(act.ID) {
		kinds = append(kinds, e.Kind())
		if strings.HasPrefix(e.Kind(), "approval.") && (e.Text("trace_id") != act.Trace.TraceID || e.Text("action_id") != string(act.ID) ||
			e.Text("action.host") != act.Target.Host || e.Text("action.credential_ref") != "provider") {
			t.Errorf("the event %v does not say what it is about", e)
		}
		if e.Kind() == "approval.decided" && (e.Text("decision.approver") != rig.Ada || e.Text("decision.approval_strength") != "key_file" ||
			e.Text("decision.binding_digest") != p.Binding || e.Text("time") == "" || e.Text("decision.via") != rig.Operator().String()) {
			t.Errorf("the decision is recorded as %v", e)
		}
	}
	want := "action.accepted approval.requested action.awaiting_approval approval.decided action.authorized action.dispatched action.completed"
	if got := strings.Join(kinds, " "); !strings.Contains(got, want) {
		t.Errorf("its events are\n%s, want\n%s", got, want)
	}
}

// AP-03, AP-04: a retry of what a person is asked about raises no second prompt, whether its caller waits or has gone, and shows
// the open request.
func TestARetryRaisesNoSecondPrompt(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	call := func() *rig.Call { return r.Call("charge", approvalCharge).Key("task", 1, "toolu_1") }
	first := call().Do()
	p := r.Asked("")
	must(t, os.WriteFile(r.SecretFile, []byte("canary-rotated-secret"), 0o600)) // the credential is rotated while a person is asked
	for i := range 3 {
		ctx, leave := context.WithCancel(t.Context())
		if i == 1 {
			leave()
		}
		a, err := call().Under(ctx).Try()
		leave()
		if err != nil {
			if i != 1 {
				t.Fatal(err)
			}
			continue
		}
		s := a.Status()
		if a.Action.ID != first.Action.ID || s.Code != action.CodeNeedsApproval || s.Decision != p.ID || s.Approval == nil ||
			s.ErrorType != action.NeedsHumanApproval || !s.Retryable || !strings.Contains(s.Approval.About, "POST http://"+r.Proxy.Addr()+"/v1/charges") {
			t.Errorf("retry %d is told %+v", i, s)
		}
	}
	if open := r.RequestsAbout(first.Action.ID); len(open) != 1 {
		t.Errorf("%d prompts were shown, want 1", len(open))
	}
	if got := strings.Count(r.Export(), `"event":"approval.requested"`); got != 1 {
		t.Errorf("%d requests are on record", got)
	}
	// Approved when every caller has had its answer: it is sent all the same, and the next retry gets what came of it.
	r.Approve(first.Action.ID)
	r.AwaitEffects(1)
	if a := call().Do(); a.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("afterwards it is %s with %d effects", a.Action.State, r.Effects())
	}
}

// AP-23: a person's no is final: no later approval counts, and nothing is sent.
func TestADenialIsFinal(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("")})
	asking := r.Call("send_email", `{"to":"a"}`).Key("task", 1, "toolu_1").Go()
	p := r.Asked("")
	if a := r.Deny(p.Action); a.Action.State != action.Rejected || a.Action.RejectReason != action.Denied {
		t.Errorf("the denier is told %s (%s)", a.Action.State, a.Action.RejectReason)
	}
	a := asking.Answer()
	if a.Code != action.CodeRejected || a.Status().Decision != p.ID || !strings.Contains(a.Sentence(), string(p.ID)) || !strings.Contains(a.Sentence(), "denied") || a.Retryable() {
		t.Errorf("the caller is told %+v", a.Status())
	}
	_, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
	wantRefused(t, "approved after a denial", err, action.CodeApprovalRefused)
	if b := r.Call("send_email", `{"to":"a"}`).Key("task", 1, "toolu_1").Do(); b.Action.ID != a.Action.ID || b.Action.State != action.Rejected || r.BytesToProvider() != 0 {
		t.Errorf("asked again it is %s %s after %d bytes", b.Action.ID, b.Action.State, r.BytesToProvider())
	}
}

// AP-08, AP-11, AP-12: a decision about one request counts for nothing else, whoever brings it. Nothing changes by one that is
// refused.
func TestADecisionCountsForItsRequestAlone(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	one, two := r.Call("charge", approvalCharge).Key("t", 1, "a").Do(), r.Call("send_email", `{"to":"b"}`).Key("t", 2, "b").Do()
	p, q := r.Asked(one.Action.ID), r.Asked(two.Action.ID)
	sign := func(change func(*approval.Statement, *action.ApprovalAsked)) action.ApprovalAsked {
		s := approval.StatementOf(q, action.Approve, rig.Ada)
		asked := action.ApprovalAsked{Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada}
		change(&s, &asked)
		asked.Signed = rig.Sign(rig.Ada, s)
		return asked
	}
	replay := rig.Signed(p, rig.Ada, action.Approve)
	for name, asked := range map[string]action.ApprovalAsked{
		"the decision of another request":   {Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada, Signed: replay.Signed},
		"another request's id":              {Approval: p.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada, Signed: replay.Signed},
		"a denial shown as approval":        {Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada, Signed: rig.Signed(q, rig.Ada, action.Deny).Signed},
		"somebody else's signature":         {Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada, Signed: rig.Signed(q, rig.Bob, action.Approve).Signed},
		"somebody nobody knows":             {Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: "eve", Signed: rig.Signed(q, "eve", action.Approve).Signed},
		"no signature":                      {Approval: q.ID, Action: q.Action, Decision: action.Approve, Approver: rig.Ada},
		"no word":                           {Approval: q.ID, Action: q.Action, Approver: rig.Ada, Signed: rig.Signed(q, rig.Ada, action.Approve).Signed},
		"no such request":                   {Approval: "apr_00000000000000000000000000", Action: q.Action, Decision: action.Approve, Approver: rig.Ada, Signed: replay.Signed},
		"signed for another action":         sign(func(s *approval.Statement, _ *action.ApprovalAsked) { s.Action = p.Action }),
		"signed for another binding":        sign(func(s *approval.Statement, _ *action.ApprovalAsked) { s.Binding = p.Binding }),
		"signed with another nonce":         sign(func(s *approval.Statement, _ *action.ApprovalAsked) { s.Nonce = p.Nonce }),
		"signed for longer":                 sign(func(s *approval.Statement, _ *action.ApprovalAsked) { s.Expires = s.Expires.Add(time.Hour) }),
		"signed by another name of the key": sign(func(s *approval.Statement, a *action.ApprovalAsked) { s.Approver, a.Approver = rig.Bob, rig.Bob }),
	} {
		before := r.Export()
		_, err := r.Gateway.Decide(t.Context(), rig.Operator(), asked)
		wantRefused(t, name, err, action.CodeApprovalRefused)
		if r.Export() != before {
			t.Errorf("%s left something on record", name)
		}
	}
	_, err := r.Gateway.Decide(t.Context(), action.Actor{}, rig.Signed(q, rig.Ada, action.Approve))
	wantRefused(t, "brought by nobody", err, action.CodeUnauthenticated)
	for _, id := range []action.ID{one.Action.ID, two.Action.ID} {
		if a := r.Stored(id); a.State != action.AwaitingApproval {
			t.Errorf("%s is %s", id, a.State)
		}
	}
	r.Approve(one.Action.ID)
	if r.Stored(two.Action.ID).State != action.AwaitingApproval || r.Effects() != 1 {
		t.Errorf("the other is %s after one approval, with %d effects", r.Stored(two.Action.ID).State, r.Effects())
	}
}

// AP-09, AP-13, AP-15, AP-16: when what is on record is not what was asked about, an approval counts for nothing, and a person is
// asked anew about what is there now. Each bound part is changed once.
func TestAChangedOperationVoidsTheRequest(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*action.Operation){
		"target":     func(op *action.Operation) { op.Target.Host = "127.0.0.2" },
		"port":       func(op *action.Operation) { op.Target.Port++ },
		"credential": func(op *action.Operation) { op.Credential = "another" },
		"method":     func(op *action.Operation) { op.Method = "PUT" },
		"path":       func(op *action.Operation) { op.Template = "/v1/refunds" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
			a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
			p := r.Asked(a.Action.ID)
			swapped := r.Another(func(o *gateway.Options) { o.Store = lying{r.Store, alter} })
			_, err := swapped.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
			wantRefused(t, "approved", err, action.CodeApprovalVoid)
			all := r.RequestsAbout(a.Action.ID)
			if len(all) != 2 || all[0].State != action.ApprovalVoid || all[0].Why != "binding_changed" || all[1].State != action.ApprovalOpen || all[1].Binding == p.Binding {
				t.Errorf("the requests are %+v", all)
			}
			if now := r.Stored(a.Action.ID); now.State != action.AwaitingApproval || now.Approval != all[1].ID || r.BytesToProvider() != 0 {
				t.Errorf("it is %s for %s after %d bytes", now.State, now.Approval, r.BytesToProvider())
			}
			_, err = r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
			wantRefused(t, "approved by the void request", err, action.CodeApprovalRefused)
		})
	}
	// The exact arguments are bound by the commitment to the recorded bytes: the store does not give out others.
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	swapped := r.Another(func(o *gateway.Options) { o.Store = unreadable{r.Store} })
	_, err := swapped.Decide(t.Context(), rig.Operator(), rig.Signed(r.Asked(a.Action.ID), rig.Ada, action.Approve))
	wantRefused(t, "approved what cannot be read", err, action.CodeApprovalVoid)
	if r.Stored(a.Action.ID).State != action.AwaitingApproval || r.BytesToProvider() != 0 {
		t.Errorf("it is %s", r.Stored(a.Action.ID).State)
	}
}

// unreadable is a store whose operations do not fit their commitments.
type unreadable struct{ store.Store }

func (u unreadable) Payload(ctx context.Context, kind store.PayloadKind, owner string) ([]byte, error) {
	if kind == store.Operation {
		return nil, errors.New("it was changed")
	}
	return u.Store.Payload(ctx, kind, owner)
}

// AP-10: nobody answered in time: the action ends, it is no decision, and an equal call asks anew.
func TestARequestExpires(t *testing.T) {
	t.Parallel()
	clock := new(rig.Clock)
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond, Now: clock.Now})
	call := func() *rig.Call { return r.Call("charge", approvalCharge).Key("t", 1, "a") }
	a := call().Do()
	p := r.Asked(a.Action.ID)
	clock.Move(15*time.Minute + time.Second)
	_, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
	wantRefused(t, "approved too late", err, action.CodeApprovalRefused)
	if now := r.Stored(a.Action.ID); now.State != action.Rejected || now.RejectReason != action.Expired {
		t.Errorf("it is %s (%s)", now.State, now.RejectReason)
	}
	b := call().Do()
	if b.Action.ID == a.Action.ID || b.Action.State != action.AwaitingApproval {
		t.Errorf("an equal call is %s, %s", b.Action.ID, b.Action.State)
	}
	// Without anybody's decision it is the next call that ends it, or the gateway's own turn.
	clock.Move(16 * time.Minute)
	c := call().Do()
	if r.Stored(b.Action.ID).RejectReason != action.Expired || c.Action.ID == b.Action.ID || c.Action.State != action.AwaitingApproval {
		t.Errorf("after the next %s is %s, and the new one %s", b.Action.ID, r.Stored(b.Action.ID).State, c.Action.State)
	}
	clock.Move(16 * time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go r.Gateway.Run(ctx)
	for deadline := time.Now().Add(10 * time.Second); r.Stored(c.Action.ID).State != action.Rejected; {
		if time.Now().After(deadline) {
			t.Fatal("nobody ends a request that has expired")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r.BytesToProvider() != 0 {
		t.Errorf("%d bytes were sent", r.BytesToProvider())
	}
}

// AP-10, AP-22: what was approved and not sent in time is sent no more: the approval is void and a person is asked anew (T9).
func TestAnApprovalThatWaitsTooLongIsVoid(t *testing.T) {
	t.Parallel()
	clock := new(rig.Clock)
	r := rig.New(t, rig.Options{Contracts: approvalTools("approval: {expires: 5m}"), Now: clock.Now})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 429, RetryAfter: "60", Times: 1})
	call := func() *rig.Call { return r.Call("charge", approvalCharge).Key("t", 1, "a") }
	asking := call().Go()
	first := r.Asked("")
	r.Approve(first.Action)
	if a := asking.Answer(); a.Action.State != action.Authorized || r.Requests() != 1 {
		t.Fatalf("it is %s after %d requests", a.Action.State, r.Requests())
	}
	clock.Move(6 * time.Minute)
	asking = call().Go()
	second := r.Asked(first.Action)
	if second.ID == first.ID || r.Requests() != 1 || r.Stored(first.Action).State != action.AwaitingApproval {
		t.Errorf("asked is %s, sent %d times, it is %s", second.ID, r.Requests(), r.Stored(first.Action).State)
	}
	if all := r.RequestsAbout(first.Action); len(all) != 2 || all[0].State != action.ApprovalVoid || all[0].Why != "approval_expired" {
		t.Errorf("the requests are %+v", all)
	}
	_, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(first, rig.Bob, action.Approve))
	wantRefused(t, "the void one approved", err, action.CodeApprovalRefused)
	r.Approve(first.Action)
	if a := asking.Answer(); a.Action.State != action.Completed || r.Effects() != 1 || r.Requests() != 2 {
		t.Errorf("it is %s with %d effects and %d requests", a.Action.State, r.Effects(), r.Requests())
	}
	if !strings.Contains(r.Export(), `"transition":"T9"`) {
		t.Error("no T9 is on record")
	}
}

// AP-10: an unknown action is not sent again on an approval that is over, where its class would allow it.
func TestAnExpiredApprovalAllowsNoResend(t *testing.T) {
	t.Parallel()
	act := action.Action{State: action.Unknown, Class: action.RepeatableWithKey, Recovery: action.Reconciling, Attempt: 1, MaxAttempts: 5}
	now := time.Now()
	act.ResendBefore, act.AuthorizedAt = now.Add(time.Hour), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		until time.Time
		ask   bool
		want  action.Work
	}{
		"no person was asked":   {time.Time{}, false, action.WorkSend},
		"in time":               {now.Add(time.Second), false, action.WorkSend},
		"over":                  {now, false, action.WorkReview},
		"over, and it can ask":  {now, true, action.WorkAsk},
		"in time and can ask":   {now.Add(time.Second), true, action.WorkSend},
		"long over, but a read": {now.Add(-time.Hour), false, action.WorkReview},
	} {
		a := act
		a.Binding.Until, a.CanAsk = c.until, c.ask
		if strings.Contains(name, "a read") {
			a.Class = action.ReadOnly
		}
		if work, _ := a.Next(now, false); work != c.want {
			t.Errorf("%s: %q, want %q", name, work, c.want)
		}
	}
	back := act
	back.Binding.Until = now.Add(time.Hour)
	if work, _ := back.Next(now, true); work == action.WorkSend {
		t.Error("a clock that was set back gives an approval more time")
	}
	gone := act
	gone.Withdrawn = true
	if work, _ := gone.Next(now, false); work == action.WorkSend {
		t.Error("what was revoked is sent again")
	}
}

// Two have to approve, each with a key of their own; one who denies is enough; nobody approves in their own name.
func TestTwoApproversAndNotTheRequester(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("approval: {approvers: 2, not_requester: true}"), Wait: 30 * time.Millisecond})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	half, err := r.Decide(a.Action.ID, rig.Ada, action.Approve)
	must(t, err)
	if half.Action.State != action.AwaitingApproval || half.Status().Approval.Approved != 1 || half.Status().Approval.Needed != 2 || r.BytesToProvider() != 0 {
		t.Errorf("after one of two: %+v", half.Status())
	}
	_, err = r.Decide(a.Action.ID, rig.Ada, action.Approve)
	wantRefused(t, "the same one twice", err, action.CodeApprovalRefused)
	whole, err := r.Decide(a.Action.ID, rig.Bob, action.Approve)
	must(t, err)
	if whole.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("after both it is %s", whole.Action.State)
	}
	b := r.Call("charge", `{"amount":1,"customer":"cus_1"}`).Key("t", 2, "b").Do()
	_, err = r.Decide(b.Action.ID, rig.Ada, action.Approve)
	must(t, err)
	no, err := r.Decide(b.Action.ID, rig.Bob, action.Deny)
	must(t, err)
	if no.Action.State != action.Rejected || r.Effects() != 1 {
		t.Errorf("one of two denied, and it is %s", no.Action.State)
	}
	bobs := action.Actor{Kind: "token", Identity: "bobs-agent", Strength: action.StrengthToken}
	c := r.From(bobs, "send_email", `{"to":"x"}`).Key("t", 1, "a").Do()
	_, err = r.Decide(c.Action.ID, rig.Bob, action.Approve)
	wantRefused(t, "approved in his own name", err, action.CodeApprovalRefused)
	if own, err := r.Decide(c.Action.ID, rig.Bob, action.Deny); err != nil || own.Action.State != action.Rejected {
		t.Errorf("denied in his own name: %v", err)
	}
}

// Without a policy that can be read nobody decides, and it is said why. A policy counts as it stands in the moment.
func TestWithoutAPolicyNobodyApproves(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	r.Approvers.Set("", errors.New("there is no approvers.yaml"))
	_, err := r.Decide(a.Action.ID, rig.Ada, action.Approve)
	wantRefused(t, "without a policy", err, action.CodeApprovalRefused)
	if err == nil || !strings.Contains(err.Error(), "there is no approvers.yaml") {
		t.Errorf("it is not said why: %v", err)
	}
	r.Approvers.Set("approvers: []\n", nil)
	_, err = r.Decide(a.Action.ID, rig.Ada, action.Approve)
	wantRefused(t, "without approvers", err, action.CodeApprovalRefused)
	r.Approvers.Set(strings.Replace(rig.PolicyText(), "name: ada", "name: eve", 1), nil)
	_, err = r.Decide(a.Action.ID, rig.Ada, action.Approve)
	wantRefused(t, "when she is no approver any more", err, action.CodeApprovalRefused)
	r.Approvers.Set("", nil)
	if b := r.Approve(a.Action.ID); b.Action.State != action.Completed {
		t.Errorf("with the policy again it is %s", b.Action.State)
	}
	nobody := r.Another(func(o *gateway.Options) { o.Approvers = nil })
	c := r.Call("charge", `{"amount":1,"customer":"cus_1"}`).Key("t", 2, "b").Do()
	_, err = nobody.Decide(t.Context(), rig.Operator(), rig.Signed(r.Asked(c.Action.ID), rig.Ada, action.Approve))
	wantRefused(t, "at a gateway without one", err, action.CodeApprovalRefused)
}

// A request stands while deed is restarted or killed: nothing is approved by it, and nobody is asked again.
func TestARequestSurvivesARestart(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	p := r.Asked(a.Action.ID)
	for _, again := range []func(){func() { r.Restart("") }, r.Crash} {
		again()
		if now := r.Stored(a.Action.ID); now.State != action.AwaitingApproval || now.Approval != p.ID || r.BytesToProvider() != 0 {
			t.Fatalf("after a restart it is %s for %s", now.State, now.Approval)
		}
		if b := r.Call("charge", approvalCharge).Key("t", 1, "a").Do(); b.Action.ID != a.Action.ID || b.Status().Decision != p.ID {
			t.Errorf("a retry is %s for %s", b.Action.ID, b.Status().Decision)
		}
	}
	if n := len(r.RequestsAbout(a.Action.ID)); n != 1 {
		t.Errorf("%d requests", n)
	}
	if b, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve)); err != nil || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("approved afterwards: %v, %s, %d effects", err, b.Action.State, r.Effects())
	}
}

// AP-14: people are asked at the boundary alone: a tool that needs nobody asks nobody, however many there are before it.
func TestOnlyWhatLeavesIsAskedAbout(t *testing.T) {
	t.Parallel()
	text := strings.Replace(rig.Usual, "resource: mailbox/${args.to}", "resource: mailbox/${args.to}\neach_use: true", 1)
	r := rig.New(t, rig.Options{Contracts: text, Wait: 2 * time.Second})
	for i := range 10 {
		if a := r.Call("get_echo", fmt.Sprintf(`{"customer":"c%d"}`, i)).Do(); a.Action.State != action.Completed {
			t.Fatalf("a read is %s", a.Action.State)
		}
	}
	asking := r.Call("send_email", `{"to":"a"}`).Go()
	p := r.Asked("")
	if n := strings.Count(r.Export(), `"event":"approval.requested"`); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	r.Approve(p.Action)
	if a := asking.Answer(); a.Action.State != action.Completed {
		t.Errorf("it is %s", a.Action.State)
	}
	for _, e := range r.Events() { // AP-20: what nobody was asked about is bound all the same, in its run
		if e.Kind() == "action.authorized" && (e.Text("binding.binding_digest") == "" || e.Text("binding.decision_id") == "" || e.Text("root_run_id") == "") {
			t.Errorf("an action was allowed as %v", e)
		}
	}
}

// VA-10: what a person approves while the vault is locked is not decided, and not sent.
func TestALockedVaultStopsADecision(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").Do()
	r.Vault.Lock()
	_, err := r.Decide(a.Action.ID, rig.Ada, action.Approve)
	wantRefused(t, "approved with a locked vault", err, action.CodeVaultLocked)
	if p := r.Asked(a.Action.ID); len(p.Decisions) != 0 || r.BytesToProvider() != 0 {
		t.Errorf("it counts as %+v", p)
	}
	r.Vault.Unlock()
	if b := r.Approve(a.Action.ID); b.Action.State != action.Completed {
		t.Errorf("with an open vault it is %s", b.Action.State)
	}
}

// A caller that cancels takes back what it asked for, as long as nobody has decided; one that only leaves does not.
func TestACallerTakesBackWhatAPersonIsAsked(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("")})
	ctx, cancel := context.WithCancelCause(t.Context())
	asking := r.Call("charge", approvalCharge).Key("t", 1, "a").Under(ctx).Go()
	p := r.Asked("")
	cancel(gateway.ErrCancelled)
	if a := asking.Answer(); a.Action.State != action.Rejected || a.Action.RejectReason != action.Cancelled {
		t.Errorf("cancelled it is %s (%s)", a.Action.State, a.Action.RejectReason)
	}
	_, err := r.Gateway.Decide(t.Context(), rig.Operator(), rig.Signed(p, rig.Ada, action.Approve))
	wantRefused(t, "approved after that", err, action.CodeApprovalRefused)
	ctx, leave := context.WithCancel(t.Context())
	asking = r.Call("charge", approvalCharge).Key("t", 2, "b").Under(ctx).Go()
	q := r.Asked("")
	leave()
	if a := asking.Answer(); a.Action.State != action.AwaitingApproval {
		t.Errorf("left it is %s", a.Action.State)
	}
	if b := r.Approve(q.Action); b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("approved it is %s", b.Action.State)
	}
}

// AP-01: of twenty who approve at once one is heard, and one request goes out.
func TestOneOfManyApprovalsCounts(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	a := r.Call("send_email", `{"to":"a"}`).Key("t", 1, "a").Do()
	p := r.Asked(a.Action.ID)
	second := r.Second()
	var mu sync.Mutex
	var wg sync.WaitGroup
	heard := 0
	for i := range 20 {
		g, who := r.Gateway, rig.Ada
		if i%2 == 1 {
			g = second
		}
		if i%4 > 1 {
			who = rig.Bob
		}
		wg.Go(func() {
			_, err := g.Decide(context.Background(), rig.Operator(), rig.Signed(p, who, action.Approve))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				heard++
			} else {
				wantRefused(t, "one of many", err, action.CodeApprovalRefused)
			}
		})
	}
	wg.Wait()
	if heard != 1 || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d were heard, %d effects, %d requests", heard, r.Effects(), r.Requests())
	}
}

// AP-19: a reviewer's redo is a decision of its own, which allows one more send of something that was approved long ago.
func TestARedoIsADecisionOfItsOwn(t *testing.T) {
	t.Parallel()
	clock := new(rig.Clock)
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Now: clock.Now})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	asking := r.Call("send_email", `{"to":"a"}`).Key("t", 1, "a").Go()
	r.Approve(r.Asked("").Action)
	a := asking.Answer()
	if a.Action.State != action.Unknown {
		t.Fatalf("it is %s", a.Action.State)
	}
	clock.Move(time.Hour)
	b, err := r.Gateway.Review(t.Context(), rig.Operator(), action.ReviewAsked{Action: a.Action.ID, Decision: action.Redo, Why: "nothing arrived"})
	must(t, err)
	if b.Action.State != action.Completed || b.Action.Binding.Kind != action.ByReview || b.Action.Binding.Digest != a.Action.Binding.Digest || r.Requests() != 2 {
		t.Errorf("it is %s, bound as %+v, after %d requests", b.Action.State, b.Action.Binding, r.Requests())
	}
}

// AP-24: whatever an agent says, the sentence that names the open request holds nothing of it.
func TestTheOpenRequestHoldsNothingOfTheAgents(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools(""), Wait: 30 * time.Millisecond})
	args, err := json.Marshal(map[string]string{"to": "a", "subject": "\x1b[2J\u202ecanary" + strings.Repeat("x", 1<<19)})
	must(t, err)
	a := r.Call("send_email", string(args)).Do()
	text, err := json.Marshal(a.Status())
	must(t, err)
	if a.Action.State != action.AwaitingApproval || strings.Contains(string(text), "canary") || len(text) > 4096 {
		t.Errorf("it says %.2000s", text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dawdling is a store that takes its time to read the operation of what is planned already.
type dawdling struct {
	store.Store
	d time.Duration
}

func (s dawdling) Payload(ctx context.Context, kind store.PayloadKind, owner string) ([]byte, error) {
	if kind == store.Operation {
		if act, err := s.Action(ctx, action.ID(owner)); err == nil && act.State == action.Dispatched {
			time.Sleep(s.d)
		}
	}
	return s.Store.Payload(ctx, kind, owner)
}

// AP-10, AP-22: the last look is in the moment of sending: an approval that ended between the plan and the send allows nothing.
func TestAnApprovalThatEndsBeforeTheSendReachesNoExecutor(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: approvalTools("approval: {expires: 1s}"), Wait: 30 * time.Millisecond})
	executor := new(counted)
	g := r.Another(func(o *gateway.Options) {
		o.Store, o.Executors = dawdling{r.Store, 1100 * time.Millisecond}, map[string]gateway.Executor{"http": executor}
	})
	a := r.Call("charge", approvalCharge).Key("t", 1, "a").At(g).Do()
	b, err := g.Decide(t.Context(), rig.Operator(), rig.Signed(r.Asked(a.Action.ID), rig.Ada, action.Approve))
	must(t, err)
	if executor.performed != 0 || b.Action.State != action.Failed || b.Action.FailureClass != action.NotSent || b.Action.Reason != "approval_expired" {
		t.Errorf("the executor was asked %d times, and it is %s (%s)", executor.performed, b.Action.State, b.Action.Reason)
	}
	// Asked again it is not sent on the old word: a person is asked anew.
	c := r.Call("charge", approvalCharge).Key("t", 1, "a").At(g).Do()
	if c.Action.ID != a.Action.ID || c.Action.State != action.AwaitingApproval || executor.performed != 0 {
		t.Errorf("asked again it is %s, %s", c.Action.ID, c.Action.State)
	}
}

// AP-02: which action a call belongs to, whether an action may start, and what is on record of it are decided apart. Another
// answer of the ladder changes neither the fingerprint nor the match, and a match asks nobody.
func TestThreeDecisionsAreSeparate(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Wait: 30 * time.Millisecond})
	call := func() *rig.Call { return r.Call("charge", approvalCharge).Run("t") }
	a := call().Do()
	r.Restart(approvalTools(""))
	if b := call().Do(); b.Action.ID != a.Action.ID || b.EffectMode != action.Replay || len(r.RequestsAbout(a.Action.ID)) != 0 {
		t.Errorf("a repeat of what was allowed is %s, and %d were asked", b.Action.ID, len(r.RequestsAbout(a.Action.ID)))
	}
	c := r.Call("charge", `{"amount":1,"customer":"cus_1"}`).Run("t").Do()
	r.Restart(rig.Usual)
	d := r.Call("charge", `{"amount":1,"customer":"cus_1"}`).Run("t").Do()
	if c.Action.State != action.AwaitingApproval || d.Action.ID != c.Action.ID || d.Action.State != action.AwaitingApproval {
		t.Errorf("asked about is %s, and a repeat under another policy %s, %s", c.Action.State, d.Action.ID, d.Action.State)
	}
	fingerprints := map[string]bool{}
	for _, e := range r.Events() {
		switch e.Kind() {
		case "action.accepted":
			fingerprints[e.Text("digests.fingerprint")] = true
		case "approval.requested", "action.authorized", "call.attached":
			if e.Text("digests.fingerprint") != "" {
				t.Errorf("%s carries a fingerprint", e.Kind())
			}
		}
	}
	if len(fingerprints) != 2 {
		t.Errorf("two effects have %d fingerprints", len(fingerprints))
	}
}
