package action_test

import (
	"fmt"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

var agent = action.Actor{Kind: "process", Identity: "uid=1000 exe=/usr/bin/agent", Strength: action.StrengthPeerPIDFD}

func digests(fp, args string) action.Digests {
	return action.Digests{KeyID: "fk_1", Fingerprint: fp, Effect: "effect:" + fp, Args: args, Resource: "r"}
}

func asking(fp, args string) action.Asked {
	return action.Asked{Run: "run_1", Actor: agent, Tool: "charge", Variants: []action.Variant{{Contract: "c1", Digests: digests(fp, args)}}}
}

func prior(state action.State) action.Action {
	return action.Action{
		ID: "act_prior", Actor: agent.String(), Tool: "charge", State: state, Contract: "c1", Digests: digests("f", "a"),
		AttachFor: 15 * time.Minute, FinishedAt: noon.Add(-time.Minute), AcceptedAt: noon.Add(-2 * time.Minute),
	}
}

// RM-07, RM-10, RM-14, RM-20, EX-02, EX-08, UN-16: every prior state, matched by key and by fingerprint alone.
func TestMatchTable(t *testing.T) {
	with := func(a action.Action, change func(*action.Action)) action.Action { change(&a); return a }
	rows := []struct {
		name        string
		prior       action.Action
		fingerprint action.VerdictKind
	}{
		{"accepted", prior(action.Accepted), action.Attach},
		{"awaiting approval", prior(action.AwaitingApproval), action.Attach},
		{"authorized", prior(action.Authorized), action.Attach},
		{"dispatched", prior(action.Dispatched), action.Attach},
		{"unknown", prior(action.Unknown), action.Attach},
		{"completed, not delivered", with(prior(action.Completed), func(a *action.Action) { a.Delivery = action.DeliveryInterrupted }), action.Attach},
		{"completed, unconfirmed", with(prior(action.Completed), func(a *action.Action) { a.Delivery = action.DeliveryUnconfirmed }), action.Attach},
		{"completed, delivered", with(prior(action.Completed), func(a *action.Action) { a.Delivery = action.Delivered }), action.Open},
		{"completed, window over", with(prior(action.Completed), func(a *action.Action) { a.FinishedAt = noon.Add(-time.Hour) }), action.Open},
		{"denied", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.Denied }), action.Attach},
		{"denied, window over", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason, a.FinishedAt = action.Denied, noon.Add(-time.Hour) }), action.Open},
		{"policy", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.Policy }), action.Attach},
		{"revoked", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.Revoked }), action.Attach},
		{"vault locked", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.VaultLocked }), action.Open},
		{"expired", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.Expired }), action.Open},
		{"cancelled", with(prior(action.Rejected), func(a *action.Action) { a.RejectReason = action.Cancelled }), action.Open},
		{"not sent", with(prior(action.Failed), func(a *action.Action) { a.FailureClass = action.NotSent }), action.Attach},
		{"not sent, window over", with(prior(action.Failed), func(a *action.Action) { a.FailureClass, a.FinishedAt = action.NotSent, noon.Add(-time.Hour) }), action.Open},
		{"rejected by target", with(prior(action.Failed), func(a *action.Action) { a.FailureClass = action.RejectedByTarget }), action.Open},
		{"no effect confirmed", with(prior(action.Failed), func(a *action.Action) { a.FailureClass = action.NoEffectConfirmed }), action.Open},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := action.Match(asking("f", "a"), action.Priors{ByFingerprint: []action.Action{row.prior}}, noon)
			if c.Kind != row.fingerprint {
				t.Errorf("by fingerprint: got %q, want %q", c.Kind, row.fingerprint)
			}
			if c.Kind == action.Open && c.Prior.ID != row.prior.ID {
				t.Error("the new action does not name the one that it resembles")
			}
			keyed := asking("f", "a")
			keyed.Keyed = true
			byKey := action.Attach
			if row.prior.RejectReason == action.Expired || row.prior.RejectReason == action.Cancelled {
				byKey = action.Open // nobody decided about it
			}
			if c = action.Match(keyed, action.Priors{ByKey: &row.prior}, noon); c.Kind != byKey || c.Match != action.MatchKey {
				t.Errorf("by key: got %q %q, want %q by key", c.Kind, c.Match, byKey)
			}
			other := asking("g", "b") // FP-17, case 034
			other.Keyed = true
			if c = action.Match(other, action.Priors{ByKey: &row.prior}, noon); c.Refusal == nil || c.Refusal.Code != action.CodeKeyReused {
				t.Errorf("same key, other arguments: got %+v, want %s", c, action.CodeKeyReused)
			}
		})
	}
}

