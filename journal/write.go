package journal

import (
	"encoding/base64"
	"fmt"
	"io"
)

// AppendHeader appends the header lines of an export whose first record has the number
// from: the hash of the record before it, and the subtrees of all before, as Tree and
// Verifier return them. Without subtrees a reader can check the chain and no
// checkpoint. An export from record 0 on needs no header, and none is written.
func AppendHeader(dst []byte, origin string, from uint64, prev Hash, subtrees []Hash) ([]byte, error) {
	if !isOrigin(origin) {
		return dst, errOrigin
	}
	if _, err := NewVerifierAt(from, prev, subtrees); err != nil || from == 0 {
		return dst, err
	}
	dst = fmt.Appendf(dst, "#deed-journal/v1 %s\n#from %d\n#prev %s\n", origin, from, prev)
	if len(subtrees) > 0 {
		dst = append(dst, "#range"...)
		for _, h := range subtrees {
			dst = append(dst, ' ')
			dst = base64.StdEncoding.AppendEncode(dst, h[:])
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

// Exporter writes records as an export, in one segment or in several. It checks each
// record before it is written, so that what it has written is a journal.
type Exporter struct {
	w      io.Writer
	v      *Verifier
	origin string
	line   []byte
	failed error
}

// NewExporter begins an export at a place as NewVerifierAt does, and writes the header
// that belongs there.
func NewExporter(w io.Writer, origin string, from uint64, prev Hash, subtrees []Hash) (*Exporter, error) {
	v, err := NewVerifierAt(from, prev, subtrees)
	if err != nil {
		return nil, err
	}
	v.origin = origin
	e := &Exporter{v: v, origin: origin}
	return e, e.Rotate(w)
}

// Write writes the next record. When it is not in order the error is a *BadRecord, and
// nothing is written then or later.
func (e *Exporter) Write(r Record) error {
	if e.failed != nil {
		return e.failed
	}
	if err := e.v.Add(r.Hash, r.Body); err != nil {
		return err
	}
	e.line = AppendLine(e.line[:0], r)
	return e.write(e.line)
}

// Rotate closes a segment: the records that follow go to w, under a header of their
// own. Any number of segments may be removed later, oldest first, and the rest still
// verifies. The caller keeps the Checkpoint of this place, and syncs files and folders.
func (e *Exporter) Rotate(w io.Writer) error {
	header, err := AppendHeader(nil, e.origin, e.v.next, e.v.head, e.v.Subtrees())
	if err != nil {
		return err
	}
	e.w = w
	return e.write(header)
}

func (e *Exporter) write(text []byte) error {
	if _, err := e.w.Write(text); err != nil {
		e.failed = fmt.Errorf("write the export at record %d: %w", e.v.next, err)
	}
	return e.failed
}

// Checkpoint returns the checkpoint of all that was written, to be signed and put
// beside it. ok is false where the export began without subtrees.
func (e *Exporter) Checkpoint() (c Checkpoint, ok bool) {
	if e.v.noTree {
		return c, false
	}
	return Checkpoint{e.origin, e.v.next, e.v.root()}, true
}
