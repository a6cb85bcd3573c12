package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"deed.dev/deed/journal"
	"golang.org/x/mod/sumdb/tlog"
)

const hashBytes = len(journal.Hash{})

// grower is the end of the Merkle tree while the journal is written. It stores what a record completes, in the transaction of
// the record, and reads nothing for it.
type grower struct {
	tree   journal.Tree
	insert []*sql.Stmt // of 1, 2, 4 … rows
}

func prepareGrower(p *statements) *grower {
	g := &grower{}
	for n := 1; n <= 8; n *= 2 {
		g.insert = append(g.insert, p.prepare(`insert into tree (seq, nodes) values (?, ?)`+strings.Repeat(`, (?, ?)`, n-1)))
	}
	return g
}

// add takes the hashes of the next records.
func (g *grower) add(records []journal.Hash) error {
	var args []any
	for _, hash := range records {
		seq := int64(g.tree.Size())
		_, stored := g.tree.Add(hash)
		if len(stored) == 1 {
			continue
		}
		nodes := make([]byte, 0, (len(stored)-1)*hashBytes)
		for _, node := range stored[1:] {
			nodes = append(nodes, node[:]...)
		}
		args = append(args, seq, nodes)
	}
	for len(args) > 0 {
		size := min(bits.Len(uint(len(args)/2)), len(g.insert)) - 1
		n := 2 << size
		if _, err := g.insert[size].ExecContext(background, args[:n]...); err != nil {
			return fmt.Errorf("write the tree from record %d: %w", args[0], err)
		}
		args = args[n:]
	}
	return nil
}

// hashes reads the stored tree: journal.HashReader.
type hashes struct {
	ctx          context.Context
	leaf, branch *sql.Stmt
}

const (
	selectLeaves   = `select j.seq, j.hash from json_each(?) n join journal j on j.seq = n.value`
	selectBranches = `select t.seq, t.nodes from json_each(?) n join tree t on t.seq = n.value`
)

// ReadHashes implements journal.HashReader.
func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var leaves, branches []int64
	for _, index := range indexes {
		level, last := placeOfNode(index)
		if level == 0 {
			leaves = append(leaves, last)
		} else {
			branches = append(branches, last)
		}
	}
	leaf, err := h.rows(h.leaf, leaves)
	if err != nil {
		return nil, err
	}
	branch, err := h.rows(h.branch, branches)
	if err != nil {
		return nil, err
	}
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, last := placeOfNode(index)
		nodes, at := leaf[last], 0
		if level > 0 {
			nodes, at = branch[last], (level-1)*hashBytes
		}
		if len(nodes) < at+hashBytes {
			return nil, fmt.Errorf("the stored tree lacks a hash that record %d completes; empty the table tree, and it is made again at the next start", last)
		}
		copy(found[i][:], nodes[at:])
	}
	return found, nil
}

// placeOfNode gives the level of a stored hash and the record that completes it.
func placeOfNode(index int64) (level int, last int64) {
	level, n := tlog.SplitStoredHashIndex(index)
	return level, (n+1)<<level - 1
}

func (h hashes) rows(s *sql.Stmt, seqs []int64) (map[int64][]byte, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	if err := h.ctx.Err(); err != nil {
		return nil, err
	}
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	found := make(map[int64][]byte, len(seqs))
	// The driver watches a context that can end with a goroutine for each row, which costs more than these reads take.
	err = many(context.WithoutCancel(h.ctx), s, func(scan func(...any) error) error {
		var seq int64
		var nodes []byte
		err := scan(&seq, &nodes)
		found[seq] = nodes
		return err
	}, string(list))
	if err != nil {
		return nil, fmt.Errorf("read the tree of the journal: %w", err)
	}
	return found, nil
}

// Tree gives the stored hashes of the journal's tree, for proofs and for the head of any earlier size.
func (r *reader) Tree(ctx context.Context) journal.HashReader { return hashes{ctx, r.leaf, r.branch} }

