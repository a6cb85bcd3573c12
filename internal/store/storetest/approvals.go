package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testApprovals(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"ARequestIsKeptWithItsDecisions", approvalKept},
		{"OnePersonIsAskedOnceAboutOneThing", approvalAskedOnce},
		{"ARequestSaysWhatIsAsked", approvalSaysWhat},
		{"OnlyWhatWasApprovedIsAllowed", approvalAllows},
		{"AVoidRequestAllowsNothing", approvalVoid},
		{"NothingIsSentOnAVoidApproval", approvalDispatches},
		{"WhatWasSentIsNotSentAgain", approvalWithdrawn},
		{"ARunIsAskedAboutOnce", approvalOfRun},
		{"ARunIsRevoked", runRevoked},
	})
}

// Request is an event by which a person is asked about an action, for a quarter of an hour.
func (k *Kit) Request(a action.Action, now time.Time, change func(*action.Approval)) action.Event {
	p := &action.Approval{ID: action.DecisionID(k.ID(action.DecisionPrefix)), Action: a.ID, Run: a.Run, Rule: action.AsksEachUse,
		Binding: k.Digest(), Nonce: k.ID("n_"), Expires: now.Add(15 * time.Minute).Truncate(time.Microsecond), Needed: 1}
	if change != nil {
		change(p)
	}
	return action.Event{ID: k.event(), Kind: action.ApprovalRequested, Action: a.ID, Run: a.Run, ApprovalBody: p}
}

// Decision is an event by which an approver decides.
func (k *Kit) Decision(p action.Approval, approver string, d action.ApprovalDecision) action.Event {
	return action.Event{ID: k.event(), Kind: action.ApprovalDecided, Action: p.Action, DecidedBody: &action.Decided{Approval: p.ID, Action: p.Action,
		Binding: p.Binding, Nonce: p.Nonce, Expires: p.Expires, Decision: d, Approver: approver, Strength: action.ByKeyFile,
		Signed: action.Signed{Key: []byte("key of " + approver), Signature: []byte("signed")}, Via: "process:uid=0 exe=/usr/bin/deed"}}
}

// Voids is the event by which a request ends without a decision, or an approval ends.
func (k *Kit) Voids(p action.Approval, why string) action.Event {
	return action.Event{ID: k.event(), Kind: action.ApprovalVoided, Action: p.Action,
		VoidedBody: &action.Voided{Approval: p.ID, Action: p.Action, Why: why}}
}

// ask brings a new action to where it waits for a person.
func (k *Kit) ask(t testing.TB, s store.Store, change func(*action.Approval)) (action.Action, action.Approval) {
	t.Helper()
	a := k.Make(t, s, nil)
	request := k.Request(a, a.AcceptedAt, change)
	mustCommit(t, s, request, k.waits(a, request.ApprovalBody.ID))
	return Get(t, s, a.ID), Must(s.Approval(context.Background(), request.ApprovalBody.ID))
}

func (k *Kit) waits(a action.Action, id action.DecisionID) action.Event {
	ev := k.Move(a, action.T4)
	ev.MoveBody.Approval = id
	return ev
}

func (k *Kit) allows(a action.Action, p action.Approval) action.Event {
	ev := k.Move(a, action.T6)
	ev.MoveBody.Binding = &action.Binding{Decision: p.ID, Kind: action.ByPerson, Rule: p.Rule, Digest: p.Binding, Until: p.Expires}
	return ev
}

