package gateway_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

const unknownQueryable = `
tool: pay_invoice
description: A charge at a target that can be asked afterwards.
input:
  type: object
  required: [amount]
  properties:
    amount: {type: integer}
http:
  method: POST
  url: PROXY/v1/charges
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response: {class: status_queryable, attach_for: 15m, evidence: the provider of these tests}
lookup:
  request: {method: GET, url: "PROXY/v1/charges?metadata%5Bidem_key%5D={deed.idem_key}", credential: provider}
  found: ${size(body.data) > 0}
  authoritative: false
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
timeout: TIMEOUT
keep_result: 30d
`

func unknownHeader(r *rig.Rig, name string) (values []string) {
	for _, q := range r.Provider.Requests() {
		values = append(values, q.Values(name)...)
	}
	return values
}

// unknownSend makes a call whose answer hangs after the effect, and does not wait for it.
func unknownSend(r *rig.Rig, tool, args string) {
	r.T.Helper()
	r.Break(unknownTimes(provider.CommitThenHang, 1))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Call(tool, args).Key("run", 1, "toolu_1").Under(ctx).Try()
	}()
	r.AwaitEffects(1)
	cancel()
	<-done
}

// UN-30, IK-11, IK-09: after a crash between the effect and its record, the next start settles the action by itself: it
// sends the same key again and takes the first result. No client calls.
func TestStartSettlesAnOrphanBySameKeyWithoutAnyCall(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	unknownSend(r, "charge", unknownCharge)
	r.CrashWith(func() { r.Break() })
	r.Idle()
	a := r.Only()
	if a.State != action.Completed || r.Effects() != 1 || r.Requests() != 2 {
		t.Fatalf("state %s (%s), effects %d, requests %d; want completed, 1, 2", a.State, a.Reason, r.Effects(), r.Requests())
	}
	if keys := r.Tokens(); len(keys) != 2 || keys[0] != string(a.ID) || keys[1] != string(a.ID) {
		t.Errorf("keys at the target %v, want twice %s", keys, a.ID)
	}
	spans := unknownHeader(r, "Traceparent")
	if len(spans) != 2 || spans[0] == spans[1] {
		t.Errorf("spans of the attempts %v, want two different ones", spans)
	}
	var states []string
	for _, e := range r.EventsOf(a.ID) {
		if e.Text("action.transition") != "" {
			states = append(states, e.Text("action.transition")+" "+e.Text("action.state"))
		}
	}
	want := []string{"T3 authorized", "T11 dispatched", "T16 unknown", "T18 dispatched", "T12 completed"}
	if !slices.Equal(states, want) {
		t.Errorf("the moves on record are %v, want %v", states, want)
	}
	for _, e := range r.EventsOf(a.ID) {
		if e.Kind() == "action.unknown" && (e.Text("action.reason") != "process_lost" || e.Text("outcome.bytes_sent") != "") {
			t.Errorf("the orphan is recorded with reason %q and %q bytes, want process_lost and no count", e.Text("action.reason"), e.Text("outcome.bytes_sent"))
		}
	}
	r.Restart("")
	again := r.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Do()
	if again.Action.ID != a.ID || string(again.Result) != string(r.Provider.Effects()[0].Body) || r.Requests() != 2 {
		t.Errorf("the resumed call is %s with %s after %d requests", again.Action.ID, again.Result, r.Requests())
	}
}

// UN-14, UN-20, UN-30: without key and look-up a person is asked, and nothing is sent again: not at a start, not by any
// number of calls, and not however much time passes.
func TestBlockedOrphanWaitsForAPersonAndIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	var clock rig.Clock
	r := rig.New(t, rig.Options{Now: clock.Now})
	unknownSend(r, "send_email", unknownMail)
	r.CrashWith(func() { r.Switch(provider.Switches{Keys: provider.IgnoreKey, Lookup: provider.LookupOff}) })
	for _, wait := range []time.Duration{0, time.Hour, 40 * 24 * time.Hour} {
		clock.Move(wait)
		r.Restart("")
		for _, call := range []*rig.Call{
			r.Call("send_email", unknownMail).Key("run", 1, "toolu_1"),
			r.Call("send_email", unknownMail).Run("run"),
			r.Call("send_email", unknownMail).Key("run", 2, "toolu_2"),
			r.Call("send_email", unknownMail).Key("another run", 1, "toolu_9"),
		} {
			a := call.Do()
			s := a.Status()
			if s.State != action.Unknown || a.Action.Recovery != action.ReviewRequired || s.Code == "" || s.Result != "" {
				t.Errorf("after %s: state %s, recovery %s, code %q", wait, s.State, a.Action.Recovery, s.Code)
			}
			if s.AttachedTo == "" && s.HeldBy == "" {
				t.Errorf("after %s: the call is neither attached nor held", wait)
			}
			if !slices.Contains(s.Next, action.NextReview) {
				t.Errorf("after %s: next is %v, and asks for no person", wait, s.Next)
			}
		}
	}
	a := r.Only()
	if a.State != action.Unknown || a.Attempt != 1 || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("state %s, attempts %d, effects %d, requests %d; want unknown and one each", a.State, a.Attempt, r.Effects(), r.Requests())
	}
	for _, e := range r.EventsOf(a.ID) {
		if e.Text("action.transition") == "T18" {
			t.Errorf("the journal has a resend without anybody's decision: %v", e)
		}
	}
}

