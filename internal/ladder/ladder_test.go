package ladder

import (
	"fmt"
	"testing"

	"deed.dev/deed/internal/action"
)

// VA-02: the rules are asked in one fixed order, whatever else is true. All sixteen combinations of facts.
func TestFixedOrder(t *testing.T) {
	for i := range 16 {
		f := Facts{VaultLocked: i&1 != 0, ActorVerified: i&2 != 0, EachUse: i&4 != 0, RunAuthorized: i&8 != 0}
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			want := Decision{Verdict: Allow, Rule: RuleSession}
			if f.EachUse {
				want = Decision{Verdict: Deny, Rule: RuleEachUse, Reason: action.Policy}
			}
			if !f.ActorVerified {
				want = Decision{Verdict: Deny, Rule: RuleActor, Reason: action.Policy}
			}
			if f.VaultLocked {
				want = Decision{Verdict: Deny, Rule: RuleVault, Reason: action.VaultLocked}
			}
			got := Decide(f)
			if got.Why == "" {
				t.Error("the decision gives no reason for people")
			}
			got.Why = ""
			if got != want {
				t.Errorf("Decide(%+v) = %+v, want %+v", f, got, want)
			}
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

// A run that a person authorized opens neither a locked vault nor a credential that needs a person each time.
func TestAuthorizedRunOpensNothingElse(t *testing.T) {
	for _, f := range []Facts{
		{RunAuthorized: true},
		{RunAuthorized: true, ActorVerified: true, VaultLocked: true},
		{RunAuthorized: true, ActorVerified: true, EachUse: true},
	} {
		if got := Decide(f); got.Verdict != Deny {
			t.Errorf("Decide(%+v) = %v, want deny", f, got.Verdict)
		}
	}
}
