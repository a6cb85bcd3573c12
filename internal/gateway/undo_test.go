package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// undoTools are charges, with refunds that undo them. The first is the usual one.
var undoTools = strings.Replace(rig.Usual, "attempts: 5", "undo: {tool: refund, arguments: {charge: \"${result.id}\", amount: \"${args.amount}\"}}\nattempts: 5", 1) + `---
tool: refund
description: Give a charge back.
input:
  type: object
  required: [charge, amount]
  properties:
    charge: {type: string}
    amount: {type: integer}
http:
  method: POST
  url: PROXY/v1/refund
  credential: provider
  private: [127.0.0.0/8]
  json: {charge: "${args.charge}", amount: "${args.amount}", metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  evidence: the provider of these tests
undo: {tool: charge, arguments: {amount: "${args.amount}", customer: cus_again}}
done_when: ${status == 201}
no_effect_when: ${status in [400, 404, 422]}
attempts: 3
timeout: TIMEOUT
keep_result: 30d
`

// undoCall is somebody's wish to undo.
func undoCall(who action.Actor) action.Call {
	return action.Call{
		Actor:    who,
		Protocol: action.Correlation{Transport: "mcp-stdio", RequestID: "1", Session: action.NoSession},
		Upstream: action.Upstream{Source: action.UpstreamNone},
	}
}

// undoRig has a charge that is to be undone.
func undoRig(t *testing.T, o rig.Options) (*rig.Rig, action.Action) {
	t.Helper()
	o.Contracts = undoTools
	r := rig.New(t, o)
	a := r.Call("charge", unknownCharge).Do()
	if a.Action.State != action.Completed {
		t.Fatalf("the charge is %s (%s)", a.Action.State, a.Action.Reason)
	}
	return r, a.Action
}

func refunds(r *rig.Rig) (n int) {
	for _, row := range r.Provider.Effects() {
		if row.Op == "refund" {
			n++
		}
	}
	return n
}

// undone checks that there is one refund, and that its action names what it compensates, in the rows and in the journal.
func undone(t *testing.T, r *rig.Rig, charge, refund action.ID) {
	t.Helper()
	row := r.Provider.Effects()
	if refunds(r) != 1 || len(row) != 2 || !strings.Contains(string(row[1].Body), row[0].ID) || row[1].Key != string(refund) {
		t.Errorf("the ledger has %+v, want one charge and its one refund under the key %s", row, refund)
	}
	a := r.Stored(refund)
	if a.Compensates != charge || a.Tool != "refund" || a.State != action.Completed || a.Class != action.RepeatableWithKey {
		t.Errorf("the undo is %s of %s, %s, compensating %s; want it completed and compensating %s", a.Tool, a.ID, a.State, a.Compensates, charge)
	}
	named := false
	for _, e := range r.EventsOf(refund) {
		named = named || e.Kind() == "action.accepted" && e.Text("action.compensates") == string(charge)
	}
	if !named {
		t.Error("the journal does not say what it compensates")
	}
	if before := r.Stored(charge); before.State != action.Completed {
		t.Errorf("the undone charge is %s, want it completed as before", before.State)
	}
	if n := len(r.Actions()); n != 2 {
		t.Errorf("%d actions are on record, want the charge and its undo", n)
	}
}

// UN-29: an undo is an action of its own, once, whoever asks, how often and how many at a time.
func TestAnUndoIsDoneOnce(t *testing.T) {
	t.Parallel()
	r, charge := undoRig(t, rig.Options{})
	var all sync.Map
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			who := rig.Agent("agent", 4711)
			if i%2 == 1 {
				who = reviewer
			}
			a, err := r.Gateway.Undo(context.Background(), undoCall(who), charge.ID, false)
			if err != nil || a.Action.State != action.Completed {
				t.Errorf("an undo is %s (%s), %v", a.Action.State, a.Action.Reason, err)
			}
			all.Store(a.Action.ID, true)
		})
	}
	asking.Wait()
	again, err := r.Gateway.Undo(t.Context(), undoCall(rig.Agent("agent", 4711)), charge.ID, true)
	if err != nil || !again.Attached || again.Match != action.MatchUndo || !again.Status().Replayed {
		t.Errorf("one more is attached %t by %q, %v", again.Attached, again.Match, err)
	}
	all.Range(func(id, _ any) bool {
		if id != again.Action.ID {
			t.Errorf("an undo is %v, want all to be %s", id, again.Action.ID)
		}
		return true
	})
	undone(t, r, charge.ID, again.Action.ID)
}

