package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
)

// Verdict is what is known of a chain. The zero value is that nothing is.
type Verdict int

// The verdicts. A chain is Valid when at least one record was checked and all were
// in order up to the end.
const (
	Unchecked Verdict = iota
	Valid
	Broken
)

func (v Verdict) String() string {
	switch v {
	case Valid:
		return "valid"
	case Broken:
		return "broken"
	}
	return "unchecked"
}

// Result says what a verification found. It vouches for the records that it counts
// and for nothing after them; whether there should be more only a checkpoint tells.
type Result struct {
	Origin         string // as record 0 states it, or else the header, or else empty
	RecordsChecked uint64 // in order, before the first bad one
	FirstSequence  uint64 // of the records checked
	LastSequence   uint64
	Head           Hash // of the last record checked
	Root           Hash // of the Merkle tree of all records up to Head
	RootKnown      bool // false when the start was in the middle and no subtrees were given
	Chain          Verdict
	Bad            *BadRecord // the first one, when the chain is broken
}

// Verifier checks records one by one. The zero value starts at record 0. It keeps
// nothing of a body and allocates nothing for a good record.
type Verifier struct {
	position
	start  uint64
	origin string
	tree
	noTree bool
	bad    *BadRecord
	digest hash.Hash
	sum    Hash
}

// NewVerifierAt starts in the middle: after a record known from elsewhere, whose
// hash is prev. The record to come has the number from. subtrees are what Subtrees
// returned there; without them the chain is checked and the root stays unknown.
func NewVerifierAt(from uint64, prev Hash, subtrees []Hash) (*Verifier, error) {
	if from > MaxInteger || from == 0 && prev != (Hash{}) {
		return nil, errors.New("no record can start there")
	}
	v := &Verifier{position: position{from, prev}, start: from}
	if from > 0 && subtrees == nil {
		v.noTree = true
		return v, nil
	}
	var ok bool
	if v.tree, ok = newTree(from, subtrees); !ok {
		return nil, fmt.Errorf("%d hashes of subtrees do not make a tree of size %d", len(subtrees), from)
	}
	return v, nil
}

// Add checks the next record: its hash, the profile, its predecessor and its number,
// in this order. The error is a *BadRecord. After the first one nothing is checked
// any more and Add returns the same error again.
func (v *Verifier) Add(hash Hash, body []byte) error {
	if v.bad == nil {
		v.check(hash, v.leafHash(body), body)
	}
	if v.bad != nil {
		return v.bad
	}
	return nil
}

// leafHash is LeafHash with a digest that is used again.
func (v *Verifier) leafHash(body []byte) Hash {
	if v.digest == nil {
		v.digest = sha256.New()
	}
	v.digest.Reset()
	v.sum[0] = leafPrefix
	v.digest.Write(v.sum[:1])
	v.digest.Write(body)
	v.digest.Sum(v.sum[:0])
	return v.sum
}

func (v *Verifier) check(stated, computed Hash, body []byte) {
	if computed != stated {
		v.refuse(BadRecord{Reason: ReasonContent, Expected: stated, Observed: computed})
		return
	}
	found, rule, offset := scanBody(body)
	switch {
	case rule != "":
		v.refuse(BadRecord{Reason: ReasonProfile, Profile: &ProfileError{Rule: rule, Offset: offset}})
		return
	case found.prev != v.head:
		v.refuse(BadRecord{Reason: ReasonPredecessor, Expected: v.head, Observed: found.prev})
		return
	case found.seq != v.next:
		v.refuse(BadRecord{Reason: ReasonSequence, ObservedSequence: found.seq})
		return
	}
	if v.next == 0 {
		origin, ok := openingOrigin(body)
		if !ok || v.origin != "" && v.origin != origin {
			v.refuse(BadRecord{Reason: ReasonProfile, Profile: &ProfileError{Rule: RuleOpening}})
			return
		}
		v.origin = origin
	}
	if !v.noTree {
		v.push(computed)
	}
	v.position = position{v.next + 1, computed}
}

func (v *Verifier) refuse(bad BadRecord) {
	bad.Sequence = v.next
	v.bad = &bad
}

// Subtrees returns the roots of the full subtrees of all records so far, largest
// first: what another verifier needs to start here. It is nil when the root is
// not known.
func (v *Verifier) Subtrees() []Hash {
	if v.noTree {
		return nil
	}
	return v.subtrees()
}

// Result returns what is known so far.
func (v *Verifier) Result() Result {
	r := Result{Origin: v.origin, RecordsChecked: v.next - v.start, Head: v.head, RootKnown: !v.noTree, Bad: v.bad}
	if !v.noTree {
		r.Root = v.root()
	}
	if r.RecordsChecked > 0 {
		r.FirstSequence, r.LastSequence, r.Chain = v.start, v.next-1, Valid
	}
	if v.bad != nil {
		r.Chain = Broken
	}
	return r
}