func approvalKept(t *testing.T, s store.Store, k *Kit) {
	a, p := k.ask(t, s, func(p *action.Approval) { p.Needed, p.NotRequester = 2, true })
	if a.State != action.AwaitingApproval || a.Approval != p.ID || p.State != action.ApprovalOpen || p.Needed != 2 || !p.NotRequester {
		t.Fatalf("the action waits as %+v for %+v", a, p)
	}
	mustCommit(t, s, k.Decision(p, "ada", action.Approve))
	for name, ev := range map[string]action.Event{
		"the same approver again":     k.Decision(p, "ada", action.Approve),
		"the same approver otherwise": k.Decision(p, "ada", action.Deny),
	} {
		if err := commit(t, s, ev); !Refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := Must(s.Approval(context.Background(), p.ID)); now.State != action.ApprovalOpen || len(now.Decisions) != 1 {
		t.Errorf("after one of two it is %+v", now)
	}
	mustCommit(t, s, k.Decision(p, "bob", action.Approve))
	now := Must(s.Approval(context.Background(), p.ID))
	if now.State != action.ApprovalApproved || len(now.Decisions) != 2 || now.Decisions[1].Approver != "bob" ||
		string(now.Decisions[0].Signed.Signature) != "signed" || now.Decisions[0].Nonce != p.Nonce {
		t.Errorf("after both it is %+v", now)
	}
	if err := commit(t, s, k.Decision(p, "eve", action.Deny)); !Refused(err) {
		t.Errorf("a decision after the last: %v", err)
	}
	if open := Must(s.Approvals(context.Background(), store.ApprovalQuery{})); len(open) != 0 {
		t.Errorf("open are %+v", open)
	}
	if of := Must(s.Approvals(context.Background(), store.ApprovalQuery{Action: a.ID})); len(of) != 1 || !reflect.DeepEqual(of[0], now) {
		t.Errorf("of the action are %+v", of)
	}
	if _, err := s.Approval(context.Background(), "apr_none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a request that is not there: %v", err)
	}
	Histories(t, s)
}

// approvalAskedOnce: while one request is open there is no second one. (AP-03)
func approvalAskedOnce(t *testing.T, s store.Store, k *Kit) {
	a, p := k.ask(t, s, nil)
	if err := commit(t, s, k.Request(a, a.AcceptedAt, nil)); err == nil {
		t.Error("a second request about the same action was taken")
	}
	mustCommit(t, s, k.Voids(p, "binding_changed"))
	mustCommit(t, s, k.Request(a, a.AcceptedAt, nil))
	late := p.Expires.Add(time.Hour)
	for at, want := range map[time.Time]int{p.Expires.Add(-time.Microsecond): 0, late: 1} {
		if got := Must(s.Approvals(context.Background(), store.ApprovalQuery{Expired: at})); len(got) != want {
			t.Errorf("%d have expired at %s, want %d", len(got), at, want)
		}
	}
	done := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	if err := commit(t, s, k.Request(done, done.AcceptedAt, nil)); err == nil {
		t.Error("somebody is asked about an action that is over")
	}
	Histories(t, s)
}

// approvalSaysWhat: what cannot be decided on is not asked. (AP-06)
func approvalSaysWhat(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil)
	other := k.Make(t, s, nil)
	for name, change := range map[string]func(*action.Approval){
		"no binding":             func(p *action.Approval) { p.Binding = "" },
		"no nonce":               func(p *action.Approval) { p.Nonce = "" },
		"no expiry":              func(p *action.Approval) { p.Expires = time.Time{} },
		"nobody":                 func(p *action.Approval) { p.Needed = 0 },
		"a label":                func(p *action.Approval) { p.Rule = "deploy" },
		"another action":         func(p *action.Approval) { p.Action = other.ID },
		"another action's run":   func(p *action.Approval) { p.Run = other.Run },
		"a decision beside it":   func(p *action.Approval) { p.Decisions = []action.Decided{{Approver: "ada"}} },
		"no request of its name": func(p *action.Approval) { p.ID = "" },
	} {
		if err := commit(t, s, k.Request(a, a.AcceptedAt, change)); err == nil {
			t.Errorf("a request with %s was taken", name)
		}
	}
	if err := commit(t, s, k.waits(a, "apr_none")); err == nil {
		t.Error("an action waits for a request that is not there")
	}
	Histories(t, s)
}