// UN-14: a person is asked, by the name that the error has for it.
func TestBlockedOrphanAnswersThatAPersonIsNeeded(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	unknownSend(r, "send_email", unknownMail)
	r.CrashWith(func() { r.Break() })
	a := r.Call("send_email", unknownMail).Key("run", 1, "toolu_1").Do()
	if s := a.Status(); s.Recovery != action.ReviewRequired || s.Next[0] != action.NextReview || !strings.Contains(s.Message, "person") {
		t.Errorf("recovery %s, next %v, message %q", s.Recovery, s.Next, s.Message)
	}
}

// UN-30, UN-11: an orphan whose target can be asked is settled by its look-up. No client calls, and nothing is sent again.
func TestQueryableOrphanIsFoundWithoutAnyCall(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: unknownQueryable})
	unknownSend(r, "pay_invoice", `{"amount":5}`)
	r.CrashWith(func() { r.Break() })
	r.Idle()
	a := r.Only()
	if a.State != action.Completed || a.Attempt != 1 {
		t.Errorf("state %s (%s), attempts %d; want completed by one", a.State, a.Reason, a.Attempt)
	}
	if r.Effects() != 1 {
		t.Errorf("effects %d, want 1", r.Effects())
	}
}

// UN-28, IK-15: a resend with the same key is allowed until the target may have forgotten the key, and never after.
func TestKeyIsNotSentAgainOnceTheTargetMayHaveForgottenIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		pass     time.Duration
		requests int
		state    action.State
	}{
		{"well inside", time.Hour, 2, action.Completed},
		{"just inside the margin", 24*time.Hour - 2*time.Minute, 2, action.Completed},
		{"inside the margin", 24*time.Hour - 30*time.Second, 1, action.Unknown},
		{"over", 25 * time.Hour, 1, action.Unknown},
		{"long over", 400 * 24 * time.Hour, 1, action.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var clock rig.Clock
			r := rig.New(t, rig.Options{Now: clock.Now})
			unknownSend(r, "charge", unknownCharge)
			r.CrashWith(func() {
				clock.Move(c.pass)
				s := provider.Switches{}
				if c.state == action.Unknown {
					s.KeyRetention = time.Nanosecond // a resend would be a second effect
				}
				r.Switch(s)
			})
			r.Idle()
			r.Restart("")
			again := r.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Do()
			a := r.Only()
			if a.State != c.state || r.Requests() != c.requests || r.Effects() != 1 {
				t.Errorf("state %s (%s), requests %d, effects %d; want %s, %d, 1", a.State, a.Reason, r.Requests(), r.Effects(), c.state, c.requests)
			}
			if c.state == action.Unknown && (a.Recovery != action.ReviewRequired || again.Code != action.CodeOutcomeUnknown) {
				t.Errorf("recovery %s, code %s; want a person to be asked", a.Recovery, again.Code)
			}
		})
	}
}

// UN-28: a wall clock that went back gives no time back: a resend counts as too late.
func TestClockThatWentBackAllowsNoResend(t *testing.T) {
	t.Parallel()
	var clock rig.Clock
	r := rig.New(t, rig.Options{Now: clock.Now})
	unknownSend(r, "charge", unknownCharge)
	r.CrashWith(func() {
		clock.Move(-time.Hour)
		r.Switch(provider.Switches{KeyRetention: time.Nanosecond})
	})
	r.Idle()
	if a := r.Only(); a.State != action.Unknown || r.Requests() != 1 || r.Effects() != 1 {
		t.Errorf("state %s, requests %d, effects %d; want unknown, 1, 1", a.State, r.Requests(), r.Effects())
	}
}

// UN-28: the time for a resend counts from the clock on the wall, also while that is behind the journal: the target's does.
func TestAClockThatWentBackGivesAKeyNoMoreTime(t *testing.T) {
	t.Parallel()
	var clock rig.Clock
	clock.Move(time.Hour)
	r := rig.New(t, rig.Options{Now: clock.Now})
	r.Call("get_echo", `{}`).Do()
	clock.Move(-time.Hour)
	unknownSend(r, "charge", unknownCharge)
	r.CrashWith(func() {
		clock.Move(24*time.Hour + 30*time.Minute) // half an hour after the target has forgotten the key
		r.Switch(provider.Switches{KeyRetention: time.Nanosecond})
	})
	r.Idle()
	if a := r.Actions()[0]; a.Tool != "charge" || a.State != action.Unknown || r.Requests() != 2 || r.Effects() != 1 {
		t.Errorf("state %s, requests %d, effects %d; want unknown, 1, 1", a.State, r.Requests()-1, r.Effects())
	}
}

