package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// case 010: two calls of one turn; one is done, the other stops half-way. The framework then issues both again under new
// request ids. What was done is replayed, and the other has its effect once.
func TestCase010AResumeRunsNothingAgain(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	turn := func(request, session string) (mail, charge *rig.Call) {
		return r.Call("send_email", unknownMail).Key("S", 1, "toolu_mail").ID(request, session),
			r.Call("charge", unknownCharge).Key("S", 1, "toolu_charge").ID(request+"0", session)
	}
	mail, charge := turn("1", "one")
	done := mail.Do()
	r.Break(unknownTimes(provider.HangAfterRead, 1))
	charge.Go()
	r.AwaitRequests(2)
	r.CrashWith(func() { r.Break() })
	mail, charge = turn("7", "two")
	b, c := mail.Do(), charge.Do()
	if b.Action.ID != done.Action.ID || !b.Status().Replayed || string(b.Result) != string(done.Result) {
		t.Errorf("the finished sibling is %s, replayed %t, with %s", b.Action.ID, b.Status().Replayed, b.Result)
	}
	if c.Action.State != action.Completed || r.Effects() != 2 || len(r.Actions()) != 2 {
		t.Errorf("the other is %s; %d effects of %d actions, want 2 of 2", c.Action.State, r.Effects(), len(r.Actions()))
	}
}

// case 014: an interrupted create is honestly unknown and listed so. One decision settles it: it exists, under this id; or it
// does not, and only then may a new attempt be made. Nothing clears it without a decision and evidence.
func TestCase014AnInterruptedCreateIsSettledByOneDecision(t *testing.T) {
	t.Parallel()
	for name, exists := range map[string]bool{"it exists": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := provider.HangAfterRead
			if exists {
				kind = provider.CommitThenHang
			}
			r := rig.New(t, rig.Options{})
			r.Break(unknownTimes(kind, 1))
			r.Call("send_email", unknownMail).Key("S", 1, "toolu_1").Go()
			r.AwaitRequests(1)
			if exists {
				r.AwaitEffects(1)
			}
			r.CrashWith(func() { r.Break() })
			a := r.Only()
			backlog, err := r.Store.Backlog(t.Context())
			if err != nil || a.State != action.Unknown || backlog.Review != 1 || backlog.OldestOf != a.ID {
				t.Fatalf("after the start it is %s, and unresolved are %+v (%v)", a.State, backlog, err)
			}
			asked := action.ReviewAsked{Action: a.ID, Decision: action.DidNot, Why: "it looks so"}
			if exists {
				asked.Decision, asked.Result = action.Happened, []byte(`{"id":"up_9"}`)
			}
			var known *action.Error
			if _, err := r.Gateway.Review(t.Context(), reviewer, asked); !errors.As(err, &known) || known.Code != action.CodeReviewRefused {
				t.Errorf("a decision without evidence: %v", err)
			}
			if before := r.Call("send_email", unknownMail).Key("S", 2, "toolu_2").Do(); before.Action.ID != a.ID || r.Requests() != 1 {
				t.Errorf("an equal call before the decision is %s, after %d requests", before.Action.ID, r.Requests())
			}
			asked.Evidence = "the mail server's log"
			settled, err := r.Gateway.Review(t.Context(), reviewer, asked)
			if err != nil {
				t.Fatal(err)
			}
			recorded := false
			for _, e := range r.EventsOf(a.ID) {
				recorded = recorded || e.Text("review.reviewer") == reviewer.String() && e.Text("review.evidence") == asked.Evidence
			}
			if !recorded {
				t.Errorf("the journal has no decision with its evidence and who made it")
			}
			next := r.Call("send_email", unknownMail).Run("S").Do()
			switch {
			case exists:
				if settled.Action.State != action.Completed || string(next.Result) != `{"id":"up_9"}` || next.Action.ID != a.ID || r.Effects() != 1 || r.Requests() != 1 {
					t.Errorf("it is %s; an equal call is %s with %s; %d effects of %d requests", settled.Action.State, next.Action.ID, next.Result, r.Effects(), r.Requests())
				}
			default:
				if settled.Action.FailureClass != action.NoEffectConfirmed || next.Action.ID == a.ID || next.Action.State != action.Completed || r.Effects() != 1 || r.Requests() != 2 {
					t.Errorf("it is %s (%s); an equal call is %s %s; %d effects of %d requests", settled.Action.State, settled.Action.FailureClass, next.Action.ID, next.Action.State, r.Effects(), r.Requests())
				}
			}
		})
	}
}

