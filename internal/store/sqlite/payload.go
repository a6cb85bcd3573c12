package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
)

// A commitment binds the journal to a payload and gives nothing to guess at: the salt stays with the payload, and both can
// be erased.
const saltSize = 16

func commit(salt, content []byte) action.Commitment {
	return action.CommitmentTo(salt, content)
}

// seal seals salt and content for the row that they stand in.
func (w *writer) seal(kind, owner string, c action.Commitment, lock, salt, content []byte) ([]byte, error) {
	return w.content.Seal(sealed.Place{Kind: kind, Owner: owner, Commitment: string(c), Lock: lock}, slices.Concat(salt, content))
}

// PutPayload implements store.Tx. A payload is written once.
func (t *tx) PutPayload(kind store.PayloadKind, owner string, content []byte) (action.Commitment, error) {
	if err := t.usable(); err != nil {
		return "", err
	}
	salt := make([]byte, saltSize)
	rand.Read(salt)
	if content == nil {
		content = []byte{} // a null content would be no content at all
	}
	c := commit(salt, content)
	if err := t.putSealed(string(kind), owner, c, salt, content); err != nil {
		return "", fmt.Errorf("keep the %s of %s: %w", kind, owner, err)
	}
	t.w.written++
	return c, nil
}

func (t *tx) putSealed(kind, owner string, c action.Commitment, salt, content []byte) error {
	if err := t.note(t.w.noteKey()); err != nil {
		return err
	}
	lock, err := t.ownLock()
	if err := t.note(err); err != nil {
		return err
	}
	value, err := t.w.seal(kind, owner, c, lock.lock, salt, content)
	if err != nil {
		return err
	}
	_, err = t.w.putPayload.ExecContext(background, kind, owner, value, string(c), lock.slot)
	return stale(t.note(err))
}

// Erase implements store.Tx. The row is deleted, its lock is destroyed at the end of the change, and the WAL, which holds
// pages as they were before, is emptied after the commit.
func (t *tx) Erase(kind store.PayloadKind, owner string) error {
	if err := t.usable(); err != nil {
		return err
	}
	err := many(background, t.w.erasePayload, func(scan func(...any) error) error {
		var slot int64
		err := scan(&slot)
		t.undone = append(t.undone, slot)
		return err
	}, string(kind), owner)
	if err := t.note(err); err != nil {
		return fmt.Errorf("erase the %s of %s: %w", kind, owner, err)
	}
	t.w.written++
	return nil
}

// Payload implements store.Reader.
func (r *reader) Payload(ctx context.Context, kind store.PayloadKind, owner string) ([]byte, error) {
	_, content, err := r.Opening(ctx, kind, owner)
	return content, err
}

// Opening implements store.Reader.
func (r *reader) Opening(ctx context.Context, kind store.PayloadKind, owner string) (salt, content []byte, err error) {
	salt, content, commitment, err := r.content(ctx, kind, owner)
	if err != nil {
		return nil, nil, err
	}
	// The payload's own row could be rewritten as a whole. The record that owns it was made from the journal.
	want, err := r.recorded(ctx, kind, owner)
	if err != nil {
		return nil, nil, err
	}
	got := string(commitment)
	if kind == store.Repeat { // the journal holds a plain digest of a token, which is random already
		sum := sha256.Sum256(content)
		got = hex.EncodeToString(sum[:])
	}
	if want != "" && !same(want, got) {
		return nil, nil, fmt.Errorf("the %s of %s is not what the journal committed to", kind, owner)
	}
	return salt, content, nil
}

// content opens a payload and checks it against the commitment beside it.
func (r *reader) content(ctx context.Context, kind store.PayloadKind, owner string) (salt, content []byte, c action.Commitment, err error) {
	var value, lock []byte
	err = one(ctx, r.payload, func(scan func(...any) error) error { return scan(&value, &c, &lock) }, string(kind), owner)
	if err != nil {
		return nil, nil, "", about(err, string(kind)+" of", owner)
	}
	if r.keys == nil {
		return nil, nil, "", fmt.Errorf("the %s of %s: %w", kind, owner, store.ErrSealed)
	}
	opened, err := r.keys.Open(sealed.Place{Kind: string(kind), Owner: owner, Commitment: string(c), Lock: lock}, value)
	switch {
	case errors.Is(err, sealed.ErrNoKey):
		return nil, nil, "", fmt.Errorf("the %s of %s cannot be opened: %w. Restore %s from its backup", kind, owner, err, r.keys.Path())
	case err != nil:
		return nil, nil, "", fmt.Errorf("the %s of %s does not open: %w. Nothing of it was used; restore the database from its backup", kind, owner, err)
	case len(opened) < saltSize || !same(string(commit(opened[:saltSize], opened[saltSize:])), string(c)):
		return nil, nil, "", fmt.Errorf("the %s of %s does not fit its commitment: it was changed or damaged", kind, owner)
	}
	return opened[:saltSize], opened[saltSize:], c, nil
}

// recorded gives what a journal event committed to, "" where there is no such event.
func (r *reader) recorded(ctx context.Context, kind store.PayloadKind, owner string) (want string, err error) {
	says, ok := r.committed[kind]
	if !ok { // of the headers of an answer it says nothing
		return "", nil
	}
	err = many(ctx, says, func(scan func(...any) error) error { return scan(&want) }, owner)
	if err != nil {
		return "", fmt.Errorf("read what the journal says of the %s of %s: %w", kind, owner, err)
	}
	return want, nil
}

// Result implements store.Reader.
func (r *reader) Result(ctx context.Context, id action.ResultID) (res action.StoredResult, body []byte, err error) {
	err = one(ctx, r.result, func(scan func(...any) error) error {
		res, err = scanResult(scan)
		return err
	}, string(id))
	if err != nil {
		return action.StoredResult{}, nil, about(err, "result", id)
	}
	if res.Commitment == "" {
		return res, nil, nil
	}
	body, err = r.Payload(ctx, store.Answer, string(id))
	return res, body, err
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
