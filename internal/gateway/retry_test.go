package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

const (
	retryCharge = `{"amount":25000,"customer":"cus_42"}`
	retryMail   = `{"to":"a"}`
)

// RM-01, RM-06: whichever layer repeats an unresolved call, there is one effect.
func TestEveryKindOfRetryOfAnUnresolvedCallHasOneEffect(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	first := r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("1", "s").Do()
	for name, c := range map[string]*rig.Call{
		"client, same message":        r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("1", "s"),
		"middleware, new request id":  r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("2", "s"),
		"new session":                 r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("1", "t"),
		"framework, without the key":  r.Call("send_email", retryMail).Run("task").ID("3", "s"),
		"model, new tool-call id":     r.Call("send_email", retryMail).Key("task", 2, "toolu_2").ID("4", "s"),
		"new process in the same run": r.From(rig.Agent("agent", 99), "send_email", retryMail).Run("task"),
		"new run of the same agent":   r.From(rig.Agent("agent", 98), "send_email", retryMail),
	} {
		a := c.Do()
		s := a.Status()
		if a.Action.ID != first.Action.ID || (s.AttachedTo == "" && s.HeldBy == "") || s.Code == "" {
			t.Errorf("%s: %+v, want the open action %s shown", name, s, first.Action.ID)
		}
	}
	r.Only()
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
	}
}

// RM-04, case 003, case 021: a target that reads a write and closes sees it once, on a fresh and on a warmed connection.
func TestAWriteThatWasReadIsNeverSentAgainBelowTheActionLayer(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.Kind{provider.DropAfterRead, provider.CommitThenDrop, provider.ResetBeforeRead} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			// A header that makes other clients resend must not matter.
			text := strings.Replace(rig.Usual, `json: {to: "${args.to}"}`, "json: {to: \"${args.to}\"}\n  headers: {X-Note: plain}", 1)
			text = strings.Replace(text, "class: blocked_after_unknown", "class: blocked_after_unknown\n  key: {header: Idempotency-Key, repeat: unspecified}", 1)
			r := rig.New(t, rig.Options{Contracts: text})
			r.Call("get_echo", `{}`).Do() // warms a connection
			r.Break(provider.Fault{Kind: kind})
			a := r.Call("send_email", retryMail).Do()
			r.Call("send_email", retryMail).Do()
			posts := 0
			for _, request := range r.Provider.Requests() {
				if request.Method == http.MethodPost {
					posts++
				}
			}
			if s := r.Stored(a.Action.ID); s.State != action.Unknown || s.Attempt != 1 || posts != 1 || r.Effects() > 1 {
				t.Errorf("%s after %d attempts, %d requests, %d effects; want unknown after 1 of each at most", s.State, s.Attempt, posts, r.Effects())
			}
		})
	}
}

// RM-05: a read may be tried again, and every try is on record.
func TestAReadIsTriedAgainAndEachTryIsRecorded(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.DropAfterRead, Times: 1})
	a := r.Call("get_echo", `{}`).Do()
	attempts := r.AttemptsOf(a.Action.ID)
	if a.Action.State != action.Completed || len(attempts) != 2 || r.Requests() != 2 {
		t.Fatalf("%s with %d attempts and %d requests, want completed with 2 and 2", a.Action.State, len(attempts), r.Requests())
	}
	if attempts[0].State != action.AttemptTransportError || attempts[1].State != action.AttemptCompleted {
		t.Errorf("the attempts are %s and %s", attempts[0].State, attempts[1].State)
	}
}

