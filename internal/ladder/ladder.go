// Package ladder answers one question: may this actor do this now? It is a pure function of a few facts, asked in one
// fixed order, and silence means no.
//
//	locked vault ─▶ nobody proved ─▶ run revoked ─▶ run not authorized ─▶ every use needs a person ─▶ the actor's own session
//	    deny            deny            deny               ask                        ask                     allow
//
// It refuses to know what was done before. Whether an action may have happened already is for the record of the action
// to say, and neither answer replaces the other.
package ladder

import "deed.dev/deed/internal/action"

// Facts are what the ladder looks at. Facts that were never filled in lead to a refusal.
type Facts struct {
	VaultLocked   bool // the credentials are sealed
	ActorVerified bool // something was proved about who is calling
	RunRevoked    bool // an operator has ended the actor's run
	RunAuthorized bool // a person authorized the actor's run, or the policy asks nobody about runs
	EachUse       bool // the contract or its credential is marked each_use: a person decides about each action
}

// Verdict is the ladder's answer. The zero value is no.
type Verdict uint8

// The verdicts. Ask means that a person has to say it.
const (
	Deny Verdict = iota
	Allow
	Ask
)

func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	default:
		return "deny"
	}
}

// Rules that a decision may name, in the order in which they are asked.
const (
	RuleVault   = "vault"
	RuleActor   = "actor"
	RuleRevoked = "revoked"
	RuleRun     = action.AsksRun
	RuleEachUse = action.AsksEachUse
	RuleSession = "session"
)

// Decision is a verdict, the rule that spoke, and why. Reason is empty unless the verdict is Deny.
type Decision struct {
	Verdict Verdict
	Rule    string
	Reason  action.RejectReason
	Why     string // a sentence for people
}

// Decide asks the rules in their fixed order. The first one that speaks wins.
func Decide(f Facts) Decision {
	switch {
	case f.VaultLocked:
		return deny(RuleVault, action.VaultLocked, "The vault is locked.")
	case !f.ActorVerified:
		return deny(RuleActor, action.Policy, "Nothing was proved about who is calling.")
	case f.RunRevoked:
		return deny(RuleRevoked, action.Revoked, "An operator has revoked the run.")
	case !f.RunAuthorized:
		return Decision{Verdict: Ask, Rule: RuleRun, Why: "A person authorizes each new agent process."}
	case f.EachUse:
		return Decision{Verdict: Ask, Rule: RuleEachUse, Why: "A person approves each use of this."}
	default:
		return Decision{Verdict: Allow, Rule: RuleSession, Why: "The actor's own process or token was proved."}
	}
}

func deny(rule string, reason action.RejectReason, why string) Decision {
	return Decision{Verdict: Deny, Rule: rule, Reason: reason, Why: why}
}
