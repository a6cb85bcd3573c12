package journal

import (
	"crypto/sha256"
	"math/bits"
	"slices"
)

// tree is the Merkle tree of RFC 6962 section 2.1, kept as the roots of the full
// subtrees that its size is made of: one per set bit, largest first.
type tree struct {
	size  uint64
	count int
	roots [64]Hash
}

// newTree continues a tree of which only these roots are known.
func newTree(size uint64, roots []Hash) (t tree, ok bool) {
	if len(roots) != bits.OnesCount64(size) {
		return t, false
	}
	t.size, t.count = size, copy(t.roots[:], roots)
	return t, true
}

// push adds a leaf. Two subtrees of the same size become one, as a carry does.
func (t *tree) push(leaf Hash) {
	for size := t.size; size&1 == 1; size >>= 1 {
		t.count--
		leaf = nodeHash(t.roots[t.count], leaf)
	}
	t.roots[t.count] = leaf
	t.count++
	t.size++
}

func (t *tree) root() Hash {
	if t.count == 0 {
		return sha256.Sum256(nil)
	}
	root := t.roots[t.count-1]
	for i := t.count - 2; i >= 0; i-- {
		root = nodeHash(t.roots[i], root)
	}
	return root
}

func (t *tree) subtrees() []Hash { return slices.Clone(t.roots[:t.count]) }