// RM-15: a window of 5 minutes and one of 90, seen 6 minutes after; an action that is not final attaches at any age.
func TestWindowIsTheContracts(t *testing.T) {
	done := prior(action.Completed)
	done.Delivery, done.FinishedAt = action.DeliveryUnconfirmed, noon
	for window, want := range map[time.Duration]action.VerdictKind{5 * time.Minute: action.Open, 90 * time.Minute: action.Attach} {
		done.AttachFor = window
		if c := action.Match(asking("f", "a"), action.Priors{ByFingerprint: []action.Action{done}}, noon.Add(6*time.Minute)); c.Kind != want {
			t.Errorf("window %s after 6 minutes: got %q, want %q", window, c.Kind, want)
		}
	}
	running := prior(action.Unknown)
	if c := action.Match(asking("f", "a"), action.Priors{ByFingerprint: []action.Action{running}}, noon.AddDate(1, 0, 0)); c.Kind != action.Attach {
		t.Errorf("an unknown action after a year: got %q, want attached", c.Kind)
	}
	// An open action counts before a newer one that is over.
	done.FinishedAt = noon.Add(time.Minute)
	c := action.Match(asking("f", "a"), action.Priors{ByFingerprint: []action.Action{done, running}}, noon.Add(2*time.Minute))
	if c.Prior == nil || c.Prior.State != action.Unknown {
		t.Errorf("got %+v, want the open action", c.Prior)
	}
}

// RM-28, case 006, case 008: nothing new is sent beside an action whose outcome is unknown.
func TestUnknownHoldsWhatTouchesTheSame(t *testing.T) {
	open := prior(action.Unknown)
	c := action.Match(asking("f2", "a"), action.Priors{OpenByEffect: []action.Action{open}}, noon)
	if c.Kind != action.Hold || c.Prior.ID != open.ID {
		t.Errorf("an equal effect of another run: got %+v, want held", c)
	}
	c = action.Match(asking("f2", "b"), action.Priors{OpenResource: []action.Action{open}}, noon)
	if c.Kind != action.Hold || c.Why != "resource" {
		t.Errorf("another call on the same resource: got %+v, want held", c)
	}
	newKey := asking("f", "a") // the model made a new key for the same thing
	newKey.Keyed = true
	c = action.Match(newKey, action.Priors{ByFingerprint: []action.Action{open}}, noon)
	if c.Kind != action.Attach || c.Match != action.MatchFingerprint {
		t.Errorf("a new key for an equal open action: got %+v, want attached", c)
	}
	newKey.KeyOnly = true
	if c = action.Match(newKey, action.Priors{ByFingerprint: []action.Action{open}}, noon); c.Kind != action.Open {
		t.Errorf("match: key_only with a new key: got %+v, want a new action", c)
	}
	newKey.Keyed = false
	if c = action.Match(newKey, action.Priors{ByFingerprint: []action.Action{open}}, noon); c.Kind != action.Attach {
		t.Errorf("match: key_only without a key: got %+v, want attached", c)
	}
}

// A token that strangers may share: a keyless repeat is held, and never answered with another call's result.
func TestStrangersAreHeld(t *testing.T) {
	shared := asking("f", "a")
	shared.Actor.Shared = true
	for _, state := range []action.State{action.Dispatched, action.Unknown, action.Completed} {
		p := prior(state)
		if c := action.Match(shared, action.Priors{ByFingerprint: []action.Action{p}}, noon); c.Kind != action.Hold {
			t.Errorf("%s: got %q, want held", state, c.Kind)
		}
	}
	shared.Hinted = true
	p := prior(action.Completed)
	if c := action.Match(shared, action.Priors{ByFingerprint: []action.Action{p}}, noon); c.Kind != action.Attach {
		t.Errorf("with a run of its own: got %q, want attached", c.Kind)
	}
}