// approvalAllows: a request allows its own action, bound as it was asked, and nothing else. (AP-08, AP-09, AP-11)
func approvalAllows(t *testing.T, s store.Store, k *Kit) {
	a, p := k.ask(t, s, nil)
	if err := commit(t, s, k.allows(a, p)); !Refused(err) {
		t.Errorf("allowed before anybody decided: %v", err)
	}
	mustCommit(t, s, k.Decision(p, "ada", action.Approve))
	other, q := k.ask(t, s, nil)
	for name, change := range map[string]func(*action.Binding){
		"another digest":            func(b *action.Binding) { b.Digest = k.Digest() },
		"another request":           func(b *action.Binding) { b.Decision = q.ID },
		"a longer life":             func(b *action.Binding) { b.Until = b.Until.Add(time.Hour) },
		"no end":                    func(b *action.Binding) { b.Until = time.Time{} },
		"the policy in its place":   func(b *action.Binding) { b.Kind = action.ByPolicy },
		"a reviewer in its place":   func(b *action.Binding) { b.Kind = action.ByReview },
		"a request that is nowhere": func(b *action.Binding) { b.Decision = "apr_none" },
	} {
		ev := k.allows(a, p)
		change(ev.MoveBody.Binding)
		if err := commit(t, s, ev); err == nil {
			t.Errorf("allowed with %s", name)
		}
	}
	replayed := k.allows(other, p)
	if err := commit(t, s, replayed); !Refused(err) {
		t.Errorf("another action was allowed by it: %v", err)
	}
	for name, change := range map[string]func(*action.Decided){
		"nonce":    func(d *action.Decided) { d.Nonce = p.Nonce },
		"binding":  func(d *action.Decided) { d.Binding = p.Binding },
		"expiry":   func(d *action.Decided) { d.Expires = d.Expires.Add(time.Second) },
		"approver": func(d *action.Decided) { d.Approver = "" },
		"word":     func(d *action.Decided) { d.Decision = "yes" },
	} {
		ev := k.Decision(q, "ada", action.Approve)
		change(ev.DecidedBody)
		if err := commit(t, s, ev); err == nil {
			t.Errorf("a decision with another %s was taken", name)
		}
	}
	mustCommit(t, s, k.allows(a, p))
	if now := Get(t, s, a.ID); now.State != action.Authorized || !now.Binding.Until.Equal(p.Expires) || now.Binding.Digest != p.Binding {
		t.Errorf("it is allowed as %+v", now.Binding)
	}
	Histories(t, s)
}

// approvalDispatches: nothing is sent on an approval that is void or over, even where nobody else looks. (AP-10, AP-17, AP-22)
func approvalDispatches(t *testing.T, s store.Store, k *Kit) {
	allowed := func(change func(*action.Approval)) (action.Action, action.Approval) {
		a, p := k.ask(t, s, change)
		mustCommit(t, s, k.Decision(p, "ada", action.Approve), k.allows(a, p))
		return Get(t, s, a.ID), p
	}
	a, _ := allowed(nil)
	mustCommit(t, s, k.Move(a, action.T11))
	a, p := allowed(nil)
	mustCommit(t, s, k.Voids(p, "revoked"))
	if err := commit(t, s, k.Move(a, action.T11)); !Refused(err) {
		t.Errorf("sent on a void approval: %v", err)
	}
	a, p = allowed(nil)
	mustCommit(t, s, k.Move(a, action.T11))
	a = Get(t, s, a.ID)
	mustCommit(t, s, k.Move(a, action.T16), k.Voids(p, "revoked"))
	a = Get(t, s, a.ID)
	if err := commit(t, s, k.Move(a, action.T18)); !Refused(err) {
		t.Errorf("sent again on a void approval: %v", err)
	}
	redo := k.Move(a, action.T18) // another person's decision, about this one send
	redo.MoveBody.Review = &action.Review{ID: "apr_1", Decision: action.Redo, Reviewer: "process:uid=0 exe=/usr/bin/deed", Why: "asked the shop"}
	mustCommit(t, s, redo)
	Histories(t, s)
}

func approvalWithdrawn(t *testing.T, s store.Store, k *Kit) {
	event := func(a action.Action) action.Event {
		return action.Event{ID: k.event(), Kind: action.ActionWithdrawn, Action: a.ID, RevokedBody: &action.Revocation{
			ID: action.DecisionID(k.ID(action.DecisionPrefix)), By: "process:uid=0 exe=/usr/bin/deed", What: string(a.ID), Why: "because"}}
	}
	a := k.Make(t, s, nil, unknown...)
	mustCommit(t, s, event(a))
	if now := Get(t, s, a.ID); !now.Withdrawn || now.State != action.Unknown {
		t.Errorf("after a revocation it is %+v", now)
	}
	for name, a := range map[string]action.Action{"twice": a, "before it was sent": k.Make(t, s, nil, action.T3)} {
		if err := commit(t, s, event(a)); err == nil {
			t.Errorf("it was withdrawn %s", name)
		}
	}
	Histories(t, s)
}

