package vault

import (
	"crypto/x509"
	"errors"
	"fmt"

	"deed.dev/deed/internal/vault/agefile"
)

// UseFile says where sealed values are, and which authorities are trusted beside the system's where the vault itself asks
// a server. It comes before the first use. A vault whose file is there begins locked.
func (v *Vault) UseFile(path string, roots *x509.CertPool) {
	v.file, v.roots = path, roots
	if agefile.Exists(path) {
		v.locked.Store(true)
	}
}

// HasFile reports whether there is a file that a key has to open.
func (v *Vault) HasFile() bool { return v.file != "" && agefile.Exists(v.file) }

// Lock refuses every use from now on, also of what is opened already and not sent yet, and wipes the values. Copies that Go
// made of them while they were used are left to its memory's next use.
func (v *Vault) Lock() {
	v.locked.Store(true) // at once; the rest may wait for whoever reads
	v.locks.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.locked.Store(true) // again: an unlock may have been about to end
	v.sealed.wipe()
	v.sealed = nil
	v.tokens.drop()
}

// Unlock ends Lock where no file is sealed; with one it changes nothing, and UnlockWith is needed.
func (v *Vault) Unlock() {
	if !v.HasFile() {
		v.locked.Store(false)
	}
}

// UnlockWith opens the file and ends Lock. With a key that does not open it, everything stays as it was.
func (v *Vault) UnlockWith(k Unlocker) error { return v.take(k, true) }

// Reload reads the file again after it was changed. A locked vault stays locked.
func (v *Vault) Reload(k Unlocker) error { return v.take(k, false) }

func (v *Vault) take(k Unlocker, unlock bool) error {
	if v.file == "" {
		return agefile.ErrAbsent
	}
	locks := v.locks.Load()
	s, err := read(v.file, k)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.locks.Load() != locks || v.Locked() && !unlock { // locked while the file was read: the later word counts
		s.wipe()
		return ErrLocked
	}
	v.sealed.wipe()
	v.sealed = s
	v.tokens.drop()
	v.locked.Store(false)
	return nil
}

// Entries lists what is in the open vault, without values.
func (v *Vault) Entries() ([]Entry, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case v.Locked():
		return nil, ErrLocked
	case v.sealed == nil:
		return []Entry{}, nil
	}
	return v.sealed.list(), nil
}

// sealedValue is the value in the file, if it was given for what the credential now says.
func (v *Vault) sealedValue(c Credential) (string, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.Locked() {
		return "", ErrLocked
	}
	if v.sealed == nil {
		return "", errors.New("the vault has no file yet; `deed vault init` makes one")
	}
	e, ok := v.sealed.entries[c.Ref]
	switch {
	case !ok:
		return "", fmt.Errorf("the vault holds nothing for it; `deed vault set %s` puts it there", c.Ref)
	case !e.purpose.covers(c):
		return "", fmt.Errorf("it was given for something else than credentials.yaml now says (kind, hosts or address); `deed vault set %s` gives it anew", c.Ref)
	}
	return string(e.value.bytes()), nil
}