// EX-21: the attempts of an action are bounded across all layers; the next one is refused with the recorded state.
func TestTheAttemptAfterTheLastIsRefusedWhoeverAsks(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.DropAfterRead})
	a := r.Call("charge", retryCharge).Key("task", 1, "toolu_1").Do()
	if a.Action.State != action.Unknown || r.Requests() != 5 {
		t.Fatalf("%s after %d requests, want unknown after 5", a.Action.State, r.Requests())
	}
	r.Restart("")
	for name, c := range map[string]*rig.Call{
		"by key":         r.Call("charge", retryCharge).Key("task", 1, "toolu_1"),
		"by another key": r.Call("charge", retryCharge).Key("task", 2, "toolu_2"),
		"without a key":  r.Call("charge", retryCharge).Run("task"),
	} {
		b := c.Do()
		if b.Action.ID != a.Action.ID || b.Action.State != action.Unknown || b.Action.Recovery != action.ReviewRequired || b.Action.Attempt != 5 {
			t.Errorf("%s: %s is %s (%s) after %d attempts", name, b.Action.ID, b.Action.State, b.Action.Recovery, b.Action.Attempt)
		}
	}
	if r.Requests() != 5 {
		t.Errorf("%d requests, want 5", r.Requests())
	}
}

// EX-21, ST-27: the same bound holds where nothing was ever sent, and then it says so.
func TestUnsentAttemptsCountAgainstTheBound(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	var a action.Answer
	for range 8 {
		a = r.Call("send_email", retryMail).Key("task", 1, "toolu_1").Do()
	}
	r.Cut(chaos.Plan{})
	a = r.Call("send_email", retryMail).Key("task", 1, "toolu_1").Do()
	if a.Action.State != action.Failed || a.Action.FailureClass != action.NotSent || a.Action.Attempt != 5 {
		t.Errorf("%s %q after %d attempts, want failed not_sent after 5", a.Action.State, a.Action.FailureClass, a.Action.Attempt)
	}
	if s := a.Status(); s.Code != action.CodeAttemptsExhausted || s.Retryable {
		t.Errorf("the caller is told %s, retryable %t", s.Code, s.Retryable)
	}
	if r.Effects() != 0 || r.BytesToProvider() != 0 {
		t.Errorf("%d effects, %d bytes, want none", r.Effects(), r.BytesToProvider())
	}
}

// EX-19, EX-20: wherever the retry is made, the same token reaches the target.
func TestTheSameTokenReachesTheTargetFromEveryLayer(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*rig.Rig) *rig.Call{
		"gateway restarts": nil,
		"wrapper":          func(r *rig.Rig) *rig.Call { return r.Call("charge", retryCharge).Key("task", 1, "toolu_1") },
		"step":             func(r *rig.Rig) *rig.Call { return r.Call("charge", retryCharge).Run("task") },
		"model":            func(r *rig.Rig) *rig.Call { return r.Call("charge", retryCharge).Key("task", 2, "toolu_2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
			r.Call("charge", retryCharge).Key("task", 1, "toolu_1").Go()
			r.AwaitEffects(1)
			r.Abandon()
			r.Break()
			r.Start()
			if again != nil {
				if b := again(r).Do(); b.Action.State != action.Completed || !b.Attached {
					t.Errorf("the retry is %s, attached %t", b.Action.State, b.Attached)
				}
			}
			r.AwaitRequests(2)
			r.Stop()
			r.Start()
			a := r.Only()
			if want := []string{string(a.ID), string(a.ID)}; !slices.Equal(r.Tokens(), want) || a.State != action.Completed || r.Effects() != 1 {
				t.Errorf("%s with keys %q and %d effects, want completed with %q and 1", a.State, r.Tokens(), r.Effects(), want)
			}
		})
	}
}

// RM-12, EX-11: a repeat that finds its action dispatched by a dead process asks the target under the same key, once.
func TestARepeatAfterACrashFindsTheEffectByTheKey(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	r.Call("charge", retryCharge).Go()
	r.AwaitEffects(1)
	id := r.Only().ID
	r.Crash()
	a := r.Call("charge", retryCharge).ID("2", "another").Do()
	if a.Action.ID != id || a.Action.State != action.Completed || !a.Attached || string(a.Result) != string(r.Provider.Effects()[0].Body) {
		t.Errorf("%s is %s (attached %t) with %s", a.Action.ID, a.Action.State, a.Attached, a.Result)
	}
	if r.Effects() != 1 || r.Requests() != 2 {
		t.Errorf("%d effects of %d requests, want 1 of 2", r.Effects(), r.Requests())
	}
	var moves []string
	for _, e := range r.EventsOf(id) {
		if m := e.Text("action.transition"); m != "" {
			moves = append(moves, m)
		}
	}
	if want := []string{"T3", "T11", "T16", "T18", "T12"}; !slices.Equal(moves, want) {
		t.Errorf("the moves are %q, want %q", moves, want)
	}
}

