package ladder

import (
	"fmt"
	"testing"

	"deed.dev/deed/internal/action"
)

// VA-02, VA-03, VA-04, VA-05: the rules are asked in one fixed order, whatever else is true. All 32 combinations of facts are
// held against a list in which the first line that fits counts.
func TestFixedOrder(t *testing.T) {
	lines := []struct {
		vaultLocked, proved, revoked, runKnown, eachUse any // nil fits both
		want                                            Decision
	}{
		{true, nil, nil, nil, nil, Decision{Verdict: Deny, Rule: "vault", Reason: action.VaultLocked}},
		{nil, false, nil, nil, nil, Decision{Verdict: Deny, Rule: "actor", Reason: action.Policy}},
		{nil, nil, true, nil, nil, Decision{Verdict: Deny, Rule: "revoked", Reason: action.Revoked}},
		{nil, nil, nil, false, nil, Decision{Verdict: Ask, Rule: "run"}},
		{nil, nil, nil, nil, true, Decision{Verdict: Ask, Rule: "each_use"}},
		{false, true, false, true, false, Decision{Verdict: Allow, Rule: "session"}},
	}
	for i := range 32 {
		f := Facts{VaultLocked: i&1 != 0, ActorVerified: i&2 != 0, RunRevoked: i&4 != 0, RunAuthorized: i&8 != 0, EachUse: i&16 != 0}
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			got := Decide(f)
			if got.Why == "" {
				t.Error("the decision gives no reason for people")
			}
			got.Why = ""
			fits := func(want any, is bool) bool { return want == nil || want == is }
			for _, l := range lines {
				if fits(l.vaultLocked, f.VaultLocked) && fits(l.proved, f.ActorVerified) && fits(l.revoked, f.RunRevoked) &&
					fits(l.runKnown, f.RunAuthorized) && fits(l.eachUse, f.EachUse) {
					if got != l.want {
						t.Errorf("Decide(%+v) = %+v, want %+v", f, got, l.want)
					}
					return
				}
			}
			t.Errorf("no line fits %+v", f)
		})
	}
}

func TestNothingSaidMeansNo(t *testing.T) {
	if got := Decide(Facts{}); got.Verdict != Deny {
		t.Errorf("Decide of no facts = %v, want deny", got.Verdict)
	}
	if got := (Decision{}).Verdict; got != Deny {
		t.Errorf("the zero decision is %v, want deny", got)
	}
	if got := Verdict(77).String(); got != "deny" {
		t.Errorf("a verdict that does not exist prints %q, want deny", got)
	}
}

// VA-05: a run that a person authorized opens neither a locked vault nor a credential that needs a person each time.
func TestAuthorizedRunOpensNothingElse(t *testing.T) {
	for _, f := range []Facts{
		{RunAuthorized: true},
		{RunAuthorized: true, ActorVerified: true, VaultLocked: true},
		{RunAuthorized: true, ActorVerified: true, EachUse: true},
		{RunAuthorized: true, ActorVerified: true, RunRevoked: true},
	} {
		if got := Decide(f); got.Verdict == Allow {
			t.Errorf("Decide(%+v) = %v, want another verdict", f, got.Verdict)
		}
	}
}
