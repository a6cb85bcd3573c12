package journal

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// HashReader reads the tree hashes that somebody stored for a journal. The hashes
// that Tree.Add returns for record 0, 1, 2, … laid one after another are numbered from
// 0; ReadHashes returns those with the given numbers, in the order given, or an error.
type HashReader = tlog.HashReader

// Tree is the head of a Merkle tree that grows: the roots of the full subtrees that
// its size is made of, and nothing else. The zero value is the empty tree. A copy is a
// tree of its own, so to go back is to keep a copy.
type Tree struct{ tree }

// LoadTree reads the head of the tree of that size from what was stored for it.
func LoadTree(size uint64, stored HashReader) (Tree, error) {
	if size > MaxInteger {
		return Tree{}, errTreeSize
	}
	var indexes []int64
	for left, level := uint64(0), 63; level >= 0; level-- {
		if size>>level&1 == 1 {
			indexes = append(indexes, tlog.StoredHashIndex(level, int64(left>>level)))
			left += 1 << level
		}
	}
	if len(indexes) == 0 {
		return Tree{}, nil
	}
	roots, err := stored.ReadHashes(indexes)
	if err != nil {
		return Tree{}, fmt.Errorf("read the tree of size %d: %w", size, err)
	}
	t, ok := newTree(size, ours(roots))
	if !ok {
		return Tree{}, errShortRead
	}
	return Tree{t}, nil
}

var (
	errTreeSize  = errors.New("no tree of that size, or no record of that number in it")
	errShortRead = errors.New("the reader of stored hashes returned another number of hashes than was asked for")
	errProof     = errors.New("the proof does not lead from the one to the other")
)

// Size returns how many records the tree is of.
func (t *Tree) Size() uint64 { return t.size }

// Root returns the root hash, which a checkpoint states.
func (t *Tree) Root() Hash { return t.root() }

// Subtrees returns the roots of the full subtrees, largest first, for AppendHeader and
// NewVerifierAt.
func (t *Tree) Subtrees() []Hash { return t.subtrees() }

// Add adds the hash of the next record. It returns the hashes to be stored, that of the
// record first, and the number of the first of them. Nothing that is stored needs to be
// read for it.
func (t *Tree) Add(record Hash) (first int64, hashes []Hash) {
	first = tlog.StoredHashIndex(0, int64(t.size))
	hashes = append(hashes, record)
	node, count := record, t.count
	for size := t.size; size&1 == 1; size >>= 1 {
		count--
		node = nodeHash(t.roots[count], node)
		hashes = append(hashes, node)
	}
	t.roots[count] = node
	t.count = count + 1
	t.size++
	return first, hashes
}

// StoredHashes returns how many hashes are stored for a journal of that size.
func StoredHashes(size uint64) int64 { return tlog.StoredHashCount(int64(size)) }

// ProveInclusion returns the hashes that lead from record index to the root of the tree
// of that size, lowest first.
func ProveInclusion(size, index uint64, stored HashReader) ([]Hash, error) {
	if size > MaxInteger || index >= size {
		return nil, errTreeSize
	}
	proof, err := tlog.ProveRecord(int64(size), int64(index), stored)
	if err != nil {
		return nil, fmt.Errorf("prove record %d of %d: %w", index, size, err)
	}
	return ours(proof), nil
}

// CheckInclusion says whether the record with that hash is number index of the tree
// with that size and root.
func CheckInclusion(proof []Hash, size uint64, root Hash, index uint64, record Hash) error {
	if size > MaxInteger || index >= size {
		return errTreeSize
	}
	if tlog.CheckRecord(theirs(proof), int64(size), tlog.Hash(root), int64(index), tlog.Hash(record)) != nil {
		return errProof
	}
	return nil
}

// ProveConsistency returns the hashes that show that the tree of size began as the tree
// of old, which is not empty.
func ProveConsistency(old, size uint64, stored HashReader) ([]Hash, error) {
	if size > MaxInteger || old > size || old == 0 {
		return nil, errTreeSize
	}
	proof, err := tlog.ProveTree(int64(size), int64(old), stored)
	if err != nil {
		return nil, fmt.Errorf("prove that %d records begin with %d: %w", size, old, err)
	}
	return ours(proof), nil
}

// CheckConsistency says whether the journal of the one checkpoint began as that of the
// old one. Every journal began empty, and for that the proof is empty.
func CheckConsistency(proof []Hash, old, size Checkpoint) error {
	switch {
	case old.Origin != size.Origin:
		return errors.New("checkpoints of two different journals")
	case size.Size > MaxInteger || old.Size > size.Size:
		return errTreeSize
	case old.Size == 0:
		if empty := (Tree{}); len(proof) != 0 || old.Root != empty.root() {
			return errProof
		}
		return nil
	}
	if tlog.CheckTree(theirs(proof), int64(size.Size), tlog.Hash(size.Root), int64(old.Size), tlog.Hash(old.Root)) != nil {
		return errProof
	}
	return nil
}

func ours(hashes []tlog.Hash) []Hash {
	list := make([]Hash, len(hashes))
	for i, h := range hashes {
		list[i] = Hash(h)
	}
	return list
}

func theirs(hashes []Hash) []tlog.Hash {
	list := make([]tlog.Hash, len(hashes))
	for i, h := range hashes {
		list[i] = tlog.Hash(h)
	}
	return slices.Clip(list)
}