// RM-18, case 039: equal calls at the same moment, without a key, are one action; nobody is told of an error.
func TestFiftyEqualCallsAtOnceAreOneAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.Delay, Delay: 300 * time.Millisecond})
	retryOneWinner(t, r, r.Call("charge", retryCharge).Parallel(50), action.MatchFingerprint)
}

// RM-19, case 039: fifty claims of one key have one winner.
func TestFiftyClaimsOfOneKeyHaveOneWinner(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.Delay, Delay: 300 * time.Millisecond})
	retryOneWinner(t, r, r.Call("charge", retryCharge).Key("task", 1, "toolu_1").Parallel(50), action.MatchKey)
}

func retryOneWinner(t *testing.T, r *rig.Rig, answers []action.Answer, match action.MatchKind) {
	t.Helper()
	act, attached := r.Only(), 0
	for i, a := range answers {
		if a.Action.ID != act.ID || a.Code != "" || string(a.Result) != string(answers[0].Result) {
			t.Errorf("answer %d is %s, %q, %s", i, a.Action.ID, a.Code, a.Result)
		}
		if a.Attached {
			attached++
			if a.Match != match {
				t.Errorf("answer %d attached by %q, want %q", i, a.Match, match)
			}
		}
	}
	if attached != len(answers)-1 || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d of %d attached, %d effects of %d requests; want all but one, 1 of 1", attached, len(answers), r.Effects(), r.Requests())
	}
}

// RM-22: each attach is an event of its own, with the message's number, the kind of match and the state that it met.
func TestEachAttachIsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	a := r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("41", "s").Do()
	r.Call("send_email", retryMail).Key("task", 1, "toolu_1").ID("42", "t").Do()
	r.Call("send_email", retryMail).Run("task").ID("43", "u").Do()
	var seen []string
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "call.attached" {
			seen = append(seen, fmt.Sprint(e.Text("call.request_id"), " ", e.Text("call.session"), " ", e.Text("call.match"), " ", e.Text("call.prior_state")))
		}
	}
	if want := []string{"42 t key unknown", "43 u fingerprint unknown"}; !slices.Equal(seen, want) {
		t.Errorf("attach events are %q, want %q", seen, want)
	}
	r.Only()
}

// RM-25: three tries on each of four layers are 81 calls and one effect. Without the stable token they are 81 effects.
func TestRetriesOnFourLayersCollapse(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	calls := 0
	retryLayers(4, func() {
		calls++
		if a := r.Call("send_email", retryMail).Key("task", 1, "toolu_1").Do(); a.Action.State != action.Unknown {
			t.Errorf("call %d is %s", calls, a.Action.State)
		}
	})
	if calls != 81 || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d calls had %d effects in %d requests, want 81, 1, 1", calls, r.Effects(), r.Requests())
	}
	r.Only()

	bare := 0
	retryLayers(4, func() {
		bare++
		request, err := http.NewRequest(http.MethodPost, r.URL+"/v1/objects/a", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", fmt.Sprint("made here ", bare))
		request.Close = true
		if resp, err := http.DefaultTransport.RoundTrip(request); err == nil {
			resp.Body.Close()
		}
	})
	if without := r.Effects() - 1; without < 81 {
		t.Errorf("with a key made in the wrapper 81 calls had %d effects, want at least 81", without)
	}
}

// retryLayers calls three times on each layer.
func retryLayers(layers int, call func()) {
	if layers == 0 {
		call()
		return
	}
	for range 3 {
		retryLayers(layers-1, call)
	}
}

