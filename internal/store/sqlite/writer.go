package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

// writer is the one connection that writes, and all that belongs to it. Only the committer uses it once the store is open.
type writer struct {
	db         *sql.DB
	conn       *sql.Conn
	path       string
	now        func() time.Time
	files      guard
	statements *statements

	begin, commit, rollback, save, undo, release        *sql.Stmt
	putPayload, erasePayload, putContract, contractText *sql.Stmt

	*reads
	claims *claims
	rows   *projector
	ledger *ledger
	keys   *keyRows
	top    atomic.Pointer[journal.Checkpoint] // the head that is durable; read by anybody

	newest  time.Time // of the journal, changes under way included
	written int       // what this batch put down beside its journal records
}

func openWriter(ctx context.Context, path string, opts Options) (w *writer, err error) {
	db, err := sql.Open("sqlite", writerName(path, opts.TestOnlyNoSync))
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	db.SetMaxOpenConns(1)
	w = &writer{db: db, path: path, now: opts.Now}
	opened := w // a return with an error clears w first
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close())
		}
	}()
	if err := migrate(ctx, db); err != nil {
		return nil, err
	}
	if w.conn, err = db.Conn(ctx); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := checkSettings(ctx, w.conn, opts.TestOnlyNoSync); err != nil {
		return nil, err
	}
	if err := agreeOnMoves(ctx, w.conn); err != nil {
		return nil, err
	}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	if err := w.openJournal(ctx, opts); err != nil {
		return nil, err
	}
	w.publish()
	// The directory's lock is held, so whoever had a lease before is gone.
	if _, err := w.conn.ExecContext(ctx, `delete from owners`); err != nil {
		return nil, fmt.Errorf("end the leases of earlier processes: %w", err)
	}
	w.files, err = newGuard(path, path+"-wal", filepath.Join(filepath.Dir(path), lockName))
	return w, err
}

func (w *writer) prepare() error {
	p := &statements{from: w.conn}
	w.statements = p
	w.begin, w.commit, w.rollback = p.prepare(`begin immediate`), p.prepare(`commit`), p.prepare(`rollback`)
	w.save, w.undo, w.release = p.prepare(`savepoint change`), p.prepare(`rollback to change`), p.prepare(`release change`)
	w.ledger = prepareLedger(p)
	w.putPayload = p.prepare(`insert into payloads (kind, owner, salt, content, commitment) values (?, ?, ?, ?, ?)`)
	w.erasePayload = p.prepare(`delete from payloads where kind = ? and owner = ?`)
	w.putContract = p.prepare(`insert into contracts (digest, tool, text) values (?, ?, ?) on conflict (digest) do nothing`)
	w.contractText = p.prepare(`select text from contracts where digest = ?`)
	w.reads = prepareReads(p)
	w.claims = prepareClaims(p)
	w.rows = prepareProjector(p, w.reads)
	w.keys = prepareKeyRows(p)
	return p.err
}

func (w *writer) close() (err error) {
	if w.statements != nil {
		err = w.statements.close()
	}
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.db.Close())
}

// run gives a change its own savepoint, so that one which fails leaves nothing of itself, not even a place in the chain.
// fatal is an error after which the transaction cannot go on.
func (w *writer) run(j *job) (err, fatal error) {
	before, newest, written := w.ledger.mark(), w.newest, w.written
	if _, err := w.save.ExecContext(background); err != nil {
		return nil, fmt.Errorf("begin a change: %w", err)
	}
	t := w.newTx()
	err = t.do(j.change)
	if t.fatal != nil {
		return nil, t.fatal
	}
	if err != nil {
		if _, err := w.undo.ExecContext(background); err != nil {
			return nil, fmt.Errorf("take a change back: %w", err)
		}
		w.ledger.reset(before)
		w.newest, w.written = newest, written
	}
	w.rows.forget()
	if _, err := w.release.ExecContext(background); err != nil {
		return nil, fmt.Errorf("end a change: %w", err)
	}
	return err, nil
}

// do calls the change. What it panics with is its caller's error, not the end of the process.
func (t *tx) do(change func(store.Tx) error) (err error) {
	defer func() {
		t.over = true
		if p := recover(); p != nil {
			err = fmt.Errorf("a change panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err := change(t); err != nil {
		return err
	}
	return t.refused
}

// finish makes the batch durable: one commit, one sync.
func (w *writer) finish() error {
	if w.written == 0 && len(w.ledger.pending) == 0 {
		if _, err := w.rollback.ExecContext(background); err != nil {
			return fmt.Errorf("end without a change: %w", err)
		}
		return nil
	}
	if err := w.ledger.store(); err != nil {
		return err
	}
	if err := w.files.check(); err != nil {
		return err
	}
	if _, err := w.commit.ExecContext(background); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.ledger.chain.Commit()
	w.publish()
	w.written = 0
	return nil
}

// abandon takes the batch back. Its error adds nothing: the store is latched already, and SQLite may have rolled back.
func (w *writer) abandon() {
	_, _ = w.rollback.ExecContext(background)
}
