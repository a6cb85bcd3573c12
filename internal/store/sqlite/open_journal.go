package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
)

// tailLength is how many records are checked when a store is opened. The whole journal is another command's work.
const tailLength = 1000

// openJournal finds the end of the journal and checks it, or writes record 0.
func (w *writer) openJournal(ctx context.Context, opts Options) error {
	origin := opts.Origin
	seq, hash, err := w.headNow(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the head of the journal: %w", err)
	case seq < 0:
		return w.beginJournal(ctx, origin, opts.Key)
	}
	stated, err := w.origin(ctx)
	if err != nil {
		return err
	}
	if origin != "" && origin != stated {
		return fmt.Errorf("the journal in %s is %s, not %s", w.path, stated, origin)
	}
	last, err := w.checkTail(ctx, seq)
	if err != nil {
		return fmt.Errorf("the end of the journal is damaged, so nothing is written to it: %w", err)
	}
	if err := w.checkRows(ctx, seq); err != nil {
		return err
	}
	w.newest, w.ledger.end = last, hash
	if w.ledger.chain, err = journal.ResumeChain(stated, uint64(seq)+1, hash); err != nil {
		return err
	}
	return w.openTree(ctx, uint64(seq)+1)
}

func (w *writer) headNow(ctx context.Context) (int64, journal.Hash, error) {
	p := &statements{from: w.conn}
	s := p.prepare(headQuery)
	if p.err != nil {
		return 0, journal.Hash{}, p.err
	}
	defer s.Close()
	return head(ctx, s)
}

func (w *writer) beginJournal(ctx context.Context, origin string, key func(string) (string, error)) (err error) {
	if origin == "" { // nobody named it: a name that no other journal has
		origin = "deed.local/" + strings.ToLower(rand.Text())
	}
	l := w.ledger
	if l.chain, err = journal.NewChain(origin); err != nil {
		return fmt.Errorf("begin a journal named %q: %w", origin, err)
	}
	w.newest = eventlog.Micro(w.now())
	fields := map[string]any{"time": w.newest}
	if key != nil {
		named, err := key(origin)
		if err != nil {
			return fmt.Errorf("the key of a new journal: %w", err)
		}
		fields[eventlog.LogKeyMember] = named
	}
	rec, err := l.chain.Open(fields)
	if err != nil {
		return fmt.Errorf("begin the journal: %w", err)
	}
	l.add(0, rec)
	if err := w.inTransaction(func() error { return errors.Join(l.store(), w.keys.add(0, rec.Body)) }); err != nil {
		return err
	}
	l.chain.Commit()
	return ctx.Err()
}

// origin reads the name that record 0 gives to the journal.
func (w *writer) origin(ctx context.Context) (string, error) {
	rows, err := w.conn.QueryContext(ctx, `select seq, hash, body from journal where seq = 0`)
	if err != nil {
		return "", fmt.Errorf("read record 0: %w", err)
	}
	records, err := scanRecords(rows)
	if err != nil {
		return "", fmt.Errorf("read record 0: %w", err)
	}
	return originOf(records)
}

// originOf takes the name out of record 0, which is the first of records.
func originOf(records []record) (string, error) {
	if len(records) == 0 {
		return "", errors.New("the journal has no record 0")
	}
	var v journal.Verifier
	if err := v.Add(records[0].hash, records[0].body); err != nil {
		return "", fmt.Errorf("the journal is damaged: %w", err)
	}
	return v.Result().Origin, nil
}

// checkTail verifies the last records, and gives the time of the newest.
func (w *writer) checkTail(ctx context.Context, last int64) (time.Time, error) {
	from := max(0, last-tailLength+1)
	rows, err := w.conn.QueryContext(ctx, `select seq, hash, body from journal where seq >= ? order by seq`, max(0, from-1))
	if err != nil {
		return time.Time{}, err
	}
	records, err := scanRecords(rows)
	if err != nil {
		return time.Time{}, err
	}
	var before journal.Hash
	if from > 0 {
		if records[0].seq != from-1 {
			return time.Time{}, fmt.Errorf("record %d is missing", from-1)
		}
		before, records = records[0].hash, records[1:]
	}
	v, err := journal.NewVerifierAt(uint64(from), before, nil)
	if err != nil {
		return time.Time{}, err
	}
	for i, rec := range records {
		if rec.seq != from+int64(i) {
			return time.Time{}, fmt.Errorf("record %d is missing", from+int64(i))
		}
		if err := v.Add(rec.hash, rec.body); err != nil {
			return time.Time{}, err
		}
	}
	return timeOf(records[len(records)-1].body)
}

func timeOf(body []byte) (time.Time, error) {
	var stamped struct{ Time string }
	if err := json.Unmarshal(body, &stamped); err != nil {
		return time.Time{}, err
	}
	return journal.ParseTime(stamped.Time)
}

// checkRows refuses rows that tell of records which the journal no longer has: somebody cut it.
func (w *writer) checkRows(ctx context.Context, last int64) error {
	var newest int64
	err := w.conn.QueryRowContext(ctx, `select max(coalesce((select max(seq) from actions), 0), coalesce((select max(seq) from calls), 0))`).
		Scan(&newest)
	if err != nil {
		return fmt.Errorf("read the newest rows: %w", err)
	}
	if newest > last {
		return fmt.Errorf("rows were made from record %d, and the journal ends at %d: it was cut", newest, last)
	}
	return nil
}