// UN-29: an undo that is interrupted in any of its windows is still done once.
func TestAnUndoSurvivesACrashInEachWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(r *rig.Rig)
		until  func(r *rig.Rig)
	}{
		"W1, nothing written": {nil, nil},
		"W2, planned": {
			func(r *rig.Rig) { r.Cut(chaos.Plan{Mode: chaos.SwallowRequest}) },
			func(r *rig.Rig) { // nothing arrives, and what is written counts as sent
				for len(r.Actions()) < 2 || r.Actions()[0].State != action.Dispatched {
					r.Settled()
				}
			},
		},
		"W2, read without effect": {
			func(r *rig.Rig) { r.Break(unknownTimes(provider.HangAfterRead, 1)) },
			func(r *rig.Rig) { r.AwaitRequests(2) },
		},
		"W3, done and not written": {
			func(r *rig.Rig) { r.Break(unknownTimes(provider.CommitThenHang, 1)) },
			func(r *rig.Rig) { r.AwaitEffects(2) },
		},
		"W4, written and not told": {
			func(*rig.Rig) {},
			func(r *rig.Rig) {
				r.AwaitEffects(2)
				for len(r.Actions()) < 2 || r.Actions()[0].State != action.Completed {
					r.Settled()
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, charge := undoRig(t, rig.Options{})
			undo := func(who action.Actor) (action.Answer, error) {
				return r.Gateway.Undo(context.Background(), undoCall(who), charge.ID, false)
			}
			if c.before != nil {
				c.before(r)
				g := r.Gateway
				go func() { _, _ = g.Undo(context.Background(), undoCall(rig.Agent("agent", 4711)), charge.ID, false) }()
				c.until(r)
			}
			r.CrashWith(func() { r.Break(); r.Cut(chaos.Plan{}) })
			first, err := undo(rig.Agent("agent", 4711))
			second, err2 := undo(reviewer)
			if err != nil || err2 != nil || first.Action.ID != second.Action.ID || first.Action.State != action.Completed {
				t.Fatalf("after the crash the undos are %s %s and %s (%v, %v)", first.Action.ID, first.Action.State, second.Action.ID, err, err2)
			}
			undone(t, r, charge.ID, first.Action.ID)
		})
	}
}

// refusedUndo checks that nothing was sent and nothing is on record for an undo, and gives the refusal.
func refusedUndo(t *testing.T, r *rig.Rig, who action.Actor, run string, id action.ID, mine bool) *action.Error {
	t.Helper()
	actions, requests := len(r.Actions()), r.Requests()
	call := undoCall(who)
	call.Caller.Run = run
	a, err := r.Gateway.Undo(t.Context(), call, id, mine)
	var known *action.Error
	if !errors.As(err, &known) || known.Code != action.CodeUndoRefused {
		t.Fatalf("the undo is %s %s, %v; want it refused", a.Action.ID, a.Action.State, err)
	}
	if len(r.Actions()) != actions || r.Requests() != requests {
		t.Errorf("a refused undo left %d actions more and sent %d requests", len(r.Actions())-actions, r.Requests()-requests)
	}
	return known
}