// UN-17: of any number of callers that resume one unknown action, one sends.
func TestResumersOfOneActionSendOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	unknownSend(r, "charge", unknownCharge)
	r.CrashWith(func() {
		r.Break()
		r.Cut(chaos.Plan{Mode: chaos.Hold}) // keeps the resend on its way until all callers are there
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := r.Proxy.Await(ctx, func(all []chaos.Connection) bool { return all[len(all)-1].FromClient > 0 && len(all) == 2 })
	if err != nil {
		t.Fatalf("no resend came: %v", err)
	}
	answers := make(chan []action.Answer)
	go func() { answers <- r.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Parallel(20) }()
	unknownAttached(t, r, 20)
	r.Cut(chaos.Plan{})
	for _, a := range <-answers {
		if a.Action.State != action.Completed || string(a.Result) != string(r.Provider.Effects()[0].Body) {
			t.Errorf("state %s (%s), result %s", a.Action.State, a.Action.Reason, a.Result)
		}
	}
	if r.Requests() != 2 || r.Effects() != 1 {
		t.Errorf("requests %d, effects %d, want the first one and one resend, and 1", r.Requests(), r.Effects())
	}
	if a := r.Only(); a.Attempt != 2 {
		t.Errorf("%d attempts on record, want 2", a.Attempt)
	}
}

// unknownAttached waits until n calls stand in the journal as attached.
func unknownAttached(t *testing.T, r *rig.Rig, n int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); r.Settled() {
		if strings.Count(r.Export(), `"event":"call.attached"`) == n {
			return
		}
	}
	t.Fatalf("%d calls did not attach in time", n)
}

// UN-17: callers that come while the answer is lost cause one resend together.
func TestCallersAroundALostAnswerCauseOneResend(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	for _, a := range r.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Parallel(20) {
		if a.Action.State != action.Completed {
			t.Errorf("state %s (%s)", a.Action.State, a.Action.Reason)
		}
	}
	if r.Requests() != 2 || r.Effects() != 1 || len(r.Actions()) != 1 {
		t.Errorf("requests %d, effects %d, actions %d; want 2, 1, 1", r.Requests(), r.Effects(), len(r.Actions()))
	}
}

// UN-20: in the one rule that decides to send, no fact about time or attempts lets a blocked or unclassified action, or
// one that waits for a person, leave unknown by itself.
func TestRuleNeverResendsWhatNothingCanProve(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, class := range append(slices.Clone(action.Classes), "") {
		for _, recovery := range []action.Recovery{action.Reconciling, action.ReviewRequired} {
			for _, behind := range []bool{false, true} {
				for _, before := range []time.Time{{}, now.Add(-time.Second), now, now.Add(time.Hour)} {
					a := action.Action{State: action.Unknown, Class: class, Recovery: recovery, MaxAttempts: 5, Attempt: 1, ResendBefore: before}
					_, may := a.MaySend(now, behind)
					keyed := class == action.RepeatableWithKey && !behind && before.After(now)
					allowed := recovery == action.Reconciling && (class == action.ReadOnly || keyed)
					if may != allowed {
						t.Errorf("%q, %s, clock back %v, resend before %s: may send is %v, want %v", class, recovery, behind, before, may, allowed)
					}
				}
			}
		}
	}
}

// UN-24: one place in the whole program calls an executor for an action, and the program imports nothing of the lab. A
// probe, which is no action and which a person starts, has a place of its own.
func TestOnlyPerformSends(t *testing.T) {
	t.Parallel()
	var senders []string
	for _, root := range []string{filepath.Join("..", "..", "internal"), filepath.Join("..", "..", "cmd")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			slash := filepath.ToSlash(path)
			stage := strings.Contains(slash, "/rig/") || strings.Contains(slash, "executortest/") || strings.HasPrefix(slash, "../../cmd/deed/")
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, imported := range file.Imports {
				if strings.Contains(imported.Path.Value, "deed.dev/deed/lab") && !stage {
					t.Errorf("%s imports %s", slash, imported.Path.Value)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Perform" && !strings.Contains(slash, "executortest/") &&
					!strings.HasSuffix(slash, "httpexec/selftest.go") { // sends to a server of its own, to prove that it sends once
					senders = append(senders, slash)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	perform := "../../internal/gateway/perform.go" // it sends, and it asks
	if want := []string{perform, perform, "../../internal/probe/run.go"}; !slices.Equal(senders, want) {
		t.Errorf("executors are called in %v, want %v", senders, want)
	}
}
