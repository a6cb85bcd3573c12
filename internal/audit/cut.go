package audit

import (
	"context"
	"fmt"
	"time"

	"deed.dev/deed/journal"
)

// How long records may be there before a checkpoint of them is kept beside the key: whatever comes first.
const (
	cutAfter   = time.Second
	cutRecords = 1000
)

// Size is how many records are durable. It is cheap where the records say so cheaply, as those of a running gateway do.
func (l *Log) Size() int64 {
	if counted, ok := l.records.(interface{ Size() int64 }); ok {
		return counted.Size()
	}
	top, err := l.records.Top(context.Background())
	if err != nil {
		return 0
	}
	return int64(top.Size)
}

// Head signs a checkpoint of all records that are durable. One that was signed for the same size is given again.
func (l *Log) Head(ctx context.Context) (Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signTop(ctx)
}

func (l *Log) signTop(ctx context.Context) (Head, error) {
	cut := l.now()
	top, err := l.records.Top(ctx)
	if err != nil {
		return Head{}, err
	}
	if l.last.Signed != nil && l.last.Checkpoint == top {
		h := l.last
		h.Time = cut // nothing has come since, so it is as good as new
		return h, nil
	}
	if top.Size < l.last.Size {
		return Head{}, fmt.Errorf("%w: %d records were signed, and %d are there", ErrShorter, l.last.Size, top.Size)
	}
	signed, err := journal.SignCheckpoint(top, l.keys.Signer())
	if err != nil {
		return Head{}, err
	}
	l.last = l.head(top, signed)
	l.last.Time = cut
	return l.last, nil
}

func (l *Log) head(c journal.Checkpoint, signed []byte) Head {
	return Head{Checkpoint: c, Signed: signed, Prove: func(ctx context.Context, old uint64) ([]journal.Hash, error) {
		if old == 0 || old == c.Size {
			return nil, nil
		}
		return journal.ProveConsistency(old, c.Size, l.records.Tree(ctx))
	}}
}

// At signs a checkpoint of an earlier size, for an export that ends there. The newest one must continue it, so that nothing is
// signed that contradicts what was.
func (l *Log) At(ctx context.Context, size uint64) ([]byte, error) {
	head, err := l.Keep(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case size == head.Size:
		return head.Signed, nil
	case size > head.Size || size == 0:
		return nil, fmt.Errorf("%w: the journal has %d records, so there is no checkpoint of %d", ErrOutside, head.Size, size)
	}
	tree, err := journal.LoadTree(size, l.records.Tree(ctx))
	if err != nil {
		return nil, err
	}
	earlier := journal.Checkpoint{Origin: head.Origin, Size: size, Root: tree.Root()}
	proof, err := head.Prove(ctx, size)
	if err != nil {
		return nil, err
	}
	if err := journal.CheckConsistency(proof, earlier, head.Checkpoint); err != nil {
		return nil, fmt.Errorf("the stored tree is damaged, so nothing was signed: %w", err)
	}
	return journal.SignCheckpoint(earlier, l.keys.Signer())
}

// Keep signs a checkpoint of all records that are durable, and remembers it beside the key before anybody sees it: what an
// outsider holds, the journal is held against at the next start.
func (l *Log) Keep(ctx context.Context) (Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head, err := l.signTop(ctx)
	if err != nil {
		return Head{}, err
	}
	return head, l.remember(head)
}

// remember writes the checkpoint down unless it, or a newer one of another process, stands there already.
func (l *Log) remember(head Head) error {
	signed, kept, err := l.keys.Remembered()
	if err != nil {
		return err
	}
	if signed != nil && kept.Size >= head.Size {
		return nil
	}
	return l.keys.Remember(head.Signed)
}

// Grown tells the log that records were committed. It does not block.
func (l *Log) Grown() {
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// Run keeps a checkpoint a second after the first record that none covers, or after a thousand records, until ctx ends. It
// sleeps while nothing happens. The last checkpoint is for the caller to keep, after the last record.
func (l *Log) Run(ctx context.Context) {
	due := time.NewTimer(cutAfter)
	due.Stop()
	kept, waits := l.Size(), false
	for {
		cut := false
		select {
		case <-ctx.Done():
			due.Stop()
			return
		case <-due.C:
			cut = true
		case <-l.grown:
			switch {
			case l.Size() >= kept+cutRecords:
				cut = true
			case !waits && l.Size() > kept:
				waits = true
				due.Reset(cutAfter)
			}
		}
		if !cut {
			continue
		}
		due.Stop()
		waits = false
		head, err := l.Keep(ctx)
		if err != nil {
			l.log.Error("no checkpoint of the journal could be kept", "error", err)
			continue
		}
		kept = int64(head.Size)
	}
}
