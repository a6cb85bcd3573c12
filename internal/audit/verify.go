package audit

import (
	"fmt"
	"io"

	"deed.dev/deed/journal"
)

// Demand is what an export is held against, from whoever verifies it. Nothing of it comes from the export.
type Demand struct {
	Policy *journal.Policy
	Kept   [][]byte // signed checkpoints that were kept elsewhere
	Whole  bool     // the journal is asked for from record 0 on

	Progress func(read, total int64) // in bytes; may be nil
}

// Verify verifies an export: a file, or the segments in a directory, with the checkpoints that lie beside them. It opens files
// for reading and changes nothing. The error is about reading only, and the Report then has exit code 4.
func Verify(path string, d Demand) (journal.Report, error) {
	unreadable := journal.Report{Unreadable: true}
	segments, err := Segments(path)
	if err != nil {
		return unreadable, err
	}
	evidence := journal.Evidence{Policy: d.Policy, Kept: d.Kept, Whole: d.Whole}
	var total int64
	readers := make([]io.Reader, len(segments))
	for i, s := range segments {
		signed, err := s.beside()
		if err != nil {
			return unreadable, fmt.Errorf("read the checkpoint beside the export: %w", err)
		}
		switch {
		case i == len(segments)-1:
			evidence.Beside = signed
		case signed != nil:
			evidence.Closed = append(evidence.Closed, signed)
		}
		o := &opener{path: s.Path}
		defer o.close()
		readers[i] = o
		total += s.Size
	}
	if d.Progress != nil {
		evidence.Progress = func(read int64) { d.Progress(read, total) }
	}
	return journal.Audit(evidence, readers...)
}