// UN-29: only what has certainly happened can be undone, and only where a contract says how. The undo here could be made from
// the arguments alone.
func TestWhatIsNotCompletedIsNotUndone(t *testing.T) {
	t.Parallel()
	text := strings.Replace(rig.Usual, "attempts: 5", "undo: {tool: send_email, arguments: {to: \"${args.customer}\"}}\nattempts: 2", 1)
	r := rig.New(t, rig.Options{Timeout: "500ms", Contracts: text})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 400, Times: 1})
	refused := r.Call("charge", `{"amount":2,"customer":"cus_refused"}`).Do().Action
	r.Break(provider.Fault{Kind: provider.HangAfterRead})
	open := r.Call("charge", `{"amount":3,"customer":"cus_open"}`).Do().Action
	r.Break()
	mail := r.Call("send_email", unknownMail).Do().Action
	for what, c := range map[string]struct {
		id    action.ID
		state action.State
	}{"a failed action": {refused.ID, action.Failed}, "an unknown one": {open.ID, action.Unknown}, "one without an undo": {mail.ID, action.Completed}} {
		if got := r.Stored(c.id).State; got != c.state {
			t.Errorf("%s is %s", what, got)
		}
		refusedUndo(t, r, rig.Agent("agent", 4711), "", c.id, false)
	}
	refusedUndo(t, r, rig.Agent("agent", 4711), "", "act_none", false)
}

// UN-29: an undo is undone by nothing, also where its own tool names one: that would make the effect a second time.
func TestAnUndoIsNotUndone(t *testing.T) {
	t.Parallel()
	r, charge := undoRig(t, rig.Options{})
	undo, err := r.Gateway.Undo(t.Context(), undoCall(reviewer), charge.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	if why := refusedUndo(t, r, reviewer, "", undo.Action.ID, false); !strings.Contains(why.Message, string(charge.ID)) {
		t.Errorf("the undo of an undo is refused with %q, which does not name %s", why.Message, charge.ID)
	}
	undone(t, r, charge.ID, undo.Action.ID)
}

// UN-27, UN-29: a reviewer's finding without a result leaves nothing to make the undo's arguments from: it is refused, and with
// the result it is made.
func TestAnUndoNeedsTheRecordedResult(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{false, true} {
		r := rig.New(t, rig.Options{Timeout: "500ms", Contracts: strings.Replace(undoTools, "attempts: 5", "attempts: 1", 1)})
		r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
		a := r.Call("charge", unknownCharge).Do().Action
		asked := action.ReviewAsked{Action: a.ID, Decision: action.Happened, Evidence: "the provider's console"}
		if given {
			asked.Result = r.Provider.Effects()[0].Body
		}
		if _, err := r.Gateway.Review(t.Context(), reviewer, asked); err != nil {
			t.Fatal(err)
		}
		if !given {
			refusedUndo(t, r, reviewer, "", a.ID, false)
			continue
		}
		undo, err := r.Gateway.Undo(t.Context(), undoCall(reviewer), a.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		undone(t, r, a.ID, undo.Action.ID)
	}
}

// UN-29, case 042: another principal's action is refused in the words for one that does not exist. Strangers who share a
// token are other principals to each other.
func TestAnotherPrincipalsActionIsNotUndone(t *testing.T) {
	t.Parallel()
	shared := action.Actor{Kind: "token", Identity: "several", Strength: action.StrengthToken, Shared: true}
	r, charge := undoRig(t, rig.Options{})
	theirs := r.From(shared, "charge", `{"amount":5,"customer":"cus_theirs"}`).Run("their run").Do().Action
	for name, c := range map[string]struct {
		who action.Actor
		run string
		id  action.ID
	}{
		"another process":                {rig.Agent("other", 99), "", charge.ID},
		"a stranger with the same token": {shared, "my run", theirs.ID},
		"a stranger without a run":       {shared, "", theirs.ID},
	} {
		got := refusedUndo(t, r, c.who, c.run, c.id, true)
		none := refusedUndo(t, r, c.who, c.run, "act_none", true)
		if strings.ReplaceAll(got.Error(), string(c.id), "act_none") != none.Error() {
			t.Errorf("%s: %q for theirs, %q for none", name, got, none)
		}
	}
	own := undoCall(shared)
	own.Caller.Run = "their run"
	if a, err := r.Gateway.Undo(t.Context(), own, theirs.ID, true); err != nil || a.Action.State != action.Completed || refunds(r) != 1 {
		t.Errorf("its own run's undo is %s, %v, with %d refunds", a.Action.State, err, refunds(r))
	}
}
