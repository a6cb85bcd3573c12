// Package witness is a witness of C2SP tlog-witness: it signs that it has seen the checkpoint of a log, if the log has only
// grown since the last one that it signed.
//
//	add-checkpoint ─▶ known log? ─▶ its signature? ─▶ same old size? ─▶ consistent? ─▶ remember ─▶ cosign
//	                    404            403               409              422          durable
//
// It keeps the size and the root of each log and nothing else. It refuses to know what is in a log, whether it is true, and
// whose log it is: any log of the same format may be watched, and the gateway is not needed.
package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"deed.dev/deed/journal"
)

// Witness answers requests to cosign. Make one with Open.
type Witness struct {
	cosigner *journal.Cosigner
	logs     *journal.Policy
	store    *store
	now      func() time.Time
	log      *slog.Logger
}

// Key returns the public key, which those who trust the witness need.
func (w *Witness) Key() journal.Key { return w.cosigner.Key() }

// Close lets another process have the directory.
func (w *Witness) Close() error { return w.store.close() }

// The reasons for which nothing is signed. A *ConflictError is another one.
var (
	ErrMalformed = errors.New("this is no request to cosign: an old size, hashes, an empty line and a signed checkpoint")
	ErrShrinks   = errors.New("the old size is larger than the checkpoint")
	ErrUnknown   = errors.New("this witness does not know the log")
	ErrUnsigned  = errors.New("the checkpoint is not signed by the log")
	ErrProof     = errors.New("the proof does not lead from the last checkpoint seen to this one")
)

// ConflictError says that the log is not where the request takes it to be.
type ConflictError struct {
	Size  uint64 // of the last checkpoint that this witness has cosigned
	Fork  bool   // the same size with another root: the log has shown two histories
	Asked uint64
}

func (e *ConflictError) Error() string {
	if e.Fork {
		return fmt.Sprintf("another root was cosigned at size %d: the log has two histories", e.Size)
	}
	return fmt.Sprintf("the last checkpoint cosigned has size %d, and the proof begins at %d", e.Size, e.Asked)
}

// AddCheckpoint cosigns a checkpoint if it continues the last one, and returns the signature line. What it has signed is
// durable before it signs it, so neither a crash nor a race can make it sign two histories.
func (w *Witness) AddCheckpoint(ctx context.Context, body []byte) (line []byte, err error) {
	r, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	head, err := w.open(r.signed)
	if err != nil {
		return nil, err
	}
	if r.old > head.Size {
		return nil, ErrShrinks
	}
	err = w.store.advance(ctx, head.Checkpoint, func(seen journal.Checkpoint) error {
		return continues(seen, head.Checkpoint, r)
	})
	var conflict *ConflictError
	if errors.As(err, &conflict) && conflict.Fork || errors.Is(err, ErrProof) { // the log has signed it, so this is evidence against it
		w.log.Warn("a log shows a history that does not continue what it showed before", "origin", head.Origin, "size", head.Size, "checkpoint", string(r.signed), "error", err)
	}
	if err != nil {
		return nil, err
	}
	return w.cosigner.Cosign(r.signed, w.now())
}

// open checks that a log that is known has signed the checkpoint.
func (w *Witness) open(signed []byte) (journal.Opened, error) {
	said, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return journal.Opened{}, ErrMalformed
	}
	if !w.knows(said.Origin) {
		return journal.Opened{}, ErrUnknown
	}
	opened, err := w.logs.Open(signed)
	if err != nil {
		return journal.Opened{}, ErrUnsigned
	}
	return opened, nil
}

func (w *Witness) knows(origin string) bool {
	for _, log := range w.logs.Logs {
		if log.Name() == origin {
			return true
		}
	}
	return false
}

// continues decides whether a checkpoint may follow the one that was seen last.
func continues(seen, head journal.Checkpoint, r request) error {
	if r.old != seen.Size {
		return &ConflictError{Size: seen.Size, Asked: r.old}
	}
	if head.Size == seen.Size && head.Root != seen.Root {
		return &ConflictError{Size: seen.Size, Asked: r.old, Fork: true}
	}
	if journal.CheckConsistency(r.proof, seen, head) != nil {
		return ErrProof
	}
	return nil
}