// case 036: every time that a contract states is over, by far. What is unknown is still there, still its caller's, and is not
// done again.
func TestCase036WhatIsUnknownNeverExpires(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	text := strings.NewReplacer("attach_for: 15m", "attach_for: 1s", "keep_result: 30d", "keep_result: 2s").Replace(rig.Usual)
	r := rig.New(t, rig.Options{Now: clock.Now, Contracts: text})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	a := r.Call("send_email", unknownMail).Key("S", 1, "toolu_1").Do()
	for _, later := range []time.Duration{2 * time.Second, time.Hour, 365 * 24 * time.Hour} {
		clock.Move(later)
		r.Restart("")
		for name, call := range map[string]*rig.Call{
			"the same key": r.Call("send_email", unknownMail).Key("S", 1, "toolu_1"),
			"no key":       r.Call("send_email", unknownMail).Run("S"),
			"another key":  r.Call("send_email", unknownMail).Key("S", 2, "toolu_2"),
		} {
			if b := call.Do(); b.Action.ID != a.Action.ID || b.Action.State != action.Unknown || b.Code != action.CodeOutcomeUnknown {
				t.Errorf("%s later a call with %s is %s, %s, %s", later, name, b.Action.ID, b.Action.State, b.Code)
			}
		}
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
	}
}

// throwing is an executor that breaks after its attempt and reports nothing.
type throwing struct{ gateway.Executor }

func (e throwing) Perform(ctx context.Context, d action.Dispatch) action.Outcome {
	e.Executor.Perform(ctx, d)
	return action.Outcome{}
}

// case 037: killed in the middle of a send, or left without an outcome after the effect: it is unknown at once, neither in
// progress for ever nor free for another try.
func TestCase037ACrashLeavesNoKeyLockedAndNoneFree(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t, rig.Options{})
		unknownSend(r, "send_email", unknownMail)
		r.CrashWith(func() { r.Break() })
		if a := r.Only(); a.State != action.Unknown {
			t.Errorf("after the scan of the start it is %s", a.State)
		}
		if b := r.Call("send_email", unknownMail).Key("run", 1, "toolu_1").Do(); b.Code != action.CodeOutcomeUnknown || r.Effects() != 1 || r.Requests() != 1 {
			t.Errorf("a retry at once is told %s; %d effects of %d requests", b.Code, r.Effects(), r.Requests())
		}
	})
	t.Run("thrown", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t, rig.Options{})
		executor := httpexec.New(httpexec.Options{Vault: r.Vault})
		defer executor.Close()
		g := gateway.New(gateway.Options{Store: r.Store, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
			Executors: map[string]gateway.Executor{"http": throwing{executor}}, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
		defer g.Close(context.Background())
		for n := range 3 {
			a, err := g.Submit(t.Context(), action.Call{Tool: "send_email", Arguments: []byte(unknownMail), Actor: rig.Agent("agent", 1), At: time.Now()})
			if err != nil || a.Code != action.CodeOutcomeUnknown || a.Action.Recovery != action.ReviewRequired {
				t.Errorf("call %d is told %s, %s, %v", n+1, a.Code, a.Action.Recovery, err)
			}
		}
		if r.Effects() != 1 || r.Requests() != 1 {
			t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
		}
	})
}

// case 015: the windows of a crash while deed asks a target. A question has no effect, so it is asked again by the next start,
// and what was learned before is kept.
func TestCase015ACrashWhileTheTargetIsAsked(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: askable("review_after: 1h", askFound+", "+askSure)})
	r.Break(onPost(provider.CommitThenDrop), onGet(provider.Fault{Kind: provider.HangAfterRead, Times: 1}))
	r.Call("pay", askCharge).Key("S", 1, "toolu_1").Go()
	r.AwaitRequests(2)
	r.CrashWith(func() { r.Break() })
	a := eventually(t, r, r.Only().ID, inState(action.Completed))
	all, err := r.Store.Observations(t.Context(), a.ID)
	if err != nil || len(all) != 2 || !all[0].Ended.IsZero() || all[1].Finding != action.Found {
		t.Errorf("observed %+v (%v), want a question without answer and one with", all, err)
	}
	if b := r.Call("pay", askCharge).Key("S", 1, "toolu_1").Do(); b.Action.ID != a.ID || !sameJSON(t, b.Result, r.Provider.Effects()[0].Body) {
		t.Errorf("the same call is %s with %s", b.Action.ID, b.Result)
	}
	if r.Effects() != 1 || sent(r, "POST") != 1 || sent(r, "GET") != 2 {
		t.Errorf("%d effects, %d sends, %d questions; want 1, 1, 2", r.Effects(), sent(r, "POST"), sent(r, "GET"))
	}
}

