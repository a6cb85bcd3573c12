package graph

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"deed.dev/deed/journal"
)

// Export reads the records of an exported journal, whose first record has the number first: what journal.Verify says of
// the file. It does not verify anything itself.
func Export(file io.ReadSeeker, first int64) Source {
	return func(each func(int64, []byte) error) error {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		const hash = 64 + len(" ")
		lines := bufio.NewReaderSize(file, hash+journal.MaxBody+len("\n"))
		seq := first
		for {
			line, err := lines.ReadSlice('\n')
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return nil
			}
			if err != nil {
				return fmt.Errorf("after record %d: %w", seq-1, err)
			}
			if line[0] == '#' && seq == first { // the header of an export that starts in the middle
				continue
			}
			rec, err := journal.ParseLine(line)
			if err != nil {
				return fmt.Errorf("record %d: %w", seq, err)
			}
			if err := each(seq, rec.Body); err != nil {
				return err
			}
			seq++
		}
	}
}
