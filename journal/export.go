package journal

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// Verify checks an export: header lines, if it does not start at record 0, and then
// one line per record. It stops at the first bad one. The error is about reading
// only; what is wrong with the journal is in the Result.
func Verify(r io.Reader) (Result, error) {
	lines := bufio.NewReaderSize(r, maxLine)
	var h header
	line, err := lines.ReadSlice('\n')
	for err == nil && line[0] == '#' && h.accept(line) {
		line, err = lines.ReadSlice('\n')
	}
	v, ok := h.verifier()
	if !ok {
		v.refuse(BadRecord{Reason: ReasonFraming})
	}
	for err == nil && v.bad == nil {
		v.addLine(line)
		if v.bad == nil {
			line, err = lines.ReadSlice('\n')
		}
	}
	switch {
	case v.bad != nil:
	case errors.Is(err, bufio.ErrBufferFull):
		v.refuse(BadRecord{Reason: ReasonFraming})
	case err != io.EOF:
		result := v.Result()
		result.Chain = Unchecked // the end was not seen
		return result, fmt.Errorf("read journal after record %d: %w", v.next, err)
	case len(line) > 0:
		v.refuse(BadRecord{Reason: ReasonTornTail, TornBytes: len(line)})
	}
	return v.Result(), nil
}

// addLine is Add for a line in a buffer that may be written to: the leaf prefix goes
// where the space was, so that the hash is taken in one call and without a copy.
func (v *Verifier) addLine(line []byte) {
	r, err := ParseLine(line)
	if err != nil {
		v.refuse(BadRecord{Reason: ReasonFraming})
		return
	}
	line[hexSize] = leafPrefix
	v.check(r.Hash, sha256.Sum256(line[hexSize:len(line)-1]), r.Body)
}
