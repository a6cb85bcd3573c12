package sqlite

import (
	"database/sql"
	"fmt"
	"math/bits"
	"strings"

	"deed.dev/deed/journal"
)

// ledger is the end of the journal while it is written. Records of a batch are kept here and stored right before the
// commit, in the transaction of their rows: a change that fails then takes nothing back from the largest table, and
// records go in by the dozen.
type ledger struct {
	chain   *journal.Chain
	end     journal.Hash // of the newest record, those not stored yet included
	pending []pending
	insert  []*sql.Stmt // of 1, 2, 4 … records
	grower  *grower
}

// pending is a record that waits to be stored.
type pending struct {
	seq  int64
	prev journal.Hash
	journal.Record
}

// place is where a record stands.
type place struct {
	seq  int64
	hash journal.Hash
}

// mark is a point to which the ledger can go back.
type mark struct {
	chain   journal.Mark
	end     journal.Hash
	pending int
}

func prepareLedger(p *statements) *ledger {
	l := &ledger{grower: prepareGrower(p)}
	for n := 1; n <= 16; n *= 2 {
		l.insert = append(l.insert, p.prepare(`insert into journal (seq, prev, hash, body) values (?, ?, ?, ?)`+strings.Repeat(`, (?, ?, ?, ?)`, n-1)))
	}
	return l
}

// next makes the next record of the journal. Its error is a body that the format does not allow.
func (l *ledger) next(body map[string]any) (place, error) {
	at := place{seq: int64(l.chain.Size()) + int64(l.chain.Pending())}
	rec, err := l.chain.Next(body)
	if err != nil {
		return place{}, err
	}
	l.add(at.seq, rec)
	at.hash = rec.Hash
	return at, nil
}

func (l *ledger) add(seq int64, rec journal.Record) {
	l.pending = append(l.pending, pending{seq, l.end, rec})
	l.end = rec.Hash
}

func (l *ledger) mark() mark { return mark{l.chain.Mark(), l.end, len(l.pending)} }

func (l *ledger) reset(m mark) {
	l.chain.Reset(m.chain)
	clear(l.pending[m.pending:])
	l.end, l.pending = m.end, l.pending[:m.pending]
}

// store writes what is pending. A record that finds its place taken means that somebody else writes this journal: like
// every error here it ends the writing.
func (l *ledger) store() error {
	added := make([]journal.Hash, len(l.pending))
	for i := range l.pending {
		added[i] = l.pending[i].Hash
	}
	for rest := l.pending; len(rest) > 0; {
		size := min(bits.Len(uint(len(rest))), len(l.insert)) - 1
		n := 1 << size
		args := make([]any, 0, 4*n)
		for i := range rest[:n] {
			r := &rest[i]
			args = append(args, r.seq, r.prev[:], r.Hash[:], r.Body)
		}
		if _, err := l.insert[size].ExecContext(background, args...); err != nil {
			return fmt.Errorf("write the journal from record %d: %w", rest[0].seq, err)
		}
		rest = rest[n:]
	}
	if err := l.grower.add(added); err != nil {
		return err
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	return nil
}
