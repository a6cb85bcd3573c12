package vault

import (
	"errors"
	"fmt"
	"sync/atomic"

	"deed.dev/deed/internal/action"
)

// What stands in the way of a credential. None of them, wrapped or not, ever holds a value.
var (
	ErrLocked   = errors.New("the vault is locked")
	ErrUnknown  = errors.New("no credential has this reference")
	ErrNotBound = errors.New("the credential is not meant for this target")
	ErrSource   = errors.New("the credential's value is not usable")
)

// Kind says where in a request a credential goes.
type Kind string

// Kinds of credential.
const (
	Bearer Kind = "bearer" // Authorization: Bearer …
	Basic  Kind = "basic"  // Authorization: Basic …; the value is user:password
	Header Kind = "header" // a header of its own name
	Query  Kind = "query"  // a query parameter; targets tend to log it, so it is the last choice
)

// Credential describes one secret: where it may be sent, in which form, and where its value is read.
type Credential struct {
	Ref    string
	Kind   Kind
	Header string   // name of the header, or of the query parameter
	Hosts  []string // "host" or "host:port"; without a port it is 443
	// InsecureLoopback allows plain http, towards this machine only. Everything else is https.
	InsecureLoopback bool
	Source           Source
	Line             int // in the file that it was loaded from
}

// Vault holds the list of credentials. It is safe for use by several goroutines.
type Vault struct {
	credentials map[string]Credential
	locked      atomic.Bool
}

func newVault(list []Credential) *Vault {
	v := &Vault{credentials: map[string]Credential{}}
	for _, c := range list {
		v.credentials[c.Ref] = c
	}
	return v
}

// Lock refuses every use from now on.
func (v *Vault) Lock() { v.locked.Store(true) }

// Unlock ends Lock.
func (v *Vault) Unlock() { v.locked.Store(false) }

// Locked reports whether the vault refuses every use.
func (v *Vault) Locked() bool { return v.locked.Load() }

// Find gives what may be known of a credential: everything but its value.
func (v *Vault) Find(ref string) (Credential, bool) {
	c, ok := v.credentials[ref]
	return c, ok
}

// Open reads the value of a credential, now, for one target. It refuses a target that the credential does not name.
// Errors are ErrLocked, ErrUnknown, ErrNotBound and ErrSource, wrapped with the reference.
func (v *Vault) Open(ref string, target action.Target) (*Opened, error) {
	c, err := v.usable(ref)
	if err != nil {
		return nil, err
	}
	if !c.Bound(target) {
		return nil, fmt.Errorf("credential %q for %s: %w", ref, target, ErrNotBound)
	}
	return v.read(c)
}

// Refresh reads the value of a credential again, from its place, and reports whether it can be used. A target that
// answered 401 is worth another attempt only then. No value is kept between uses, so there is nothing else to renew.
func (v *Vault) Refresh(ref string) error {
	c, err := v.usable(ref)
	if err != nil {
		return err
	}
	_, err = v.read(c)
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

func (v *Vault) read(c Credential) (*Opened, error) {
	value, err := c.Source.read()
	if err != nil {
		return nil, fmt.Errorf("credential %q: %w: %w", c.Ref, ErrSource, err)
	}
	o, err := open(c, value)
	if err != nil {
		return nil, fmt.Errorf("credential %q: %w: %w", c.Ref, ErrSource, err)
	}
	return o, nil
}
