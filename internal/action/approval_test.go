package action_test

import (
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

func openRequest(needed int) action.Approval {
	return action.Approval{
		ID: "apr_1", Action: "act_1", Run: "run_1", Rule: action.AsksEachUse, Binding: "sha256:b", Nonce: "n", Needed: needed,
		Expires: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), State: action.ApprovalOpen,
	}
}

func decidedBy(p action.Approval, who string, d action.ApprovalDecision) action.Decided {
	return action.Decided{
		Approval: p.ID, Action: p.Action, Binding: p.Binding, Nonce: p.Nonce, Expires: p.Expires, Decision: d, Approver: who,
		Signed: action.Signed{Key: []byte(who), Signature: []byte("s")}, At: p.Expires.Add(-time.Minute),
	}
}

// AP-09, AP-10, AP-23: how many have to approve, that one denial ends it, that each counts once, and that nothing counts that is
// about something else or comes too late. All orders of up to three decisions are tried.
func TestARequestCountsDecisions(t *testing.T) {
	for needed := 1; needed <= 3; needed++ {
		for code := range 4 * 4 * 4 { // three decisions, of: ada yes, bob yes, cid yes, dan no
			p, yes, over := openRequest(needed), map[int]bool{}, false
			for i, c := 0, code; i < 3; i, c = i+1, c/4 {
				who, d := c%4, action.Approve
				if who == 3 {
					d = action.Deny
				}
				next, err := p.Decide(decidedBy(p, []string{"ada", "bob", "cid", "dan"}[who], d))
				refused := over || yes[who]
				if (err != nil) != refused {
					t.Fatalf("needed %d, order %d, decision %d: %v, want refused %t", needed, code, i, err, refused)
				}
				if refused {
					continue
				}
				p, yes[who] = next, true
				want := action.ApprovalOpen
				switch {
				case d == action.Deny:
					want, over = action.ApprovalDenied, true
				case len(yes) >= needed:
					want, over = action.ApprovalApproved, true
				}
				if p.State != want {
					t.Fatalf("needed %d, order %d, decision %d: it is %s, want %s", needed, code, i, p.State, want)
				}
			}
		}
	}
	p := openRequest(2)
	one, err := p.Decide(decidedBy(p, "ada", action.Approve))
	if err != nil || len(p.Decisions) != 0 {
		t.Fatalf("a decision changed the request that it was made from (%v)", err)
	}
	for name, change := range map[string]func(*action.Decided){
		"another request": func(d *action.Decided) { d.Approval = "apr_2" }, "another action": func(d *action.Decided) { d.Action = "act_2" },
		"another binding": func(d *action.Decided) { d.Binding = "sha256:c" }, "another nonce": func(d *action.Decided) { d.Nonce = "m" },
		"another expiry": func(d *action.Decided) { d.Expires = d.Expires.Add(time.Hour) }, "too late": func(d *action.Decided) { d.At = p.Expires },
		"no word": func(d *action.Decided) { d.Decision = "" }, "no signature": func(d *action.Decided) { d.Signed.Signature = nil },
		"no name": func(d *action.Decided) { d.Approver = "" }, "the key of the first": func(d *action.Decided) { d.Signed.Key = []byte("ada") },
	} {
		d := decidedBy(p, "bob", action.Approve)
		change(&d)
		if next, err := one.Decide(d); err == nil || next.State != action.ApprovalOpen || len(next.Decisions) != 1 {
			t.Errorf("%s was counted", name)
		}
	}
}

// AP-08, AP-11, AP-12: an approved request covers its own action with its own binding, and one about a run that run's actions.
func TestWhatARequestCovers(t *testing.T) {
	p := openRequest(1)
	b := action.Binding{Decision: p.ID, Kind: action.ByPerson, Digest: p.Binding, Until: p.Expires}
	a := action.Action{ID: p.Action, Run: p.Run}
	if p.Covers(a, b) {
		t.Error("an open request covers something")
	}
	p.State = action.ApprovalApproved
	if !p.Covers(a, b) {
		t.Error("it does not cover its own action")
	}
	for name, change := range map[string]func(*action.Approval, *action.Action, *action.Binding){
		"another action":  func(_ *action.Approval, a *action.Action, _ *action.Binding) { a.ID = "act_2" },
		"another binding": func(_ *action.Approval, _ *action.Action, b *action.Binding) { b.Digest = "sha256:c" },
		"no binding":      func(p *action.Approval, _ *action.Action, b *action.Binding) { p.Binding, b.Digest = "", "" },
		"a longer life":   func(_ *action.Approval, _ *action.Action, b *action.Binding) { b.Until = b.Until.Add(time.Hour) },
		"another request": func(_ *action.Approval, _ *action.Action, b *action.Binding) { b.Decision = "apr_2" },
		"a void request":  func(p *action.Approval, _ *action.Action, _ *action.Binding) { p.State = action.ApprovalVoid },
		"a denied one":    func(p *action.Approval, _ *action.Action, _ *action.Binding) { p.State = action.ApprovalDenied },
	} {
		q, x, y := p, a, b
		change(&q, &x, &y)
		if q.Covers(x, y) {
			t.Errorf("it covers %s", name)
		}
	}
	p.Rule = action.AsksRun
	a.ID, b.Digest = "act_2", "sha256:c"
	if !p.Covers(a, b) {
		t.Error("a run's request does not cover the run's actions")
	}
	if a.Run = "run_2"; p.Covers(a, b) {
		t.Error("a run's request covers another run")
	}
}

// AP-10: what was allowed ends in its instant, and a clock that is behind gives it no more time.
func TestWhatWasAllowedEnds(t *testing.T) {
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		until, allowed time.Time
		behind, want   bool
	}{
		{time.Time{}, now.Add(-time.Hour), true, false},
		{now.Add(time.Microsecond), now.Add(-time.Hour), false, false},
		{now, now.Add(-time.Hour), false, true},
		{now.Add(time.Hour), now.Add(-time.Microsecond), true, true},
		{now.Add(time.Hour), now, true, false}, // allowed in this very change
	} {
		a := action.Action{Binding: action.Binding{Until: c.until}, AuthorizedAt: c.allowed}
		if got := a.Lapsed(now, c.behind); got != c.want {
			t.Errorf("until %s, allowed at %s, behind %t: over is %t", c.until, c.allowed, c.behind, got)
		}
	}
}