func approvalVoid(t *testing.T, s store.Store, k *Kit) {
	a, p := k.ask(t, s, nil)
	mustCommit(t, s, k.Decision(p, "ada", action.Approve), k.Voids(p, "revoked"))
	if err := commit(t, s, k.allows(a, p)); !Refused(err) {
		t.Errorf("a void request allows: %v", err)
	}
	if err := commit(t, s, k.Voids(p, "revoked")); !Refused(err) {
		t.Errorf("it was voided twice: %v", err)
	}
	_, denied := k.ask(t, s, nil)
	mustCommit(t, s, k.Decision(denied, "ada", action.Deny))
	for name, ev := range map[string]action.Event{"approved": k.Decision(denied, "bob", action.Approve), "voided": k.Voids(denied, "expired")} {
		if err := commit(t, s, ev); !Refused(err) {
			t.Errorf("a denied request was %s: %v", name, err)
		}
	}
	Histories(t, s)
}

func approvalOfRun(t *testing.T, s store.Store, k *Kit) {
	a, p := k.ask(t, s, func(p *action.Approval) { p.Rule = action.AsksRun })
	c := k.Claim(action.Run{ID: a.Run, Actor: Actor})
	mustCommit(t, s, k.Accepted(c)...)
	second := Get(t, s, c.Action.ID)
	if err := commit(t, s, k.Request(second, a.AcceptedAt, func(p *action.Approval) { p.Rule = action.AsksRun })); err == nil {
		t.Error("a second request about the same run was taken")
	}
	mustCommit(t, s, k.waits(second, p.ID))
	other := k.Make(t, s, nil)
	if err := commit(t, s, k.waits(other, p.ID)); !Refused(err) {
		t.Errorf("an action of another run waits for it: %v", err)
	}
	of := func(run action.RunID) (p action.Approval, waiting []action.ID) {
		t.Helper()
		if err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
			if p, err = tx.ApprovalOfRun(run); err != nil {
				return err
			}
			waiting, err = tx.WaitingFor(p.ID)
			return err
		}); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return p, waiting
	}
	if got, waiting := of(a.Run); got.ID != p.ID || !reflect.DeepEqual(waiting, []action.ID{a.ID, second.ID}) {
		t.Errorf("the run's request is %s, and %v wait for it", got.ID, waiting)
	}
	if got, _ := of(other.Run); got.ID != "" {
		t.Errorf("another run has the request %s", got.ID)
	}
	mustCommit(t, s, k.Decision(p, "ada", action.Approve), k.allows(a, p))
	ev := k.allows(Get(t, s, second.ID), p)
	ev.MoveBody.Binding.Digest = k.Digest() // each of the run's actions has a binding of its own
	mustCommit(t, s, ev)
	Histories(t, s)
}

func runRevoked(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil)
	is := func(run action.RunID) (revoked bool) {
		t.Helper()
		if err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
			revoked, err = tx.RunRevoked(run)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return revoked
	}
	if is(a.Run) {
		t.Error("a run is revoked that nobody revoked")
	}
	revoke := func(run action.RunID) action.Event {
		return action.Event{ID: k.event(), Kind: action.RunRevoked, Run: run, RevokedBody: &action.Revocation{
			ID: action.DecisionID(k.ID(action.DecisionPrefix)), By: "process:uid=0 exe=/usr/bin/deed", What: string(run), Why: "because"}}
	}
	mustCommit(t, s, revoke(a.Run))
	if !is(a.Run) || is(k.Make(t, s, nil).Run) {
		t.Error("not exactly that run is revoked")
	}
	if err := commit(t, s, revoke("run_none")); err == nil {
		t.Error("a run was revoked that is not there")
	}
	Histories(t, s)
}
