// Package anchor brings checkpoints of the journal to places outside the gateway, and bounds what is not there yet.
//
//	journal ─▶ Head ─▶ place (witness, directory, git, object storage) ─▶ Memory
//	              ╰──▶ place …                                               │
//	new send ─▶ Gate: may there be one more record that nobody outside has? ◀┘
//
// A place never holds an action up. It is the bound that does, and only for what is new: what was sent is finished and
// recorded whatever the places do.
//
// The package refuses to know what is in a record, how the journal is stored, and what a place is made of.
package anchor

import (
	"context"
	"fmt"
	"time"

	"deed.dev/deed/journal"
)

// Log is the journal that is anchored.
type Log interface {
	// Size is how many records are durable. It is cheap and does not wait.
	Size() int64
	// Head signs a checkpoint of all records that are durable.
	Head(ctx context.Context) (Head, error)
}

// Head is a signed checkpoint, and a way to prove what it continues.
type Head struct {
	journal.Checkpoint
	Signed []byte    // the note, with the signature of the log
	Time   time.Time // when it was cut: every record after it is younger

	// Prove returns the hashes that show that the journal began as the journal of old records. old is more than 0 and less
	// than Size.
	Prove func(ctx context.Context, old uint64) ([]journal.Hash, error)
}

// Proof returns the hashes that lead from any earlier size, or from the same, to the head. To begin, and to stay, takes none.
func (h Head) Proof(ctx context.Context, old uint64) ([]journal.Hash, error) {
	if old == 0 || old >= h.Size {
		return nil, nil
	}
	hashes, err := h.Prove(ctx, old)
	if err != nil {
		return nil, fmt.Errorf("prove that the journal continues its %d first records: %w", old, err)
	}
	return hashes, nil
}
