package action

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// ApprovalDecision is what a person says when deed asks whether something may be done.
type ApprovalDecision string

// The decisions. They are signed, so that a signed deny can never be shown as an approval.
const (
	Approve ApprovalDecision = "approve"
	Deny    ApprovalDecision = "deny"
)

// ApprovalStrength says how much an approver's signature shows, and no more.
type ApprovalStrength string

// The strengths, weakest first.
const (
	// ByKeyFile: somebody had the file of the approver's key and its passphrase. Whoever runs as the same user could have
	// had both: it records an intent and protects from accidents.
	ByKeyFile ApprovalStrength = "key_file"
	// ByPasskey: an authenticator that this approver enrolled checked its user and signed for this site. A program that
	// runs as the approver cannot do that alone; it may still mislead somebody whose display it controls.
	ByPasskey ApprovalStrength = "passkey"
)

// Signed is a signature on a statement's digest, as the journal keeps it. Either Signature is there alone, made with a
// CLI key, or all of it, made with a passkey.
type Signed struct {
	Key               []byte // the public key of a CLI key, or the id of a passkey
	Signature         []byte
	AuthenticatorData []byte
	ClientData        []byte // clientDataJSON, byte for byte
}

// ApprovalState is the life of a request.
type ApprovalState string

// The states of a request. An approved one may still become void: it is the action that is sent, not the request.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalApproved ApprovalState = "approved"
	ApprovalDenied   ApprovalState = "denied"
	ApprovalVoid     ApprovalState = "void"
)

// What a request may be about. The words are those of the ladder's rules.
const (
	AsksEachUse = "each_use" // one action, exactly as it is resolved
	AsksRun     = "run"      // the run of an agent's process; its actions are bound one by one all the same
)

// Approval is a request to a person: may this be done. It is bound to what is asked, it expires, and it counts once.
type Approval struct {
	ID     DecisionID
	Action ID    // the action that is asked about, or that made deed ask about its run
	Run    RunID // of the action
	Rule   string
	// Binding is binding_digest: of the action's resolved target, credential reference and exact bytes, or of the run.
	Binding      string
	Nonce        string
	Expires      time.Time // from when on no decision counts, and what was decided counts no more
	Needed       int       // approvers who have to approve; one who denies is enough
	NotRequester bool      // nobody approves what was asked for in their own name
	State        ApprovalState
	Why          string // of a void request, in closed words
	Decisions    []Decided
	Requested    time.Time
	Updated      time.Time
}

// Decided is one approver's signed decision. It repeats what was signed, so that whoever holds this one record and the
// policy can check it.
type Decided struct {
	Approval DecisionID
	Action   ID
	Binding  string
	Nonce    string
	Expires  time.Time
	Decision ApprovalDecision
	Approver string
	Strength ApprovalStrength
	Signed   Signed
	Via      string // the principal through which it came; it proves nothing of the approver
	At       time.Time
}

// Voided says that a request counts no more, and why.
type Voided struct {
	Approval DecisionID
	Action   ID
	Why      string // closed words: "expired", "revoked", "cancelled", "binding_changed", "approval_expired"
}

// Revocation is an operator's word that something must not be done any more.
type Revocation struct {
	ID       DecisionID
	By       string // the verified principal, as records show it
	Strength Strength
	What     string // what was named: an action, an intent, a run or an actor
	Why      string // in the operator's words
}

// ApprovalAsked is a decision that a person wants recorded.
type ApprovalAsked struct {
	Approval DecisionID
	Action   ID
	Decision ApprovalDecision
	Approver string
	Signed   Signed
}

// RevokeAsked names what an operator revokes: exactly one of an action, an intent (one branch of a run), a run or an actor.
type RevokeAsked struct {
	Action ID
	Intent IntentID
	Run    RunID
	Actor  string
	Why    string
}

// ApprovalShown is a request with everything that a person needs to decide about it, as it is on record.
type ApprovalShown struct {
	Approval  Approval
	Action    Action
	Run       Run    // who asks
	Impact    string // what happens, in the words of the contract; "" when it says none
	Operation Operation
	Recorded  []byte // the operation, byte for byte, and Salt: both together give the commitment that the binding holds
	Salt      []byte
	Attempts  []Attempt
}

// RevokeDone is what a revocation came to.
type RevokeDone struct {
	ID       DecisionID
	Rejected []ID // nothing of them was sent, and nothing will be
	Sent     []ID // they are at their targets, or were: they go on, and their outcome is recorded
	Settled  int  // they were over before
}

// The reasons for which a decision cannot become part of a request.
var (
	errNotOpen  = errors.New("the request is not open any more")
	errNotAsked = errors.New("the decision is about something else than the request")
	errTwice    = errors.New("this approver has decided already")
)

