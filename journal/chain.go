package journal

import "slices"

// Chain is the head of a journal that is being written. It prepares records; storing
// them is the caller's part:
//
//	mark := chain.Mark()
//	for each change: Next …; on a conflict, chain.Reset(mark of that change)
//	store all records in one transaction
//	chain.Commit() when that is durable, else chain.Rollback()
//
// Records that were dropped leave no trace: the next one takes their number and
// their predecessor. A Chain is for one goroutine at a time.
type Chain struct {
	origin    string
	committed position
	pending   position
	hashes    []Hash // of the records prepared since the last commit
}

// position is a place between two records.
type position struct {
	next uint64 // number of the record that comes next
	head Hash   // hash of the record before it
}

// Mark is a place in a chain to which Reset returns.
type Mark struct{ position }

// NewChain begins a journal. Its first record is made by Open.
func NewChain(origin string) (*Chain, error) {
	return ResumeChain(origin, 0, Hash{})
}

// ResumeChain continues a journal whose last stored record has the number next-1 and
// the hash head.
func ResumeChain(origin string, next uint64, head Hash) (*Chain, error) {
	if !isOrigin(origin) {
		return nil, errOrigin
	}
	at := position{next, head}
	return &Chain{origin: origin, committed: at, pending: at}, nil
}

// Origin returns the name of the journal.
func (c *Chain) Origin() string { return c.origin }

// Size returns how many records are committed, which is the number of the next one.
func (c *Chain) Size() uint64 { return c.committed.next }

// Head returns the hash of the last committed record.
func (c *Chain) Head() Hash { return c.committed.head }

// Pending returns how many records are prepared and not committed.
func (c *Chain) Pending() int { return len(c.hashes) }

// Next prepares a record: fields plus prev, seq and v. The record follows those that
// are prepared already. When the fields break the profile, the error is a
// *ProfileError and the chain stays as it is.
func (c *Chain) Next(fields map[string]any) (Record, error) {
	if c.pending.next == 0 {
		return Record{}, errNotOpened
	}
	return c.append(fields, nil)
}

func (c *Chain) append(fields map[string]any, extra []member) (Record, error) {
	for name := range fields {
		if isReserved(name) {
			return Record{}, &ProfileError{Rule: RuleReserved, Member: name}
		}
	}
	extra = append(extra, member{"prev", c.pending.head}, member{"seq", c.pending.next}, member{"v", Version})
	body, err := encode(fields, extra)
	if err != nil {
		return Record{}, err
	}
	r := Record{Hash: LeafHash(body), Body: body}
	c.pending = position{c.pending.next + 1, r.Hash}
	c.hashes = append(c.hashes, r.Hash)
	return r, nil
}

// Mark returns the place after the last prepared record.
func (c *Chain) Mark() Mark { return Mark{c.pending} }

// Reset drops the records prepared after mark. A mark from before the last commit,
// or from records that were dropped meanwhile, is a bug of the caller, and going on
// would leave a gap: Reset panics.
func (c *Chain) Reset(mark Mark) {
	kept := mark.next - c.committed.next
	if mark.next < c.committed.next || kept > uint64(len(c.hashes)) {
		panic("journal: reset to a mark outside the prepared records")
	}
	head := c.committed.head
	if kept > 0 {
		head = c.hashes[kept-1]
	}
	if head != mark.head {
		panic("journal: reset to a mark among records that were dropped")
	}
	c.pending, c.hashes = mark.position, slices.Delete(c.hashes, int(kept), len(c.hashes))
}

// Commit says that all prepared records are stored.
func (c *Chain) Commit() { c.committed, c.hashes = c.pending, c.hashes[:0] }

// Rollback drops all prepared records.
func (c *Chain) Rollback() { c.pending, c.hashes = c.committed, c.hashes[:0] }
