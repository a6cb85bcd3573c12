package identity

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
)

// Errors about tokens. None of them holds a token.
var (
	ErrTokenUnknown = errors.New("the token is not known")
	ErrTokenExpired = errors.New("the token has expired")
	ErrTokenRevoked = errors.New("the token was revoked")
	ErrNameTaken    = errors.New("a token of this name is in use")
	ErrNameInvalid  = errors.New("a name has 1 to 64 characters of a-z, 0-9, dot, underscore and hyphen, and begins with a letter or digit")
	ErrNoSuchToken  = errors.New("there is no token of this name")
)

var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// TokenInfo is what is known of a token. The token itself is not.
type TokenInfo struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"` // of the whole token, lower-case hex
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: it was not
	Sole    bool      `json:"sole,omitempty"`   // one agent holds it, and nobody else
}

// TokenOptions say how a token is given out.
type TokenOptions struct {
	// Sole promises that one agent alone will hold the token. Without it, its holders may be strangers to each other.
	Sole     bool
	Lifetime time.Duration // 0: it does not expire
}

// Tokens are the bearer tokens that an operator gave out, kept in a file as digests. Several processes may use the file
// at once: a change that one makes counts for all of them at their next call.
type Tokens struct {
	path string

	mu     sync.Mutex
	loaded stamp
	list   []TokenInfo
}

// OpenTokens uses the file at path. It need not exist: then there are no tokens.
func OpenTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	_, err := t.current()
	return t, err
}

// Create gives out a token and returns it, for the only time. A name whose token expired or was revoked may be used
// again: it is the same actor, with a new token.
func (t *Tokens) Create(name string, o TokenOptions, now time.Time) (token string, err error) {
	if !tokenName.MatchString(name) {
		return "", fmt.Errorf("create token: %w", ErrNameInvalid)
	}
	if o.Lifetime < 0 {
		return "", errors.New("create token: the lifetime is negative")
	}
	token = newToken()
	made := TokenInfo{Name: name, SHA256: digestOfToken(token), Created: now.UTC(), Sole: o.Sole}
	if o.Lifetime > 0 {
		made.Expires = made.Created.Add(o.Lifetime)
	}
	err = t.change(func(list []TokenInfo) ([]TokenInfo, error) {
		i := indexOf(list, name)
		if i < 0 {
			return append(list, made), nil
		}
		if list[i].state(now) == nil {
			return nil, fmt.Errorf("create token %s: %w; revoke it first", name, ErrNameTaken)
		}
		list[i] = made
		return list, nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Revoke ends a token at once. Revoking it again changes nothing.
func (t *Tokens) Revoke(name string, now time.Time) error {
	return t.change(func(list []TokenInfo) ([]TokenInfo, error) {
		i := indexOf(list, name)
		if i < 0 {
			return nil, fmt.Errorf("revoke token: %w", ErrNoSuchToken)
		}
		if list[i].Revoked.IsZero() {
			list[i].Revoked = now.UTC()
		}
		return list, nil
	})
}

// List gives all tokens in the order in which their names were first used.
func (t *Tokens) List() ([]TokenInfo, error) { return t.current() }

// Authenticate names the holder of a token. Every refusal is an *action.Error with CodeUnauthenticated that wraps one of
// the errors above.
func (t *Tokens) Authenticate(bearer string, now time.Time) (action.Actor, error) {
	if !looksLikeToken(bearer) {
		return action.Actor{}, unauthenticated(ErrTokenUnknown)
	}
	list, err := t.current()
	if err != nil {
		return action.Actor{}, action.Errorf(action.CodeUnauthenticated, "tokens cannot be checked right now").Because(err)
	}
	digest := []byte(digestOfToken(bearer))
	found := -1
	for i, info := range list { // all of them, so that the time says nothing about which one was near
		if subtle.ConstantTimeCompare(digest, []byte(info.SHA256)) == 1 {
			found = i
		}
	}
	if found < 0 {
		return action.Actor{}, unauthenticated(ErrTokenUnknown)
	}
	if err := list[found].state(now); err != nil {
		return action.Actor{}, unauthenticated(err)
	}
	return action.Actor{
		Kind: "token", Identity: list[found].Name, Strength: action.StrengthToken, Shared: !list[found].Sole,
	}, nil
}

// state says why a token does not count now; nil when it does.
func (i TokenInfo) state(now time.Time) error {
	switch {
	case !i.Revoked.IsZero():
		return ErrTokenRevoked
	case !i.Expires.IsZero() && !now.Before(i.Expires):
		return ErrTokenExpired
	default:
		return nil
	}
}

func unauthenticated(why error) *action.Error {
	return action.Errorf(action.CodeUnauthenticated, "%v", why).Because(why)
}

func indexOf(list []TokenInfo, name string) int {
	return slices.IndexFunc(list, func(i TokenInfo) bool { return i.Name == name })
}