// RM-29: a repeat that cannot read the record sends nothing.
func TestWithoutTheRecordNothingIsSent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	r.Call("send_email", retryMail).Key("task", 1, "toolu_1").Do()
	before, requests := r.BytesToProvider(), r.Requests()
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*rig.Call{
		"by key": r.Call("send_email", retryMail).Key("task", 1, "toolu_1"),
		"equal":  r.Call("send_email", retryMail).Run("task"),
		"new":    r.Call("charge", retryCharge).Run("task"),
		"read":   r.Call("get_echo", `{}`).Run("task"),
	} {
		_, err := c.Try()
		var known *action.Error
		if !errors.As(err, &known) || known.Code != action.CodeJournalUnavailable {
			t.Errorf("%s: %v, want %s", name, err, action.CodeJournalUnavailable)
		}
	}
	if r.BytesToProvider() != before || r.Requests() != requests {
		t.Errorf("%d bytes were sent without a record", r.BytesToProvider()-before)
	}
}

// case 003, case 012, RM-10: an attempt that never left is shown with its reason, the next one too, and there is one effect.
func TestAnAttemptThatNeverLeftAndTheNextAreBothVisible(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	a := r.Call("send_email", retryMail).Do()
	r.Cut(chaos.Plan{})
	b := r.Call("send_email", retryMail).Do()
	if b.Action.ID != a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Fatalf("%s is %s with %d effects, want %s completed with 1", b.Action.ID, b.Action.State, r.Effects(), a.Action.ID)
	}
	shown := b.Status().Attempts
	first, last := shown[0], shown[len(shown)-1]
	if len(shown) < 2 || first.State != action.AttemptNotSent || first.Reason == "" || first.BytesSent == nil || *first.BytesSent != 0 {
		t.Errorf("the reply shows %+v, want the first attempt not sent, with 0 bytes and why", shown)
	}
	if last.State != action.AttemptCompleted || last.Status != 201 {
		t.Errorf("the reply shows %+v, want the last attempt completed with 201", shown)
	}
	var outcomes []string
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Text("outcome.attempt_id") != "" {
			outcomes = append(outcomes, e.Text("outcome.state"))
		}
	}
	if len(outcomes) != len(shown) || outcomes[0] != "not_sent" {
		t.Errorf("the journal has the outcomes %q", outcomes)
	}
}

// EX-02, RM-20: an answer that this call's own send produced is fresh, also when the action existed before, unsent.
func TestTheSendOfAnActionThatNeverLeftIsNoReplay(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	r.Call("send_email", retryMail).Do()
	r.Cut(chaos.Plan{})
	b := r.Call("send_email", retryMail).Do()
	if s := b.Status(); s.State != action.Completed || s.EffectMode != action.Fresh || s.Replayed {
		t.Errorf("the call whose send had the effect says %s, %s, replayed %t; want completed, fresh, not replayed", s.State, s.EffectMode, s.Replayed)
	}
	if r.Effects() != 1 {
		t.Errorf("%d effects, want 1", r.Effects())
	}
}

// API-06: a call that attached to an unknown action and sent nothing does not say that its effect is fresh.
func TestACallThatSentNothingIsNotFresh(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	r.Call("send_email", retryMail).Do()
	b := r.Call("send_email", retryMail).Do()
	if s := b.Status(); s.AttachedTo == "" || s.EffectMode == action.Fresh {
		t.Errorf("a call that sent nothing says attached to %q, effect mode %s", s.AttachedTo, s.EffectMode)
	}
}

// retryStub is an executor that gives the outcomes of a list, the last one for ever.
type retryStub struct {
	mu       sync.Mutex
	outcomes []action.Outcome
	seen     []action.Dispatch
}

func (s *retryStub) Perform(_ context.Context, d action.Dispatch) action.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, d)
	return s.outcomes[min(len(s.seen), len(s.outcomes))-1]
}