// case 046: exact duplicates are refused and variants of a name are unknown members: nothing is sent, and nothing is folded.
func TestCase046MemberNamesAreExact(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	for _, args := range []string{
		`{"to":"acct_1","to":"acct_2"}`, `{"to":"acct_1","TO":"acct_2"}`, `{"to":"acct_1","\u0074o":"acct_2"}`,
		"{\"to\":\"a\",\"\u017fubject\":\"b\"}", `{"to":"a","subject":"b","\u017Fubject":"c"}`,
	} {
		_, err := r.Call("send_email", args).Try()
		var known *action.Error
		if !errors.As(err, &known) || known.Code != action.CodeInvalidArguments {
			t.Errorf("%s: %v, want it refused", args, err)
		}
	}
	if r.Requests() != 0 || len(r.Actions()) != 0 {
		t.Errorf("%d requests and %d actions, want none", r.Requests(), len(r.Actions()))
	}
}

// case 043: two numbers beyond 2^53 that are next to each other are two actions, and each keeps its digits on the way; or they
// are refused. Neither is a replay of the other.
func TestCase043NeighboursBeyondDoublesAreTwo(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", `{"amount":9007199254740992,"customer":"c"}`).Run("S").Do()
	b := r.Call("charge", `{"amount":9007199254740993,"customer":"c"}`).Run("S").Do()
	if a.Action.ID == b.Action.ID || b.Attached || a.Action.Digests.Fingerprint == b.Action.Digests.Fingerprint {
		t.Fatalf("they are %s and %s", a.Action.ID, b.Action.ID)
	}
	bodies := []string{r.Provider.Requests()[0].Body, r.Provider.Requests()[1].Body}
	if !strings.Contains(bodies[0], `"amount":9007199254740992,`) || !strings.Contains(bodies[1], `"amount":9007199254740993,`) || r.Effects() != 2 {
		t.Errorf("%d effects of %q", r.Effects(), bodies)
	}
}

// case 008: a key that a model makes up for each call opens nothing beside what is unknown, and each attempt of one action
// carries the one key that deed made.
func TestCase008AKeyPerCallOpensNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 2})
	a := r.Call("charge", unknownCharge).Key("S", 1, "k1").Do()
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	b := r.Call("send_email", unknownMail).Key("S", 2, "k1").Do()
	c := r.Call("send_email", unknownMail).Key("S", 3, "k2").Do()
	if c.Action.ID != b.Action.ID || r.Effects() != 2 || len(r.Actions()) != 2 {
		t.Errorf("with a fresh key it is %s, want %s; %d effects", c.Action.ID, b.Action.ID, r.Effects())
	}
	keys := slices.Compact(r.Tokens())
	if len(r.Tokens()) < 3 || len(keys) != 1 || keys[0] != string(a.Action.ID) {
		t.Errorf("the target saw the keys %v, want %s each time", r.Tokens(), a.Action.ID)
	}
}

// case 047, case 049: what a call leaves out and a default, and what has no meaning for the effect, make one action of two calls;
// null where it means something makes two.
func TestCase047And049WhatMakesTwoCallsOne(t *testing.T) {
	t.Parallel()
	text := strings.Replace(rig.Usual, "subject: {type: string}", `subject: {type: ["string", "null"]}`, 1)
	text = strings.Replace(text, `json: {to: "${args.to}"}`, `json: {to: "${args.to}", subject: "${args.?subject}"}`, 1)
	r := rig.New(t, rig.Options{Contracts: text})
	absent := r.Call("send_email", `{"to":"a"}`).Do()
	null := r.Call("send_email", `{"to":"a","subject":null}`).Do()
	if absent.Action.ID == null.Action.ID || absent.Action.Digests.Fingerprint == null.Action.Digests.Fingerprint {
		t.Errorf("null and absent are both %s", absent.Action.ID)
	}
	one := r.Call("charge", `{"amount":1,"customer":"c","client_ts":"10:00"}`).ID("1", "s").Do()
	two := r.Call("charge", `{"amount":1,"customer":"c","currency":"usd","client_ts":"10:07"}`).ID("2", "t").
		Trace(action.Upstream{Source: action.UpstreamUnverified, Traceparent: "00-" + strings.Repeat("a", 32) + "-" + strings.Repeat("b", 16) + "-01"}).Do()
	if one.Action.ID != two.Action.ID || r.Effects() != 3 {
		t.Errorf("they are %s and %s with %d effects", one.Action.ID, two.Action.ID, r.Effects())
	}
	if text, err := r.Store.ContractText(t.Context(), one.Action.Contract); err != nil || !volatileIn(text) {
		t.Errorf("the version on record does not say what was left out (%v)", err)
	}
}

// volatileIn reports whether a contract's text says that client_ts means nothing.
func volatileIn(text []byte) bool {
	var c struct{ Volatile []string }
	return json.Unmarshal(text, &c) == nil && slices.Contains(c.Volatile, "client_ts")
}
