package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

// reader answers from committed records, over connections that cannot write.
type reader struct {
	db         *sql.DB
	keys       *sealed.Keys // nil when content stays sealed
	statements *statements
	*reads
	contract, openContracts, openKeys, headStmt, placeOf, observations, due, backlog, expired *sql.Stmt
	runsOf                                                                                    *sql.Stmt
	waiting, overdue, countOverdue, open                                                      *sql.Stmt
	hashes, logKeys                                                                           *sql.Stmt
	committed                                                                                 map[store.PayloadKind]*sql.Stmt // what the journal says of a payload
}

func openReader(ctx context.Context, path string) (*reader, error) {
	db, err := sql.Open("sqlite", readerName(path))
	if err != nil {
		return nil, fmt.Errorf("open the database for reading: %w", err)
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	p := &statements{from: db}
	r := &reader{db: db, statements: p, reads: prepareReads(p),
		contract:      p.prepare(`select text from contracts where digest = ?`),
		openContracts: p.prepare(`select distinct contract from actions where open = 1 and tool = ? order by contract`),
		openKeys:      p.prepare(`select distinct key_id from actions where open = 1 order by key_id`),
		headStmt:      p.prepare(headQuery),
		placeOf:       p.prepare(`select seq from actions where id = ?`),
		observations:  p.prepare(selectObservations),
		runsOf:        p.prepare(`select id from runs where kind || ':' || identity = ? and revoked_at is null order by id`),
		due:           p.prepare(selectDue),
		backlog:       p.prepare(countBacklog),
		expired:       p.prepare(selectExpired),
		waiting:       p.prepare(selectWaiting),
		overdue:       p.prepare(selectOverdue),
		countOverdue:  p.prepare(countOverdue),
		open:          p.prepare(countOpen),
		hashes:        p.prepare(selectHashes),
		logKeys:       p.prepare(selectLogKeys),
		committed: map[store.PayloadKind]*sql.Stmt{
			store.Arguments: p.prepare(`select arguments from intents where id = ?`),
			store.Operation: p.prepare(`select operation from actions where id = ?`),
			store.Answer:    p.prepare(`select commitment from results where id = ?`),
			store.Job:       p.prepare(`select job from actions where id = ?`),
			store.Evidence:  p.prepare(`select evidence from observations where id = ?`),
			store.Repeat: p.prepare(`select repeat_token from results where id = ?1
				union all select repeat_token from actions where id = ?1 and repeat_token <> ''`),
		},
	}
	if p.err != nil {
		return nil, errors.Join(fmt.Errorf("open the database for reading: %w", p.err), r.close())
	}
	return r, nil
}

func (r *reader) close() error { return errors.Join(r.statements.close(), r.db.Close()) }

// Action implements store.Reader.
func (r *reader) Action(ctx context.Context, id action.ID) (action.Action, error) {
	a, err := r.actionRow(ctx, r.action, string(id))
	if err != nil {
		return action.Action{}, about(err, "action", id)
	}
	return a.Action, nil
}

// Attempts implements store.Reader: in the order of their numbers.
func (r *reader) Attempts(ctx context.Context, id action.ID) (attempts []action.Attempt, err error) {
	err = many(ctx, r.attempts, func(scan func(...any) error) error {
		a, err := scanAttempt(scan)
		attempts = append(attempts, a)
		return err
	}, string(id))
	if err != nil {
		return nil, about(err, "attempts of", id)
	}
	return attempts, nil
}

// Intent implements store.Reader.
func (r *reader) Intent(ctx context.Context, id action.IntentID) (i action.Intent, err error) {
	err = one(ctx, r.intent, func(scan func(...any) error) error {
		i, err = scanIntent(scan)
		return err
	}, string(id))
	return i, about(err, "intent", id)
}

// Run implements store.Reader.
func (r *reader) Run(ctx context.Context, id action.RunID) (run action.Run, err error) {
	err = one(ctx, r.run, func(scan func(...any) error) error {
		run, err = scanRun(scan)
		return err
	}, string(id))
	return run, about(err, "run", id)
}

// ContractText implements store.Reader.
func (r *reader) ContractText(ctx context.Context, digest string) (text []byte, err error) {
	err = one(ctx, r.contract, func(scan func(...any) error) error { return scan(&text) }, digest)
	return text, about(err, "contract", digest)
}

// OpenContracts implements store.Reader.
func (r *reader) OpenContracts(ctx context.Context, tool string) ([]string, error) {
	return texts(ctx, r.openContracts, tool)
}

// OpenKeys implements store.Reader.
func (r *reader) OpenKeys(ctx context.Context) ([]string, error) { return texts(ctx, r.openKeys) }

func texts(ctx context.Context, s *sql.Stmt, args ...any) (list []string, err error) {
	err = many(ctx, s, func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		list = append(list, text)
		return err
	}, args...)
	return list, err
}

// Head implements store.Reader.
func (r *reader) Head(ctx context.Context) (int64, string, error) {
	seq, hash, err := head(ctx, r.headStmt)
	switch {
	case err != nil:
		return 0, "", fmt.Errorf("read the head of the journal: %w", err)
	case seq < 0:
		return -1, "", nil
	}
	return seq, hash.String(), nil
}

// Records implements store.Reader. It reads in pieces, so that no reader holds the WAL back for long.
func (r *reader) Records(ctx context.Context, seq int64, each func(seq int64, hash [32]byte, body []byte) error) error {
	const piece = 1000
	for {
		records, err := r.piece(ctx, seq, piece)
		if err != nil {
			return fmt.Errorf("read the journal from %d: %w", seq, err)
		}
		for _, rec := range records {
			if err := each(rec.seq, rec.hash, rec.body); err != nil {
				return err
			}
			seq = rec.seq + 1
		}
		if len(records) < piece {
			return nil
		}
	}
}

// record is one line of the journal.
type record struct {
	seq  int64
	hash journal.Hash
	body []byte
}

func (r *reader) piece(ctx context.Context, from int64, limit int) ([]record, error) {
	rows, err := r.db.QueryContext(ctx, `select seq, hash, body from journal where seq >= ? order by seq limit ?`, from, limit)
	if err != nil {
		return nil, err
	}
	return scanRecords(rows)
}

func scanRecords(rows *sql.Rows) (records []record, err error) {
	defer rows.Close()
	for rows.Next() {
		var rec record
		var hash []byte
		if err := rows.Scan(&rec.seq, &hash, &rec.body); err != nil {
			return nil, err
		}
		if len(hash) != len(rec.hash) {
			return nil, fmt.Errorf("the hash of record %d has %d bytes", rec.seq, len(hash))
		}
		rec.hash = journal.Hash(hash)
		records = append(records, rec)
	}
	return records, rows.Err()
}

// about says which record an error is about.
func about[T ~string](err error, what string, id T) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s %s: %w", what, id, store.ErrNotFound)
	}
	return fmt.Errorf("read %s %s: %w", what, id, err)
}