// EX-20, EX-26, ST-18: the decision to send again is made above the transport, from what an attempt proved. A transport that
// only reports gets the same decisions, and the same token for each attempt.
func TestTheDecisionToSendAgainIsNotTheTransports(t *testing.T) {
	t.Parallel()
	lost := action.Outcome{State: action.AttemptTransportError, BytesSent: 9, Reason: "response_lost"}
	done := action.Outcome{State: action.AttemptCompleted, Certainty: action.EffectProven, BytesSent: 9, Status: 201}
	no := action.Outcome{State: action.AttemptRefused, Certainty: action.NoEffectProven, BytesSent: 9, Status: 422}
	later := action.Outcome{State: action.AttemptRefused, Certainty: action.NoEffectProven, Retry: true, BytesSent: 9, Status: 503}
	for name, c := range map[string]struct {
		tool, args string
		outcomes   []action.Outcome
		sends      int
		state      action.State
	}{
		"answer":                    {"charge", retryCharge, []action.Outcome{done}, 1, action.Completed},
		"refusal":                   {"charge", retryCharge, []action.Outcome{no, done}, 1, action.Failed},
		"lost, key honoured":        {"charge", retryCharge, []action.Outcome{lost, done}, 2, action.Completed},
		"lost, no way to ask":       {"send_email", retryMail, []action.Outcome{lost, done}, 1, action.Unknown},
		"lost, read":                {"get_echo", `{}`, []action.Outcome{lost, done}, 2, action.Completed},
		"nothing known at all":      {"send_email", retryMail, []action.Outcome{{}, done}, 1, action.Unknown},
		"come later":                {"charge", retryCharge, []action.Outcome{later, done}, 2, action.Completed},
		"always lost, key honoured": {"charge", retryCharge, []action.Outcome{lost}, 5, action.Unknown},
		"claims unsent, yet bytes":  {"send_email", retryMail, []action.Outcome{{State: action.AttemptNotSent, Certainty: action.NoEffectProven, BytesSent: 1}, done}, 1, action.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			stub := &retryStub{outcomes: c.outcomes}
			g := gateway.New(gateway.Options{Store: r.Store, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
				Executors: map[string]gateway.Executor{"http": stub}, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
			defer g.Close(context.Background())
			a, err := g.Submit(context.Background(), action.Call{Tool: c.tool, Arguments: []byte(c.args), Actor: rig.Agent("agent", 1)})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Stored(a.Action.ID); got.State != c.state || len(stub.seen) != c.sends || got.Attempt != c.sends {
				t.Errorf("%s after %d sends and %d recorded attempts, want %s after %d", got.State, len(stub.seen), got.Attempt, c.state, c.sends)
			}
			for i, d := range stub.seen {
				if d.Token != string(a.Action.ID) || d.Number != i+1 || !bytes.Equal(d.Operation.Body, stub.seen[0].Operation.Body) {
					t.Errorf("send %d has number %d and token %s", i+1, d.Number, d.Token)
				}
			}
		})
	}
}

// RM-17, EX-12: there is no time for all; a tool with effects that does not state its own is refused.
func TestAToolWithoutItsOwnWindowsIsRefused(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("PROXY", "http://127.0.0.1:1", "TIMEOUT", "1s").Replace(rig.Usual)
	if _, err := contract.Parse("test.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	for what, line := range map[string]string{"attach_for": "  attach_for: 15m\n", "keep_result": "keep_result: 30d\n"} {
		without := strings.Replace(text, line, "", 1)
		if _, err := contract.Parse("test.yaml", []byte(without)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("without %s: %v, want a refusal that names it", what, err)
		}
	}
}

// RM-01, RM-20, EX-13: a key that attached to an action stays with it. Two ids of one decision run side by side, the answer of
// one arrives and that of the other is lost: its retry is no new decision.
func TestAKeyThatAttachedStaysWithItsAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	first := r.Call("charge", retryCharge).Key("task", 1, "toolu_1").Go()
	r.AwaitEffects(1)
	second := r.Call("charge", retryCharge).Key("task", 1, "toolu_2").Go()
	deliveryAwaitAttached(r)
	r.Break()
	a, b := first.Answer(), second.Answer()
	if a.Action.ID != b.Action.ID {
		t.Fatalf("equal calls side by side are %s and %s", a.Action.ID, b.Action.ID)
	}
	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	r.Settled()
	again := r.Call("charge", retryCharge).Key("task", 1, "toolu_2").Do()
	if again.Action.ID != a.Action.ID || !again.Attached || r.Effects() != 1 {
		t.Errorf("the retry of the second call is %s (attached %t) with %d effects, want %s with 1", again.Action.ID, again.Attached, r.Effects(), a.Action.ID)
	}
}
