package journal

import (
	"bytes"
	"encoding/hex"
	"errors"
)

// Record is one entry of a journal: a body, exactly as it was hashed, and its hash.
type Record struct {
	Hash Hash
	Body []byte
}

const (
	bodyAt  = hexSize + 1 // of a line: hash SP body LF
	maxLine = bodyAt + MaxBody + 1
)

// AppendLine appends the record as one line of an export.
func AppendLine(dst []byte, r Record) []byte {
	dst = hex.AppendEncode(dst, r.Hash[:])
	dst = append(dst, ' ')
	dst = append(dst, r.Body...)
	return append(dst, '\n')
}

var errFraming = errors.New("not a line of the form: 64 hex digits, a space, a body, a line feed")

// ParseLine takes apart one line, with its line feed. It does not check that hash
// and body belong together, which is what a Verifier does. The body is a part of
// line and not a copy.
func ParseLine(line []byte) (Record, error) {
	end := len(line) - 1
	if end < bodyAt || bytes.IndexByte(line, '\n') != end || line[hexSize] != ' ' || len(line) > maxLine {
		return Record{}, errFraming
	}
	hash, ok := parseHash(line[:hexSize])
	if !ok {
		return Record{}, errFraming
	}
	return Record{Hash: hash, Body: line[bodyAt:end:end]}, nil
}
