// Package places has the places for checkpoints: witnesses, files, directories, git repositories and object storage, and the file
// that lists them.
//
// It refuses to know how often a checkpoint is cut and what follows when a place cannot be reached: that is anchor's.
package places

import (
	"context"
	"fmt"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// holds says whether the head continues a checkpoint that was found at a place. One that no key of the journal has signed is
// an error, and not a place that holds nothing: whoever put it there may have put it over another.
func holds(ctx context.Context, place string, keys []journal.Key, found []byte, head anchor.Head) error {
	opened, err := journal.TrustLogs(keys...).Open(found)
	if err != nil {
		return fmt.Errorf("what lies in %s under the name of the newest checkpoint is none of this journal: %w", place, err)
	}
	return anchor.Continues(ctx, place, opened.Checkpoint, head)
}

// maxCheckpoint bounds what is read as a checkpoint, in bytes.
const maxCheckpoint = 128 << 10
