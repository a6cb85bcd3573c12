// Package anchortest is a journal in memory for tests of places and witnesses: a real tree, real keys and real proofs, over
// records that are made up.
//
// It knows nothing of actions, and it can do what no journal should: go back, and tell another story from there.
package anchortest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// Origin is the name of the journals here, if no other is given.
const Origin = "gw.example/audit/test"

// Log is a journal. Its methods may be called at once.
type Log struct {
	Signer *journal.Signer

	mu     sync.Mutex
	leaves []journal.Hash
	hashes []tlog.Hash
	tree   journal.Tree
	failed error
}

// New makes a journal with n records and a key of its own.
func New(t testing.TB, n int) *Log {
	t.Helper()
	return NewNamed(t, Origin, n)
}

// NewNamed is New for a journal of another origin.
func NewNamed(t testing.TB, origin string, n int) *Log {
	t.Helper()
	private, _, err := journal.GenerateKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	l := &Log{Signer: signer}
	l.Add(n)
	return l
}

// Add appends n records.
func (l *Log) Add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.add(fmt.Sprintf("record %d", len(l.leaves)))
	}
}

func (l *Log) add(body string) {
	leaf := journal.LeafHash([]byte(body))
	_, hashes := l.tree.Add(leaf)
	l.leaves = append(l.leaves, leaf)
	for _, h := range hashes {
		l.hashes = append(l.hashes, tlog.Hash(h))
	}
}

// Fork is a journal under the same key that has the same records up to size at, and n others after them.
func (l *Log) Fork(at, n int) *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	fork := &Log{Signer: l.Signer}
	for i := range at {
		fork.add(fmt.Sprintf("record %d", i))
	}
	for i := range n {
		fork.add(fmt.Sprintf("another record %d", at+i))
	}
	return fork
}

// Fail makes Head fail from now on; nil makes it work again.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
}

// Size is how many records there are.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.tree.Size())
}

// Head signs a checkpoint.
func (l *Log) Head(context.Context) (anchor.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return anchor.Head{}, l.failed
	}
	c := journal.Checkpoint{Origin: l.Signer.Origin(), Size: l.tree.Size(), Root: l.tree.Root()}
	signed, err := journal.SignCheckpoint(c, l.Signer)
	return anchor.Head{Checkpoint: c, Signed: signed, Time: time.Now(), Prove: func(_ context.Context, old uint64) ([]journal.Hash, error) {
		return l.Prove(old, c.Size)
	}}, err
}

// MustHead is Head in a test that has no use for an error.
func (l *Log) MustHead(t testing.TB) anchor.Head {
	t.Helper()
	h, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Prove returns the proof that the journal of size began as the journal of old.
func (l *Log) Prove(old, size uint64) ([]journal.Hash, error) {
	l.mu.Lock()
	hashes := l.hashes[:len(l.hashes):len(l.hashes)]
	l.mu.Unlock()
	return journal.ProveConsistency(old, size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			list[i] = hashes[index]
		}
		return list, nil
	}))
}
