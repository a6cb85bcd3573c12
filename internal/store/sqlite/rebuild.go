package sqlite

import (
	"context"
	"errors"
	"fmt"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
)

// projections are the tables that events make, children before what they refer to.
var projections = []string{"content_reads", "approval_decisions", "approvals", "attempts", "observations", "results", "calls", "actions", "intents", "runs", "tree", "log_keys"}

// Rebuild empties every table that is made from events and makes it again from the journal, all in one transaction.
// Payloads and contract texts stay: the journal holds no more than commitments to them.
func (s *Store) Rebuild(ctx context.Context) error {
	return s.wait(ctx, &job{
		change: func(t store.Tx) error { return t.(*tx).rebuild() },
		apart:  true,
		done:   make(chan struct{}),
	})
}

func (t *tx) rebuild() error {
	triggers, err := t.liftTriggers()
	if err != nil {
		return t.note(fmt.Errorf("rebuild: %w", err))
	}
	for _, table := range projections {
		if err := t.exec(`delete from ` + table); err != nil {
			return fmt.Errorf("rebuild: empty %s: %w", table, err)
		}
	}
	t.w.rows.forget()
	if err := t.note(t.regrow()); err != nil {
		return fmt.Errorf("rebuild the tree: %w", err)
	}
	if err := t.replay(); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	for _, sql := range triggers {
		if err := t.exec(sql); err != nil {
			return fmt.Errorf("rebuild: %w", err)
		}
	}
	t.w.written++
	return nil
}

func (t *tx) exec(sql string) error {
	_, err := t.w.conn.ExecContext(background, sql)
	return t.note(err)
}

// liftTriggers removes the triggers against deleting rows and gives back their text. Should anything fail before they
// stand again, the savepoint restores them.
func (t *tx) liftTriggers() (texts []string, err error) {
	rows, err := t.w.conn.QueryContext(background, `select name, sql from sqlite_schema where type = 'trigger' and name like 'kept\_%' escape '\'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		names, texts = append(names, name), append(texts, text)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := t.exec(`drop trigger ` + name); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// replay makes the rows of every event in the journal, piece by piece.
func (t *tx) replay() error {
	const piece = 1000
	for next := int64(0); ; {
		rows, err := t.w.conn.QueryContext(background, `select seq, hash, body from journal where seq >= ? order by seq limit ?`, next, piece)
		if err := t.note(err); err != nil {
			return err
		}
		records, err := scanRecords(rows)
		if err := t.note(err); err != nil {
			return err
		}
		for _, rec := range records {
			if err := t.replayOne(rec); err != nil {
				return fmt.Errorf("record %d: %w", rec.seq, err)
			}
		}
		if len(records) < piece {
			return nil
		}
		next = records[len(records)-1].seq + 1
		t.w.rows.forget()
	}
}

func (t *tx) replayOne(rec record) error {
	read, err := eventlog.Decode(rec.body)
	if errors.Is(err, eventlog.ErrNoEvent) { // about the journal itself
		return t.note(t.w.keys.add(rec.seq, rec.body))
	}
	if err != nil {
		return err
	}
	s, err := t.w.rows.prepare(read.Event)
	if err := t.note(err); err != nil {
		return err
	}
	return t.note(t.w.rows.write(s, place{rec.seq, rec.hash}))
}

// regrow makes the tree again from the hashes of the records.
func (t *tx) regrow() error {
	g, size := t.w.ledger.grower, t.w.ledger.chain.Size()
	before := g.tree
	g.tree = journal.Tree{}
	for g.tree.Size() < size {
		if err := t.w.growTree(background, 20_000); err != nil {
			g.tree = before
			return err
		}
	}
	return nil
}
