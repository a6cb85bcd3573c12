package witness

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"deed.dev/deed/journal"
)

// request is the body of add-checkpoint: where the log takes the witness to be, how it gets from there to here, and the
// checkpoint.
type request struct {
	old    uint64
	proof  []journal.Hash
	signed []byte
}

// maxProof is how many hashes a proof between two trees can have.
const maxProof = 63

// MaxRequest is the longest body that is read, in bytes. A checkpoint with sixteen signatures of any kind fits.
const MaxRequest = 192 << 10

func parseRequest(body []byte) (r request, err error) {
	if len(body) > MaxRequest {
		return r, ErrMalformed
	}
	head, signed, ok := bytes.Cut(body, []byte("\n\n"))
	if !ok {
		return r, ErrMalformed
	}
	first, rest, more := bytes.Cut(head, []byte("\n"))
	size, ok := bytes.CutPrefix(first, []byte("old "))
	if !ok {
		return r, ErrMalformed
	}
	if r.old, ok = parseSize(string(size)); !ok {
		return r, ErrMalformed
	}
	for more {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\n"))
		hash, ok := parseHash(string(line))
		if !ok || len(r.proof) == maxProof {
			return r, ErrMalformed
		}
		r.proof = append(r.proof, hash)
	}
	r.signed = signed
	return r, nil
}

// parseSize reads a decimal number in its one spelling.
func parseSize(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && n <= journal.MaxInteger && strconv.FormatUint(n, 10) == text
}

// parseHash reads a hash in its one spelling.
func parseHash(text string) (h journal.Hash, ok bool) {
	if len(text) != base64.StdEncoding.EncodedLen(len(h)) {
		return h, false
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) != len(h) {
		return h, false
	}
	return journal.Hash(decoded), true
}
