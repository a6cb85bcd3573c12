package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

// Desk is where a journal is handed out: by the gateway that writes it, or by a program that reads its files.
type Desk struct {
	Log     *Log
	Records Records
	Events  Events
	Names   Names // its keys; NameKey may refuse where there is nobody to write
}

// Export writes records as they are stored.
func (d Desk) Export(ctx context.Context, to io.Writer, span Span) (Exported, error) {
	return Export(ctx, d.Records, to, span)
}

// Checkpoint gives the signed checkpoint of the records before size, 0 for all.
func (d Desk) Checkpoint(ctx context.Context, size uint64) ([]byte, error) {
	if size > 0 {
		return d.Log.At(ctx, size)
	}
	head, err := d.Log.Keep(ctx)
	return head.Signed, err
}

// Receipt gives the receipt of an action as it stands.
func (d Desk) Receipt(ctx context.Context, id action.ID) ([]byte, error) {
	return d.Log.Receipt(ctx, d.Events, id)
}

// Verify verifies what is stored, from record 0 on, as if it had just been exported with a checkpoint beside it. It does not
// replace verifying an export elsewhere: who holds the journal holds this program too.
func (d Desk) Verify(ctx context.Context) (Report, error) {
	signed, err := d.Checkpoint(ctx, 0)
	if err != nil {
		return Report{}, err
	}
	head, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return Report{}, err
	}
	read, write := io.Pipe()
	go func() {
		_, err := d.Export(ctx, write, Span{End: head.Size})
		write.CloseWithError(err)
	}()
	r, err := journal.Audit(journal.Evidence{Policy: journal.TrustLogs(d.Log.Keys()...), Beside: signed, Whole: true}, read)
	read.CloseWithError(errEnd) // the first bad record ends the reading before the writing
	return ReportOf(r), err
}

// KeyInUse is one key of the log.
type KeyInUse struct {
	Key   string `json:"key"`             // the public key as a C2SP vkey
	Since *int64 `json:"since,omitempty"` // the record that names it; absent when none does
	Signs bool   `json:"signs"`           // it is the one in use
}

// Keys lists the keys of the log, the one in use first.
func (d Desk) Keys(ctx context.Context) ([]KeyInUse, error) {
	named, err := d.Names.LogKeys(ctx)
	if err != nil {
		return nil, err
	}
	list := []KeyInUse{}
	for i, key := range d.Log.Keys() {
		k := KeyInUse{Key: key.String(), Signs: i == 0}
		for _, n := range named {
			if n.Key == k.Key {
				k.Since = &n.Seq
			}
		}
		list = append(list, k)
	}
	return list, nil
}

// Rotated is what came of a rotation.
type Rotated struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	Checkpoint string `json:"checkpoint"` // signed by both
}

// Rotate lets a new key sign from now on.
func (d Desk) Rotate(ctx context.Context) (Rotated, error) {
	r, err := d.Log.Rotate(ctx, d.Names)
	if err != nil {
		return Rotated{}, err
	}
	return Rotated{r.Old.String(), r.New.String(), string(r.Checkpoint)}, nil
}

// ReadOnly is Names where there is nobody to write.
type ReadOnly struct {
	Keys interface {
		LogKeys(ctx context.Context) ([]store.LogKey, error)
	}
}

// LogKeys lists the keys that the journal has named.
func (r ReadOnly) LogKeys(ctx context.Context) ([]store.LogKey, error) { return r.Keys.LogKeys(ctx) }

// NameKey refuses.
func (ReadOnly) NameKey(context.Context, string) error {
	return fmt.Errorf("nothing was changed: %w", errors.ErrUnsupported)
}
