package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/eventlog"
)

// tx is one change under way. It is used by its change alone, and by nobody once that has returned.
type tx struct {
	w         *writer
	now       time.Time
	clockBack bool
	over      bool
	refused   error // an event that was refused: the whole change is dropped, whatever its function says
	fatal     error // a fault that latches the store

	lock   contentLock // of what this change seals; made when it is first needed
	undone []int64     // slots of locks that something was erased under
}

var errOver = errors.New("the change is over")

func (w *writer) newTx() *tx {
	now := eventlog.Micro(w.now())
	t := &tx{w: w, now: now, clockBack: now.Before(w.newest)}
	if t.clockBack {
		t.now = w.newest
	}
	return t
}

// Now implements store.Tx. It is the same throughout a change.
func (t *tx) Now() time.Time { return t.now }

// ClockBack implements store.Tx.
func (t *tx) ClockBack() bool { return t.clockBack }

func (t *tx) usable() error {
	switch {
	case t.over:
		return errOver
	case t.fatal != nil:
		return t.fatal
	}
	return nil
}

// note keeps a fault that a statement met: the change may overlook it, the store may not.
func (t *tx) note(err error) error {
	if t.fatal == nil && fault(err) {
		t.fatal = err
	}
	return err
}

// Append implements store.Tx.
func (t *tx) Append(events ...action.Event) error {
	for _, ev := range events {
		if err := t.usable(); err != nil {
			return err
		}
		if t.refused != nil {
			return t.refused
		}
		if err := t.append(ev); err != nil {
			t.refused = fmt.Errorf("append %s: %w", ev.Kind, err)
			return t.refused
		}
	}
	return nil
}

// append writes one event: its record, then its rows.
func (t *tx) append(ev action.Event) error {
	if ev.Time.IsZero() {
		ev.Time = t.now
	}
	if !eventlog.Micro(ev.Time).Equal(t.now) {
		return fmt.Errorf("the event is of %s, and its change of %s", ev.Time, t.now)
	}
	step, err := t.w.rows.prepare(ev)
	if err := t.note(err); err != nil {
		return err
	}
	body, err := eventlog.Body(step.event, step.about, step.after)
	if err != nil {
		return err
	}
	place, err := t.w.ledger.next(body)
	if err != nil {
		return err
	}
	if err := t.note(t.w.rows.write(step, place)); err != nil {
		return stale(err)
	}
	t.w.newest = t.now
	return nil
}

// Place implements store.Tx.
func (t *tx) Place(id action.ID) (int64, string, error) {
	if err := t.usable(); err != nil {
		return 0, "", err
	}
	r, err := t.w.rows.action(id)
	if err := t.note(err); err != nil {
		return 0, "", about(err, "action", id)
	}
	return r.eventSeq, r.eventHash.String(), nil
}

// PutContract implements store.Tx.
func (t *tx) PutContract(digest, tool string, text []byte) error {
	if err := t.usable(); err != nil {
		return err
	}
	if text == nil {
		text = []byte{}
	}
	result, err := t.w.putContract.ExecContext(background, digest, tool, text)
	if err := t.note(err); err != nil {
		return fmt.Errorf("keep the contract %s: %w", digest, stale(err))
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		t.w.written++
		return err
	}
	var have []byte
	err = one(background, t.w.contractText, func(scan func(...any) error) error { return scan(&have) }, digest)
	if err := t.note(err); err != nil {
		return about(err, "contract", digest)
	}
	if !bytes.Equal(have, text) {
		return fmt.Errorf("the digest %s belongs to another contract text: %w", digest, store.ErrStale)
	}
	return nil
}
