package journal

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Verify checks an export: header lines, if it does not start at record 0, and then
// one line per record. It stops at the first bad one. The error is about reading
// only; what is wrong with the journal is in the Result.
func Verify(r io.Reader) (Result, error) {
	var s reading
	if err := s.all(r); err != nil {
		result := s.v.Result()
		result.Chain = Unchecked // the end was not seen
		return result, err
	}
	return s.v.Result(), nil
}

// reading is one pass over the segments of an export.
type reading struct {
	v     *Verifier // nil before the first segment
	begun func()    // called when the start is known; may be nil
	added func()    // called after each record that is in order; may be nil
	lines *bufio.Reader
}

// all reads segments until the last, or the first bad record.
func (s *reading) all(segments ...io.Reader) error {
	s.lines = bufio.NewReaderSize(nil, maxLine)
	for _, r := range segments {
		s.lines.Reset(r)
		if err := s.segment(); err != nil {
			return fmt.Errorf("read journal after record %d: %w", s.v.next, err)
		}
		if s.v.bad != nil {
			break
		}
	}
	if s.v == nil {
		s.v = &Verifier{}
	}
	return nil
}

func (s *reading) segment() error {
	var h header
	line, err := s.lines.ReadSlice('\n')
	for err == nil && line[0] == '#' && h.accept(line) {
		line, err = s.lines.ReadSlice('\n')
	}
	if s.v == nil {
		s.begin(&h)
	} else {
		s.follow(&h)
	}
	v := s.v
	for err == nil && v.bad == nil {
		v.addLine(line)
		if v.bad == nil {
			if s.added != nil {
				s.added()
			}
			line, err = s.lines.ReadSlice('\n')
		}
	}
	switch {
	case v.bad != nil:
	case errors.Is(err, bufio.ErrBufferFull):
		v.refuse(BadRecord{Reason: ReasonFraming})
	case err != io.EOF:
		return err
	case len(line) > 0:
		v.refuse(BadRecord{Reason: ReasonTornTail, TornBytes: len(line)})
	}
	return nil
}

func (s *reading) begin(h *header) {
	v, ok := h.verifier()
	if !ok {
		v.refuse(BadRecord{Reason: ReasonFraming})
	}
	s.v = v
	if s.begun != nil {
		s.begun()
	}
}

// follow checks that a further segment begins where the one before it ended.
func (s *reading) follow(h *header) {
	v := s.v
	switch {
	case !h.complete():
		v.refuse(BadRecord{Reason: ReasonFraming})
	case h.from > v.next:
		v.refuse(BadRecord{Reason: ReasonMissing, ObservedSequence: h.from})
	case h.from < v.next:
		v.refuse(BadRecord{Reason: ReasonSequence, ObservedSequence: h.from})
	case h.prev != v.head:
		v.refuse(BadRecord{Reason: ReasonPredecessor, Expected: v.head, Observed: h.prev})
	case h.origin != "" && v.origin != "" && h.origin != v.origin,
		h.subtrees != nil && !v.noTree && !slices.Equal(h.subtrees, v.subtrees()):
		v.refuse(BadRecord{Reason: ReasonHeader})
	}
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
