package vault

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deed.dev/deed/internal/action"
)

// What stands in the way of a credential. None of them, wrapped or not, ever holds a value.
var (
	ErrLocked   = errors.New("the vault is locked")
	ErrUnknown  = errors.New("no credential has this reference")
	ErrNotBound = errors.New("the credential is not meant for this target")
	ErrSource   = errors.New("the credential's value is not usable")
)

// Vault holds the list of credentials, and while it is unlocked the values out of its encrypted file. It is safe for use
// by several goroutines.
type Vault struct {
	credentials map[string]Credential
	file        string // of sealed values; "" when none is used
	roots       *x509.CertPool
	now         func() time.Time
	tokens      tokens

	mu     sync.RWMutex
	sealed *sealedFile // nil while the vault is locked, or has no file
	locked atomic.Bool
	locks  atomic.Uint64 // how often it was locked: what was opened before is worth nothing after
}

func newVault(list []Credential) *Vault {
	v := &Vault{credentials: map[string]Credential{}, now: time.Now}
	for _, c := range list {
		v.credentials[c.Ref] = c
	}
	return v
}

// Format prints no value.
func (v *Vault) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[vault]") }

// Locked reports whether the vault refuses every use.
func (v *Vault) Locked() bool { return v.locked.Load() }

// Find gives what may be known of a credential: everything but its value.
func (v *Vault) Find(ref string) (Credential, bool) {
	c, ok := v.credentials[ref]
	return c, ok
}

// All lists the credentials in the order of their references.
func (v *Vault) All() []Credential {
	return slices.SortedFunc(maps.Values(v.credentials), func(a, b Credential) int { return strings.Compare(a.Ref, b.Ref) })
}

// Open reads the value of a credential, now, for one target. It refuses a target that the credential does not name, and
// waits no longer than ctx for a source that has to be asked. Errors are ErrLocked, ErrUnknown, ErrNotBound and ErrSource,
// wrapped with the reference.
func (v *Vault) Open(ctx context.Context, ref string, target action.Target) (*Opened, error) {
	locks := v.locks.Load()
	c, err := v.usable(ref)
	if err != nil {
		return nil, err
	}
	if !c.Bound(target) {
		return nil, fmt.Errorf("credential %q for %s: %w", ref, target, ErrNotBound)
	}
	o, err := v.read(ctx, c)
	if err != nil {
		return nil, err
	}
	o.still = func() error {
		if v.Locked() || v.locks.Load() != locks {
			return fmt.Errorf("credential %q: %w", ref, ErrLocked)
		}
		return nil
	}
	if err := o.Still(); err != nil { // locked while the value was read
		return nil, err
	}
	return o, nil
}

// Refresh reads the value of a credential again, from its place, and reports whether it can be used. A target that
// answered 401 is worth another attempt only then. It sends nothing to a target: a token is fetched anew where tokens are
// made, and nothing else is kept between uses.
func (v *Vault) Refresh(ctx context.Context, ref string) error {
	c, err := v.usable(ref)
	if err != nil {
		return err
	}
	if c.Kind == OAuth {
		v.tokens.refused(ref, v.now())
	}
	_, err = v.read(ctx, c)
	return err
}

func (v *Vault) usable(ref string) (Credential, error) {
	if v.Locked() {
		return Credential{}, fmt.Errorf("credential %q: %w", ref, ErrLocked)
	}
	c, ok := v.credentials[ref]
	if !ok {
		return Credential{}, fmt.Errorf("credential %q: %w", ref, ErrUnknown)
	}
	return c, nil
}

func (v *Vault) read(ctx context.Context, c Credential) (*Opened, error) {
	value, err := v.value(ctx, c)
	if err == nil && c.Kind == OAuth {
		value, err = v.token(ctx, c, value)
	}
	var o *Opened
	if err == nil {
		o, err = open(c, value)
	}
	switch {
	case errors.Is(err, ErrLocked):
		return nil, fmt.Errorf("credential %q: %w", c.Ref, ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("credential %q: %w: %w", c.Ref, ErrSource, err)
	}
	return o, nil
}

// EachUse reports whether a person approves every action that a credential would be sent with. One that is not there is no
// reason to ask: nothing can be sent with it.
func (v *Vault) EachUse(ref string) bool {
	c, ok := v.Find(ref)
	return ok && c.EachUse
}
