package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// A commitment binds the journal to a payload and gives nothing to guess at: the salt stays with the payload, and both can
// be erased.
const saltSize = 16

func commit(salt, content []byte) action.Commitment {
	return action.CommitmentTo(salt, content)
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
	_, err := t.w.putPayload.ExecContext(background, string(kind), owner, salt, content, string(c))
	if err := t.note(err); err != nil {
		return "", fmt.Errorf("keep the %s of %s: %w", kind, owner, stale(err))
	}
	t.w.written++
	return c, nil
}

// Erase implements store.Tx. secure_delete makes SQLite overwrite what it held.
func (t *tx) Erase(kind store.PayloadKind, owner string) error {
	if err := t.usable(); err != nil {
		return err
	}
	_, err := t.w.erasePayload.ExecContext(background, string(kind), owner)
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

// content reads a payload and checks it against the commitment beside it.
func (r *reader) content(ctx context.Context, kind store.PayloadKind, owner string) (salt, content []byte, c action.Commitment, err error) {
	err = one(ctx, r.payload, func(scan func(...any) error) error { return scan(&salt, &content, &c) }, string(kind), owner)
	if err != nil {
		return nil, nil, "", about(err, string(kind)+" of", owner)
	}
	if !same(string(commit(salt, content)), string(c)) {
		return nil, nil, "", fmt.Errorf("the %s of %s does not fit its commitment: it was changed or damaged", kind, owner)
	}
	return salt, content, c, nil
}

// recorded gives what a journal event committed to, "" where there is no such event.
func (r *reader) recorded(ctx context.Context, kind store.PayloadKind, owner string) (want string, err error) {
	err = many(ctx, r.committed[kind], func(scan func(...any) error) error { return scan(&want) }, owner)
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