// Top is the head of the journal as far as it is committed: what a checkpoint says, before anybody signs it.
func (r *reader) Top(ctx context.Context) (journal.Checkpoint, error) {
	origin, err := r.Origin(ctx)
	if err != nil {
		return journal.Checkpoint{}, err
	}
	seq, _, err := head(ctx, r.headStmt)
	if err != nil {
		return journal.Checkpoint{}, fmt.Errorf("read the head of the journal: %w", err)
	}
	tree, err := journal.LoadTree(uint64(seq+1), r.Tree(ctx))
	if err != nil {
		return journal.Checkpoint{}, err
	}
	return journal.Checkpoint{Origin: origin, Size: tree.Size(), Root: tree.Root()}, nil
}

// Origin is the name of the journal, as record 0 states it.
func (r *reader) Origin(ctx context.Context) (string, error) {
	records, err := r.piece(ctx, 0, 1)
	if err != nil {
		return "", fmt.Errorf("read record 0: %w", err)
	}
	return originOf(records)
}

// Size is how many records are durable. Top and Size of a Store come from memory and cost nothing.
func (s *Store) Size() int64 { return int64(s.write.top.Load().Size) }

// Top is the head of the journal as of the newest commit.
func (s *Store) Top(context.Context) (journal.Checkpoint, error) { return *s.write.top.Load(), nil }

// openTree loads the end of the tree, and makes what is missing of it: all, in a database from before there was one.
func (w *writer) openTree(ctx context.Context, size uint64) error {
	var last int64
	if err := w.conn.QueryRowContext(ctx, `select coalesce(max(seq), -1) from tree`).Scan(&last); err != nil {
		return fmt.Errorf("read the tree of the journal: %w", err)
	}
	have := uint64(last + 1)
	if have > size {
		return fmt.Errorf("the tree is of %d records, and the journal has %d: it was cut", have, size)
	}
	p := &statements{from: w.conn}
	stored := hashes{ctx, p.prepare(selectLeaves), p.prepare(selectBranches)}
	if p.err != nil {
		return p.err
	}
	defer func() { _ = p.close() }()
	var err error
	if w.ledger.grower.tree, err = journal.LoadTree(have, stored); err != nil {
		if _, err := w.conn.ExecContext(ctx, `delete from tree`); err != nil {
			return fmt.Errorf("make the tree of the journal anew: %w", err)
		}
		w.ledger.grower.tree = journal.Tree{}
	}
	for w.ledger.grower.tree.Size() < size {
		if err := w.inTransaction(func() error { return w.growTree(ctx, 20_000) }); err != nil {
			return fmt.Errorf("make the tree of the journal: %w", err)
		}
	}
	return nil
}

// growTree adds the next records of the journal, so many at most.
func (w *writer) growTree(ctx context.Context, most int) error {
	g := w.ledger.grower
	rows, err := w.conn.QueryContext(ctx, `select hash from journal where seq >= ? order by seq limit ?`, int64(g.tree.Size()), most)
	if err != nil {
		return err
	}
	defer rows.Close()
	list := make([]journal.Hash, 0, most)
	for rows.Next() {
		var hash []byte
		if err := rows.Scan(&hash); err != nil {
			return err
		}
		if len(hash) != hashBytes {
			return fmt.Errorf("a hash of %d bytes", len(hash))
		}
		list = append(list, journal.Hash(hash))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("the journal has fewer records than its last number says")
	}
	return g.add(list)
}

// inTransaction is for opening only: later the committer alone begins transactions.
func (w *writer) inTransaction(do func() error) error {
	if _, err := w.begin.ExecContext(background); err != nil {
		return err
	}
	if err := do(); err != nil {
		w.abandon()
		return err
	}
	_, err := w.commit.ExecContext(background)
	return err
}

// publish makes the head known to readers, once it is durable.
func (w *writer) publish() {
	tree := &w.ledger.grower.tree
	w.top.Store(&journal.Checkpoint{Origin: w.ledger.chain.Origin(), Size: tree.Size(), Root: tree.Root()})
}
