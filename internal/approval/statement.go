package approval

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// A Verdict is what a person says about an action.
type Verdict = action.ApprovalDecision

// The verdicts.
const (
	Approve = action.Approve
	Deny    = action.Deny
)

// Statement is what an approver signs. Each field is part of what is signed, and none may be empty.
type Statement struct {
	Approval action.DecisionID // of the request that is answered
	Action   action.ID
	Binding  string // binding_digest: resolved target, credential reference and exact bytes
	Verdict  Verdict
	Approver string    // by the name that the policy gives
	Expires  time.Time // from when on the decision counts for nothing; whole microseconds
	Nonce    string    // of the request, so that no two requests have the same statement
}

// statementFormat separates these digests from all others that are ever signed with the same key.
const statementFormat = "deed-approval/1"

// timeFormat is the one spelling of a time in a statement.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// ParseTime reads a time of a statement: in its one spelling.
func ParseTime(s string) (time.Time, error) { return time.Parse(timeFormat, s) }

// Digest is what is signed: SHA-256 over the format's name, a zero byte and the canonical form of the statement.
func (s Statement) Digest() ([32]byte, error) {
	if err := s.check(); err != nil {
		return [32]byte{}, err
	}
	text, err := canonical.Marshal(map[string]any{
		"approval_id":    string(s.Approval),
		"action_id":      string(s.Action),
		"binding_digest": s.Binding,
		"decision":       string(s.Verdict),
		"approver":       s.Approver,
		"expires_at":     s.Expires.UTC().Format(timeFormat),
		"nonce":          s.Nonce,
	})
	if err != nil {
		return [32]byte{}, fmt.Errorf("a statement that cannot be written down: %w", err)
	}
	return sha256.Sum256(append([]byte(statementFormat+"\x00"), text...)), nil
}

func (s Statement) check() error {
	switch {
	case s.Approval == "" || s.Action == "" || s.Binding == "" || s.Approver == "" || s.Nonce == "":
		return errors.New("a decision names its request, its action, its binding, its approver and its nonce")
	case s.Verdict != Approve && s.Verdict != Deny:
		return fmt.Errorf("%q is no decision; it is %s or %s", s.Verdict, Approve, Deny)
	case s.Expires.IsZero() || !s.Expires.Equal(s.Expires.Truncate(time.Microsecond)):
		return errors.New("a decision ends at a time of whole microseconds")
	}
	return nil
}

// StatementOf is what an approver signs to decide about a request.
func StatementOf(p action.Approval, verdict Verdict, approver string) Statement {
	return Statement{
		Approval: p.ID, Action: p.Action, Binding: p.Binding, Verdict: verdict, Approver: approver, Expires: p.Expires, Nonce: p.Nonce,
	}
}

// StatementIn is what was signed for a decision on record.
func StatementIn(d action.Decided) Statement {
	return Statement{
		Approval: d.Approval, Action: d.Action, Binding: d.Binding, Verdict: d.Decision, Approver: d.Approver, Expires: d.Expires, Nonce: d.Nonce,
	}
}
