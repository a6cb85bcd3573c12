package gateway_test

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// holdPay is a charge at a target without keys, with a normalizer that knows two ways to write an amount.
const holdPay = `
tool: pay
description: Charge a card at a target that honours no keys.
input:
  type: object
  required: [amount, customer]
  properties:
    amount: {type: string, pattern: "^[0-9]{1,9} (cents|dollars)$"}
    customer: {type: string}
    memo: {type: string}
http:
  method: POST
  url: PROXY/v1/charges
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, customer: "${args.customer}", memo: "${args.?memo}"}
normalize:
  amount: '${int(args.amount.split(" ")[0]) * (args.amount.endsWith("dollars") ? 100 : 1)}'
resource: customer/${args.customer}
on_lost_response:
  class: blocked_after_unknown
  attach_for: 15m
  scope: run
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 404, 422]}
attempts: 5
timeout: TIMEOUT
keep_result: 30d
`

func holdRig(t *testing.T) (*rig.Rig, action.Answer) {
	t.Helper()
	r := rig.New(t, rig.Options{Contracts: holdPay})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("pay", `{"amount":"25000 cents","customer":"cus_42","memo":"inv 7"}`).Key("task", 1, "toolu_1").Do()
	if a.Action.State != action.Unknown {
		t.Fatalf("the first charge is %s", a.Action.State)
	}
	return r, a
}

// RM-28, case 006, case 008: the model says it again in other words and under another id. An equal effect attaches; one that
// differs on the same customer is held and shown the open action. Nothing is sent for either.
func TestTheModelSayingItAgainSendsNothing(t *testing.T) {
	t.Parallel()
	r, a := holdRig(t)
	bytes := r.BytesToProvider()
	for name, c := range map[string]struct {
		call     *rig.Call
		attached bool
	}{
		"other unit, new id":        {r.Call("pay", `{"amount":"250 dollars","customer":"cus_42","memo":"inv 7"}`).Key("task", 2, "toolu_2"), true},
		"other unit, no id":         {r.Call("pay", `{"memo":"inv 7","customer":"cus_42","amount":"250 dollars"}`).Run("task"), true},
		"same words, new id":        {r.Call("pay", `{"amount":"25000 cents","customer":"cus_42","memo":"inv 7"}`).Key("task", 9, "k2"), true},
		"another memo":              {r.Call("pay", `{"amount":"25000 cents","customer":"cus_42","memo":"invoice 7"}`).Key("task", 3, "toolu_3"), false},
		"another amount":            {r.Call("pay", `{"amount":"1 cents","customer":"cus_42"}`).Key("task", 4, "toolu_4"), false},
		"another run":               {r.Call("pay", `{"amount":"25000 cents","customer":"cus_42","memo":"inv 7"}`).Run("task-2"), false},
		"another run, other amount": {r.Call("pay", `{"amount":"2 cents","customer":"cus_42"}`).Run("task-2"), false},
	} {
		b := c.call.Do()
		s := b.Status()
		if c.attached && (s.AttachedTo != a.Action.ID || s.State != action.Unknown) {
			t.Errorf("%s: %+v, want attached to %s", name, s, a.Action.ID)
		}
		if !c.attached && (!b.Held || s.HeldBy != a.Action.ID || s.Code != action.CodeHeld || s.ActionID != "" || s.EffectMode != action.NoEffect) {
			t.Errorf("%s: %+v, want held by %s", name, s, a.Action.ID)
		}
		if !strings.Contains(s.Message, string(a.Action.ID)) {
			t.Errorf("%s: the sentence does not name the open action: %q", name, s.Message)
		}
	}
	r.Only()
	if r.BytesToProvider() != bytes || r.Requests() != 1 || r.Effects() != 1 {
		t.Errorf("%d more bytes, %d requests, %d effects; want 0, 1, 1", r.BytesToProvider()-bytes, r.Requests(), r.Effects())
	}
}

// RM-28: a held call is on record with the action that held it and why, and it makes no action and no intent of its own.
func TestAHeldCallIsOnRecord(t *testing.T) {
	t.Parallel()
	r, a := holdRig(t)
	r.Call("pay", `{"amount":"1 cents","customer":"cus_42"}`).Run("task").ID("77", "s").Do()
	r.Call("pay", `{"amount":"25000 cents","customer":"cus_42","memo":"inv 7"}`).Run("task-2").ID("78", "s").Do()
	held := map[string]string{}
	for _, e := range r.Events() {
		if e.Kind() == "call.held" {
			held[e.Text("call.request_id")] = e.Text("action_id") + " " + e.Text("call.why") + " " + e.Text("call.prior_state")
		}
	}
	want := map[string]string{"77": string(a.Action.ID) + " resource unknown", "78": string(a.Action.ID) + " equal_effect unknown"}
	for id, text := range want {
		if held[id] != text {
			t.Errorf("message %s is on record as %q, want %q", id, held[id], text)
		}
	}
	r.Only()
}

// RM-28: only what touches the same is held. Another customer and another agent go on.
func TestWhatTouchesSomethingElseIsNotHeld(t *testing.T) {
	t.Parallel()
	r, _ := holdRig(t)
	other := r.Call("pay", `{"amount":"1 cents","customer":"cus_7"}`).Run("task").Do()
	agent := r.From(rig.Agent("other", 5), "pay", `{"amount":"1 cents","customer":"cus_42"}`).Do()
	if other.Held || agent.Held || other.Action.State != action.Completed || agent.Action.State != action.Completed || r.Effects() != 3 {
		t.Errorf("another customer is %s, another agent %s, with %d effects; want both completed and 3", other.Action.State, agent.Action.State, r.Effects())
	}
}

// RM-28: a hold shows the open action and nothing of its content.
func TestAHoldGivesNoResultAway(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: holdPay})
	r.Break(provider.Fault{Kind: provider.CommitThenStatus, Status: 500, Body: `{"private":"canary-answer"}`, Times: 1})
	a := r.Call("pay", `{"amount":"25000 cents","customer":"cus_42"}`).Run("task").Do()
	if a.Action.State != action.Unknown || a.Action.Result == "" {
		t.Fatalf("the first charge is %s with result %q", a.Action.State, a.Action.Result)
	}
	b := r.Call("pay", `{"amount":"1 cents","customer":"cus_42"}`).Run("task-2").Do()
	if !b.Held || len(b.Result) != 0 || b.ResultJSON() != nil || b.RepeatOf != "" || b.Status().Result != "" || strings.Contains(b.Sentence(), "canary") {
		t.Errorf("the held call was given %s, %q, %q", b.Result, b.RepeatOf, b.Sentence())
	}
}

// RM-28: one hold after a restart is as good as one before.
func TestAHoldSurvivesARestart(t *testing.T) {
	t.Parallel()
	r, a := holdRig(t)
	r.Crash()
	b := r.Call("pay", `{"amount":"1 cents","customer":"cus_42"}`).Run("task").Do()
	if !b.Held || b.Status().HeldBy != a.Action.ID || r.Requests() != 1 {
		t.Errorf("after a restart the call is held %t by %s, with %d requests", b.Held, b.Status().HeldBy, r.Requests())
	}
}
