package journal

import (
	"slices"
	"strconv"
	"strings"
)

// header is what stands before the first record of an export that does not start at
// record 0:
//
//	#deed-journal/v1 <origin>
//	#from <number of the first record>
//	#prev <hash of the record before it>
//	#range <base64> …        subtrees of the records before it, largest first
//
// It needs no trust of its own: if it lies, the root is not that of any checkpoint.
type header struct {
	seen     [len(headerWords)]bool
	origin   string
	from     uint64
	prev     Hash
	subtrees []Hash
}

var headerWords = [...]string{"#deed-journal/v1", "#from", "#prev", "#range"}

// accept reads one line and says whether it is a header line at its place. Each
// stands there at most once, in this order. There are no comments: a record whose
// first digit became a # must not be passed over.
func (h *header) accept(line []byte) (ok bool) {
	word, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	at := slices.Index(headerWords[:], word)
	if at < 0 || slices.Contains(h.seen[at:], true) {
		return false
	}
	h.seen[at] = true
	switch at {
	case 0:
		if ok = isOrigin(value); ok {
			h.origin = value
		}
	case 1:
		h.from, ok = parseSequence(value)
	case 2:
		h.prev, ok = parseHash(value)
	case 3:
		h.subtrees, ok = parseSubtrees(value)
	}
	return ok
}

// complete says whether the lines that belong together are all there.
func (h *header) complete() bool {
	hasFrom, hasPrev, hasRange := h.seen[1], h.seen[2], h.seen[3]
	return hasFrom == hasPrev && (hasFrom || !hasRange)
}

// verifier starts where the header says. When the header is incomplete or
// contradicts itself, ok is false and the verifier is good for naming the place only.
func (h *header) verifier() (v *Verifier, ok bool) {
	if h.complete() {
		if v, err := NewVerifierAt(h.from, h.prev, h.subtrees); err == nil {
			v.origin = h.origin
			return v, true
		}
	}
	return &Verifier{position: position{next: h.from}, start: h.from, noTree: true}, false
}

// parseSequence reads a record number in its one spelling.
func parseSequence(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxInteger || text != strconv.FormatUint(n, 10) {
		return 0, false
	}
	return n, true
}

func parseSubtrees(text string) (hashes []Hash, ok bool) {
	for word := range strings.SplitSeq(text, " ") {
		h, ok := parseBase64Hash(word)
		if !ok {
			return nil, false
		}
		hashes = append(hashes, h)
	}
	return hashes, true
}