// Check refuses a request that nobody could decide on: it has to say what exactly is asked. (AP-06)
func (p Approval) Check() error {
	switch {
	case p.ID == "" || p.Action == "" || p.Nonce == "":
		return errors.New("a request for approval names itself, its action and a nonce")
	case p.Rule != AsksEachUse && p.Rule != AsksRun:
		return fmt.Errorf("a request for approval asks about %q", p.Rule)
	case p.Binding == "":
		return errors.New("a request for approval is bound to nothing")
	case p.Needed < 1:
		return errors.New("a request for approval needs nobody")
	case p.Expires.IsZero() || !p.Expires.Equal(p.Expires.Truncate(time.Microsecond)):
		return errors.New("a request for approval ends at a time of whole microseconds")
	}
	return nil
}

// Decide gives the request with one more decision. One deny ends it, and each approver counts once.
func (p Approval) Decide(d Decided) (Approval, error) {
	switch {
	case p.State != ApprovalOpen:
		return p, fmt.Errorf("%w: it is %s", errNotOpen, p.State)
	case d.Approval != p.ID || d.Action != p.Action || d.Binding != p.Binding || d.Nonce != p.Nonce || !d.Expires.Equal(p.Expires):
		return p, errNotAsked
	case d.Decision != Approve && d.Decision != Deny || d.Approver == "" || len(d.Signed.Signature) == 0:
		return p, errNotAsked
	case !d.At.Before(p.Expires):
		return p, fmt.Errorf("%w: it has expired", errNotOpen)
	}
	approved := 0
	for _, earlier := range p.Decisions {
		if earlier.Approver == d.Approver || bytes.Equal(earlier.Signed.Key, d.Signed.Key) {
			return p, errTwice
		}
		approved++
	}
	p.Decisions = append(p.Decisions[:len(p.Decisions):len(p.Decisions)], d)
	p.Updated = d.At
	switch {
	case d.Decision == Deny:
		p.State = ApprovalDenied
	case approved+1 >= p.Needed:
		p.State = ApprovalApproved
	}
	return p, nil
}

// Void gives the request as one that counts no more. A denied one stays denied.
func (p Approval) Void(v Voided, at time.Time) (Approval, error) {
	if v.Approval != p.ID || v.Action != p.Action {
		return p, errNotAsked
	}
	if p.State != ApprovalOpen && p.State != ApprovalApproved {
		return p, fmt.Errorf("%w: it is %s", errNotOpen, p.State)
	}
	p.State, p.Why, p.Updated = ApprovalVoid, v.Why, at
	return p, nil
}

// Lapsed reports whether a request, or what was decided about it, counts no more at an instant.
func (p Approval) Lapsed(now time.Time) bool { return !now.Before(p.Expires) }

// Covers reports whether the approved request allows exactly what a binding says of an action.
func (p Approval) Covers(a Action, b Binding) bool {
	if p.State != ApprovalApproved || b.Decision != p.ID || b.Digest == "" {
		return false
	}
	if p.Rule == AsksRun {
		return p.Run == a.Run
	}
	return p.Action == a.ID && p.Binding == b.Digest && b.Until.Equal(p.Expires)
}

// Lapsed reports whether what was allowed is over: a person's decision holds until its expiry. behind says that the wall
// clock is earlier than the newest journal time: then only what was allowed in this very change still counts.
func (a Action) Lapsed(now time.Time, behind bool) bool {
	until := a.Binding.Until
	if until.IsZero() {
		return false
	}
	return !now.Before(until) || behind && a.AuthorizedAt.Before(now)
}

// ask records that a person is asked. The move that comes with it makes the action wait for the answer.
func (a Action) ask(ev Event) (Action, error) {
	p := ev.ApprovalBody
	switch {
	case a.State != Accepted && a.State != AwaitingApproval && a.State != Authorized:
		return a, fmt.Errorf("nobody is asked about %s, which is %s", a.ID, a.State)
	case p.Action != a.ID || p.Run != a.Run:
		return a, fmt.Errorf("a request about %s stands with %s", p.Action, a.ID)
	case p.State != ApprovalOpen || len(p.Decisions) > 0:
		return a, errors.New("a request begins open and without a decision")
	}
	a.UpdatedAt = ev.Time
	return a, p.Check()
}

// answered records that something was said about a request of the action.
func (a Action) answered(ev Event) (Action, error) {
	a.UpdatedAt = ev.Time
	return a, nil
}

// withdraw records that an action which was sent already is not sent again.
func (a Action) withdraw(ev Event) (Action, error) {
	if a.State.Effect() != EffectMaybe || a.Withdrawn {
		return a, fmt.Errorf("nothing is taken back of %s, which is %s", a.ID, a.State)
	}
	a.Withdrawn, a.UpdatedAt = true, ev.Time
	return a, nil
}
