package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
)

// locks are the statements about the locks of sealed content.
type locks struct {
	make, read, destroy, under, move *sql.Stmt
}

func prepareLocks(p *statements) *locks {
	return &locks{
		make:    p.prepare(`insert into content_locks (lock) values (?)`),
		read:    p.prepare(`select lock from content_locks where slot = ?`),
		destroy: p.prepare(`update content_locks set lock = zeroblob(32) where slot = ?`),
		under:   p.prepare(`select kind, owner, sealed, commitment from payloads where slot = ?`),
		move:    p.prepare(`update payloads set sealed = ?, slot = ? where kind = ? and owner = ?`),
	}
}

// contentLock is a lock and where it stands.
type contentLock struct {
	slot int64
	lock []byte
}

func (w *writer) newLock() (l contentLock, err error) {
	l.lock = sealed.NewLock()
	result, err := w.locks.make.ExecContext(background, l.lock)
	if err != nil {
		return l, err
	}
	l.slot, err = result.LastInsertId()
	return l, err
}

// ownLock is the lock of this change.
func (t *tx) ownLock() (contentLock, error) {
	if t.lock.lock != nil {
		return t.lock, nil
	}
	l, err := t.w.newLock()
	if err == nil {
		t.lock = l
	}
	return l, err
}

// destroyLocks ends what was erased in this change: bytes of it that are left anywhere cannot be opened any more. What
// shares a lock with it and stays gets another.
func (t *tx) destroyLocks() error {
	slices.Sort(t.undone)
	for _, slot := range slices.Compact(t.undone) {
		if err := t.note(t.destroyLock(slot)); err != nil {
			return fmt.Errorf("erase: %w", err)
		}
		t.w.erased = true
	}
	return nil
}

func (t *tx) destroyLock(slot int64) error {
	var old []byte
	if err := one(background, t.w.locks.read, func(scan func(...any) error) error { return scan(&old) }, slot); err != nil {
		return err
	}
	type kept struct {
		place sealed.Place
		value []byte
	}
	var stay []kept
	err := many(background, t.w.locks.under, func(scan func(...any) error) error {
		k := kept{place: sealed.Place{Lock: old}}
		err := scan(&k.place.Kind, &k.place.Owner, &k.value, &k.place.Commitment)
		stay = append(stay, k)
		return err
	}, slot)
	if err != nil {
		return err
	}
	if t.lock.slot == slot { // it was put and erased in one change
		t.lock = contentLock{}
	}
	for _, k := range stay {
		salted, err := t.w.content.Open(k.place, k.value)
		if errors.Is(err, sealed.ErrDamaged) { // lost already, and no reason to keep what has to be erased
			continue
		}
		if err != nil {
			return fmt.Errorf("the %s of %s shares a lock with what is erased, and does not open: %w", k.place.Kind, k.place.Owner, err)
		}
		if err := t.reseal(k.place, salted); err != nil {
			return err
		}
	}
	_, err = t.w.locks.destroy.ExecContext(background, slot)
	return err
}

func (t *tx) reseal(p sealed.Place, salted []byte) error {
	if err := t.w.noteKey(); err != nil {
		return err
	}
	lock, err := t.ownLock()
	if err != nil {
		return err
	}
	value, err := t.w.seal(p.Kind, p.Owner, action.Commitment(p.Commitment), lock.lock, nil, salted)
	if err != nil {
		return err
	}
	_, err = t.w.locks.move.ExecContext(background, value, lock.slot, p.Kind, p.Owner)
	return err
}
