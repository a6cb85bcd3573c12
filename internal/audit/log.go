package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deed.dev/deed/internal/logkey"
	"deed.dev/deed/journal"
)

// Records is what is read of a journal.
type Records interface {
	// Top is the head of the journal as far as it is durable, unsigned.
	Top(ctx context.Context) (journal.Checkpoint, error)
	// Tree gives the stored hashes of its tree.
	Tree(ctx context.Context) journal.HashReader
	// Records calls each with the records from seq on, in order, until it returns an error.
	Records(ctx context.Context, seq int64, each func(seq int64, hash [32]byte, body []byte) error) error
}

// Log signs the checkpoints of a journal, and remembers the newest one beside its key. It may be used by several goroutines.
type Log struct {
	records Records
	keys    *logkey.Dir
	now     func() time.Time
	log     *slog.Logger
	grown   chan struct{}

	mu   sync.Mutex
	last Head // the newest that was signed
}

// Head is a signed checkpoint, and a way to prove what it continues.
type Head struct {
	journal.Checkpoint
	Signed []byte    // the note, with the signature of the log
	Time   time.Time // when it was cut: every record after it is younger

	// Prove returns the hashes that show that the journal began as the journal of old records; none for 0 and for the size
	// itself.
	Prove func(ctx context.Context, old uint64) ([]journal.Hash, error)
}

// Options are the parts of a Log.
type Options struct {
	Records Records
	Keys    *logkey.Dir
	Now     func() time.Time // nil means time.Now
	Log     *slog.Logger     // nil means silence
}

// ErrShorter means that the journal has fewer records than were signed before.
var ErrShorter = errors.New("the journal is shorter than it was")

// ErrRewritten means that the journal has other records than those that were signed before.
var ErrRewritten = errors.New("the journal has other records than it had")

// OpenLog makes a Log after holding the journal against the newest checkpoint that was signed: a journal that was cut or
// written anew since then gets no new one, which would hide it. Records after that checkpoint are verified.
func OpenLog(ctx context.Context, o Options) (*Log, error) {
	l := &Log{records: o.Records, keys: o.Keys, now: o.Now, log: o.Log, grown: make(chan struct{}, 1)}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	top, err := l.records.Top(ctx)
	if err != nil {
		return nil, err
	}
	if origin := l.keys.Signer().Origin(); origin != top.Origin {
		return nil, fmt.Errorf("the key in %s is the one of the journal %s, and this journal is %s: give the right key_dir",
			l.keys.Path(), origin, top.Origin)
	}
	signed, opened, err := l.keys.Remembered()
	if err != nil {
		return nil, fmt.Errorf("%w\nNothing was started: without it a journal that was cut could not be told from a whole one. Restore the "+
			"file from its backup; or, when you know that the journal is whole, remove it", err)
	}
	if signed == nil {
		return l, nil
	}
	if err := l.continues(ctx, opened.Checkpoint, top); err != nil {
		return nil, err
	}
	l.last = l.head(opened.Checkpoint, signed)
	return l, nil
}

// continues makes sure that the journal goes on from a checkpoint that was signed earlier.
func (l *Log) continues(ctx context.Context, signed, top journal.Checkpoint) error {
	const advice = "\nNothing was started, and no checkpoint was signed, since a new one would hide what happened. " +
		"Keep the files as they are for an investigation, and restore deed.db from a copy that has all of its records"
	switch {
	case signed.Origin != top.Origin:
		return fmt.Errorf("the newest checkpoint in %s is of the journal %s, and this is %s", l.keys.Path(), signed.Origin, top.Origin)
	case signed.Size > top.Size:
		return fmt.Errorf("%w: %d records were signed, and %d are there, so the last %d were cut off%s",
			ErrShorter, signed.Size, top.Size, signed.Size-top.Size, advice)
	}
	tree, err := journal.LoadTree(signed.Size, l.records.Tree(ctx))
	if err == nil && tree.Root() == signed.Root {
		return l.verifyAfter(ctx, tree, top, advice)
	}
	whole, scanErr := l.rootOf(ctx, signed.Size)
	switch {
	case scanErr != nil:
		return scanErr
	case whole != signed.Root:
		return fmt.Errorf("%w: the first %d do not have the root that was signed%s", ErrRewritten, signed.Size, advice)
	}
	return errors.New("the journal is whole, but the stored tree beside it is damaged: empty the table tree in deed.db, and it is made again at the next start")
}

// verifyAfter checks the records that no checkpoint covers yet.
func (l *Log) verifyAfter(ctx context.Context, tree journal.Tree, top journal.Checkpoint, advice string) error {
	from := tree.Size()
	prev, err := l.hashBefore(ctx, from)
	if err != nil {
		return err
	}
	v, err := journal.NewVerifierAt(from, prev, tree.Subtrees())
	if err != nil {
		return err
	}
	err = l.records.Records(ctx, int64(from), func(seq int64, hash [32]byte, body []byte) error {
		if uint64(seq) >= top.Size {
			return errEnd
		}
		return v.Add(hash, body)
	})
	var bad *journal.BadRecord
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %w%s", ErrRewritten, bad, advice)
	case err != nil && !errors.Is(err, errEnd):
		return err
	}
	if found := v.Result(); found.Root != top.Root {
		return errors.New("the stored tree does not belong to the records: empty the table tree in deed.db, and it is made again at the next start")
	}
	return nil
}

var errEnd = errors.New("far enough")

// hashBefore gives the hash of the record before from, zero for record 0.
func (l *Log) hashBefore(ctx context.Context, from uint64) (hash journal.Hash, err error) {
	return hashBefore(ctx, l.records, from)
}

func hashBefore(ctx context.Context, r Records, from uint64) (hash journal.Hash, err error) {
	if from == 0 {
		return hash, nil
	}
	err = r.Records(ctx, int64(from-1), func(seq int64, h [32]byte, _ []byte) error {
		if uint64(seq) != from-1 {
			return fmt.Errorf("record %d is missing", from-1)
		}
		hash = h
		return errEnd
	})
	if errors.Is(err, errEnd) {
		return hash, nil
	}
	if err == nil {
		err = fmt.Errorf("record %d is missing", from-1)
	}
	return hash, err
}

// rootOf computes the root of the first records without the stored tree.
func (l *Log) rootOf(ctx context.Context, size uint64) (journal.Hash, error) {
	var tree journal.Tree
	err := l.records.Records(ctx, 0, func(_ int64, hash [32]byte, _ []byte) error {
		if tree.Size() == size {
			return errEnd
		}
		tree.Add(hash)
		return nil
	})
	if err != nil && !errors.Is(err, errEnd) {
		return journal.Hash{}, err
	}
	return tree.Root(), nil
}
