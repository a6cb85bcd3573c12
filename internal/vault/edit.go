package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"deed.dev/deed/internal/vault/agefile"
)

// Unlocker opens the vault's file: a passphrase or the text of an identity file. It prints as [key].
type Unlocker struct {
	key        agefile.Key
	passphrase buffer // a passphrase also writes
}

// Format prints no key.
func (u Unlocker) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key]") }

// WithPassphrase opens with a passphrase. The bytes are the Unlocker's from now on.
func WithPassphrase(p []byte) (Unlocker, error) {
	k, err := agefile.Passphrase(p)
	return Unlocker{k, newBuffer(p)}, err
}

// WithIdentities opens with the text of an identity file.
func WithIdentities(text []byte) (Unlocker, error) {
	k, err := agefile.Identities(text)
	return Unlocker{key: k}, err
}

// Passphrase is a copy of the passphrase, for the door of a gateway that has to be told; nil where a key opens the vault.
func (u Unlocker) Passphrase() []byte { return bytes.Clone(u.passphrase.bytes()) }

// Wipe overwrites the passphrase.
func (u Unlocker) Wipe() { u.passphrase.wipe() }

func read(path string, u Unlocker) (*sealedFile, error) {
	text, err := agefile.Read(path, u.key)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// What Create and Edit refuse.
var (
	ErrExists   = errors.New("the vault's file exists already")
	ErrNoEntry  = errors.New("the vault holds nothing under this reference")
	ErrRotating = errors.New("a rotation of this credential is not over: it is not known which of two values is active")
)

// Create makes an empty vault, for a passphrase, or for recipients when some are named. It replaces none.
func Create(path string, u Unlocker, work int, recipients []string) error {
	release, err := agefile.Lock(path)
	if err != nil {
		return err
	}
	defer release()
	if agefile.Exists(path) {
		return ErrExists
	}
	s := &sealedFile{recipients: recipients, entries: map[string]*sealedEntry{}}
	if len(recipients) == 0 {
		s.work = work
	}
	return s.write(path, u)
}

func (s *sealedFile) write(path string, u Unlocker) error {
	to, err := s.readers(u)
	if err != nil {
		return err
	}
	text, err := s.encode()
	if err != nil {
		return errors.New("the vault's file could not be written down")
	}
	defer clear(text)
	return agefile.Write(path, to, text)
}

func (s *sealedFile) readers(u Unlocker) (agefile.Recipients, error) {
	if len(s.recipients) > 0 {
		return agefile.ToRecipients(s.recipients)
	}
	return agefile.ToPassphrase(u.passphrase.bytes(), s.work)
}

// View lists what is in the file, without values.
func View(path string, u Unlocker) ([]Entry, error) {
	s, err := read(path, u)
	if err != nil {
		return nil, err
	}
	defer s.wipe()
	return s.list(), nil
}

// Edit changes the file: it keeps other writers away, reads, and replaces the file as a whole if change returns nil.
func Edit(path string, u Unlocker, change func(*Editor) error) error {
	release, err := agefile.Lock(path)
	if err != nil {
		return err
	}
	defer release()
	s, err := read(path, u)
	if err != nil {
		return err
	}
	defer s.wipe()
	if err := change(&Editor{s}); err != nil {
		return err
	}
	return s.write(path, u)
}

// Rekey writes the same vault for another passphrase, or for recipients when some are named. What opened it until then
// opens only copies that were made before.
func Rekey(path string, u, next Unlocker, work int, recipients []string) error {
	release, err := agefile.Lock(path)
	if err != nil {
		return err
	}
	defer release()
	s, err := read(path, u)
	if err != nil {
		return err
	}
	defer s.wipe()
	if s.recipients, s.work = recipients, 0; len(recipients) == 0 {
		s.work = work
	}
	return s.write(path, next)
}

// Editor changes the vault's file while nobody else writes.
type Editor struct{ file *sealedFile }

// Set puts a value into the vault, for what the credential says now. The bytes are the vault's from now on.
func (e *Editor) Set(c Credential, value []byte, now time.Time) error {
	if err := Usable(c, value); err != nil {
		return err
	}
	if old, ok := e.file.entries[c.Ref]; ok {
		if !old.since.IsZero() {
			return ErrRotating
		}
		old.value.wipe()
	}
	e.file.entries[c.Ref] = &sealedEntry{purpose: c.purpose(), value: newBuffer(value), set: now.UTC()}
	return nil
}

// Usable reports whether a value is one of the credential's kind.
func Usable(c Credential, value []byte) error {
	if err := natures[c.Kind].check(c, string(value)); err != nil {
		return fmt.Errorf("the value cannot be used: %w", err)
	}
	return nil
}

// Remove takes a value out of the vault.
func (e *Editor) Remove(ref string) error {
	old, ok := e.file.entries[ref]
	if !ok {
		return ErrNoEntry
	}
	old.value.wipe()
	old.next.wipe()
	delete(e.file.entries, ref)
	return nil
}

// Rotate writes a second value down beside the one in use. The same value again is the same rotation; another one is
// refused until it is known which is active.
func (e *Editor) Rotate(c Credential, value []byte, now time.Time) error {
	if err := Usable(c, value); err != nil {
		return err
	}
	old, ok := e.file.entries[c.Ref]
	switch {
	case !ok:
		return ErrNoEntry
	case !old.purpose.covers(c):
		return errors.New("credentials.yaml says something else than the value was given for; `deed vault set` gives it anew")
	case !old.since.IsZero() && bytes.Equal(old.next.bytes(), value):
		return nil
	case !old.since.IsZero():
		return ErrRotating
	case bytes.Equal(old.value.bytes(), value):
		return errors.New("this is the value that the vault has already; there is nothing to rotate")
	}
	old.next, old.since = newBuffer(value), now.UTC()
	return nil
}

// Settle ends a rotation: one of the two values is the active one, and the other is wiped.
func (e *Editor) Settle(ref string, newIsActive bool, by Verifier, now time.Time) error {
	old, ok := e.file.entries[ref]
	if !ok || old.since.IsZero() {
		return ErrNoEntry
	}
	if newIsActive {
		old.value.wipe()
		old.value, old.set = old.next, old.since
	} else {
		old.next.wipe()
	}
	old.next, old.since = buffer{}, time.Time{}
	old.verified, old.by = now.UTC(), by
	return nil
}
