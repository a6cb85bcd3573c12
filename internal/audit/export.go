package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"deed.dev/deed/journal"
)

// ErrOutside means that records were asked for which the journal does not have.
var ErrOutside = errors.New("nothing was handed out")

// Span are the records from From on, and before End. An End of 0 means all that are there.
type Span struct{ From, End uint64 }

// Exported is what was written.
type Exported struct {
	Origin string
	Span

	// Bad is the first record that is not in order. It was written as it is stored, like all others.
	Bad *journal.BadRecord
}

// Export writes records byte for byte as they are stored, with a header when the first one is not record 0. It does not
// leave out what is damaged, since that is evidence, but it says so.
func Export(ctx context.Context, r Records, to io.Writer, span Span) (Exported, error) {
	top, err := r.Top(ctx)
	if err != nil {
		return Exported{}, err
	}
	if span.End == 0 {
		span.End = top.Size
	}
	done := Exported{Origin: top.Origin, Span: span}
	if span.From >= span.End || span.End > top.Size {
		return done, fmt.Errorf("%w: the journal has the records 0 to %d, so there is nothing from %d to %d", ErrOutside, top.Size-1, span.From, span.End-1)
	}
	tree, err := journal.LoadTree(span.From, r.Tree(ctx))
	if err != nil {
		return done, err
	}
	prev, err := hashBefore(ctx, r, span.From)
	if err != nil {
		return done, err
	}
	header, err := journal.AppendHeader(nil, top.Origin, span.From, prev, tree.Subtrees())
	if err != nil {
		return done, err
	}
	if _, err := to.Write(header); err != nil {
		return done, err
	}
	v, err := journal.NewVerifierAt(span.From, prev, tree.Subtrees())
	if err != nil {
		return done, err
	}
	var line []byte
	err = r.Records(ctx, int64(span.From), func(seq int64, hash [32]byte, body []byte) error {
		if uint64(seq) >= span.End {
			return errEnd
		}
		var bad *journal.BadRecord
		if err := v.Add(hash, body); done.Bad == nil && errors.As(err, &bad) {
			done.Bad = bad
		}
		line = journal.AppendLine(line[:0], journal.Record{Hash: hash, Body: body})
		_, err := to.Write(line)
		return err
	})
	if errors.Is(err, errEnd) {
		err = nil
	}
	if written := v.Result().RecordsChecked; err == nil && done.Bad == nil && written != span.End-span.From {
		done.Bad = &journal.BadRecord{Sequence: span.From + written, Reason: journal.ReasonMissing, ObservedSequence: span.End}
	}
	return done, err
}
