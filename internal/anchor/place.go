package anchor

import (
	"context"
	"fmt"
	"time"

	"deed.dev/deed/journal"
)

// Place keeps checkpoints where the writer of the journal cannot change them, or at least not unseen. One call at a time is
// made to a place, and each ends with its context.
type Place interface {
	// Name tells it apart from other places.
	Name() string
	// Check says whether the journal continues what the place holds. The error is a *ConflictError when it does not;
	// with any other error the place could not be asked.
	Check(ctx context.Context, head Head) error
	// Keep brings the head there. When it returns nil the place has it and will show it to a later Check. lines are what
	// a witness has signed.
	Keep(ctx context.Context, head Head) (lines []byte, err error)
}

// Sink is a place and how often it is brought a checkpoint, if there is anything new.
type Sink struct {
	Place Place
	Kind  string // for people: witness, file, directory, git, s3
	Every time.Duration
}

// ConflictError says that a place holds a checkpoint that the journal does not continue: the journal was cut, put back to an
// older state, or rewritten.
type ConflictError struct {
	Place string
	Held  uint64 // size of the checkpoint that the place holds
	Size  uint64 // size of the journal
}

func (e *ConflictError) Error() string {
	if e.Held > e.Size {
		return fmt.Sprintf("%s holds a checkpoint of %d records, and the journal has %d: it was cut or put back to an older state", e.Place, e.Held, e.Size)
	}
	return fmt.Sprintf("%s holds a checkpoint of %d records that are not those of the journal: it was rewritten", e.Place, e.Held)
}

// Continues says whether the head continues a checkpoint that a place holds. The error is a *ConflictError when it does not.
func Continues(ctx context.Context, place string, held journal.Checkpoint, head Head) error {
	conflict := &ConflictError{Place: place, Held: held.Size, Size: head.Size}
	if held.Origin != head.Origin || held.Size > head.Size {
		return conflict
	}
	proof, err := head.Proof(ctx, held.Size)
	if err != nil {
		return err
	}
	if journal.CheckConsistency(proof, held, head.Checkpoint) != nil {
		return conflict
	}
	return nil
}
