package approval

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
)

// Signed, and how much it shows, are nouns of the record.
type (
	Signed   = action.Signed
	Strength = action.ApprovalStrength
)

// The strengths, weakest first; action says what each is worth.
const (
	ByKeyFile = action.ByKeyFile
	ByPasskey = action.ByPasskey
)

// The reasons for which a signature counts for nothing.
var (
	ErrUnknownApprover = errors.New("the policy names no such approver")
	ErrUnknownKey      = errors.New("the policy does not give this key to the approver")
	ErrSignature       = errors.New("the signature is not one of this statement")
	ErrExpired         = errors.New("the decision has expired")
)

// Check says how strong a decision is, or why it counts for nothing. It does not look at the clock: a decision that was
// in time stays a true record.
func (p *Policy) Check(s Statement, signed Signed) (Strength, error) {
	digest, err := s.Digest()
	if err != nil {
		return "", err
	}
	approver, ok := p.Approver(s.Approver)
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrUnknownApprover, s.Approver)
	}
	for _, key := range approver.Keys {
		switch {
		case key.Passkey != nil && bytes.Equal(key.Passkey.ID, signed.Key):
			if err := key.Passkey.verify(digest, signed); err != nil {
				return "", fmt.Errorf("%w: %w", ErrSignature, err)
			}
			return ByPasskey, nil
		case key.CLI != nil && bytes.Equal(key.CLI, signed.Key):
			if len(signed.AuthenticatorData)+len(signed.ClientData) > 0 || !ed25519.Verify(key.CLI, digest[:], signed.Signature) {
				return "", ErrSignature
			}
			return ByKeyFile, nil
		}
	}
	return "", ErrUnknownKey
}

// InTime is Check at an instant: the decision must count still.
func (p *Policy) InTime(s Statement, signed Signed, now time.Time) (Strength, error) {
	strength, err := p.Check(s, signed)
	if err == nil && !now.Before(s.Expires) {
		return "", ErrExpired
	}
	return strength, err
}