// RM-21: a deliberate repeat makes one successor, proves the delivery of what it cites, and is the caller's own.
func TestRepeatOf(t *testing.T) {
	done := prior(action.Completed)
	done.Delivery = action.DeliveryUnconfirmed
	successor := prior(action.Dispatched)
	successor.ID, successor.Repeats = "act_second", done.ID
	repeat := asking("f", "a")
	repeat.Repeat = true
	otherArgs := asking("g", "b")
	otherArgs.Repeat = true
	stranger := repeat
	stranger.Actor.Identity = "uid=1001 exe=/usr/bin/other"
	otherTool := repeat
	otherTool.Tool = "refund"
	for name, c := range map[string]struct {
		asked  action.Asked
		priors action.Priors
		kind   action.VerdictKind
		code   action.Code
		proved bool
	}{
		"first":                   {repeat, action.Priors{Repeated: &done}, action.Open, "", true},
		"retry of the repeat":     {repeat, action.Priors{Repeated: &done, Successor: &successor}, action.Attach, "", true},
		"other arguments":         {otherArgs, action.Priors{Repeated: &done}, action.Refuse, action.CodeRepeatInvalid, true},
		"other arguments, later":  {otherArgs, action.Priors{Repeated: &done, Successor: &successor}, action.Refuse, action.CodeRepeatInvalid, true},
		"unknown token":           {repeat, action.Priors{}, action.Refuse, action.CodeRepeatInvalid, false},
		"somebody else's token":   {stranger, action.Priors{Repeated: &done}, action.Refuse, action.CodeRepeatInvalid, false},
		"a token of another tool": {otherTool, action.Priors{Repeated: &done}, action.Refuse, action.CodeRepeatInvalid, false},
		"a key that is in use":    {repeat, action.Priors{Repeated: &done, ByKey: &done}, action.Refuse, action.CodeKeyReused, true},
		"the successor's own key": {repeat, action.Priors{Repeated: &done, Successor: &successor, ByKey: &successor}, action.Attach, "", true},
	} {
		got := action.Match(c.asked, c.priors, noon)
		if got.Kind != c.kind || (got.Proved != nil) != c.proved {
			t.Errorf("%s: got %q proved %v, want %q proved %v", name, got.Kind, got.Proved != nil, c.kind, c.proved)
		}
		if c.code != "" && (got.Refusal == nil || got.Refusal.Code != c.code) {
			t.Errorf("%s: got %v, want %s", name, got.Refusal, c.code)
		}
		if c.kind == action.Attach && got.Prior.ID != successor.ID {
			t.Errorf("%s: attached to %s, want the successor", name, got.Prior.ID)
		}
	}
}

// FP-14: an equal digest alone is no match: arguments are compared under the contract version and the key that made them.
func TestArgumentsAreComparedUnderTheirOwnContract(t *testing.T) {
	p := prior(action.Completed)
	keyed := asking("f", "a")
	keyed.Keyed = true
	keyed.Variants[0].Contract = "c2"
	if c := action.Match(keyed, action.Priors{ByKey: &p}, noon); c.Refusal == nil {
		t.Error("arguments under another contract version were taken for equal")
	}
	keyed.Variants = append(keyed.Variants, action.Variant{Contract: "c1", Digests: digests("f", "a")})
	if c := action.Match(keyed, action.Priors{ByKey: &p}, noon); c.Kind != action.Attach {
		t.Errorf("under the prior's own version: got %+v, want attached", c)
	}
}

func TestZeroClaimLetsNothingHappen(t *testing.T) {
	var c action.Claim
	if c.Kind != action.Refuse {
		t.Error("the zero claim is not a refusal")
	}
	if got := fmt.Sprint(action.Indeterminate); got != "indeterminate" {
		t.Errorf("the zero certainty reads %q", got)
	}
}

// An equal action that no call can attach to hid an older one that a call could, and the effect was made a second time.
func TestAnOlderActionIsFoundBehindANewerOne(t *testing.T) {
	older := prior(action.Completed)
	older.ID, older.Delivery = "act_older", action.DeliveryInterrupted
	for name, change := range map[string]func(*action.Action){
		"refused by the target": func(a *action.Action) { a.State, a.FailureClass = action.Failed, action.RejectedByTarget },
		"expired":               func(a *action.Action) { a.State, a.RejectReason = action.Rejected, action.Expired },
		"delivered":             func(a *action.Action) { a.Delivery = action.Delivered },
	} {
		newer := prior(action.Completed)
		newer.ID = "act_newer"
		change(&newer)
		c := action.Match(asking("f", "a"), action.Priors{ByFingerprint: []action.Action{newer, older}}, noon)
		if c.Kind != action.Attach || c.Prior.ID != older.ID {
			t.Errorf("%s: got %q with %v, want attached to %s", name, c.Kind, c.Prior, older.ID)
		}
	}
}
