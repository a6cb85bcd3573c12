package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
	"deed.dev/deed/journal"
)

// wantTree holds the stored tree against one that is made from the records, and proves every record and every earlier size.
func wantTree(t *testing.T, s store.Reader, stored journal.HashReader, top journal.Checkpoint) {
	t.Helper()
	var tree journal.Tree
	var records []journal.Hash
	heads := []journal.Checkpoint{{Origin: top.Origin, Root: tree.Root()}}
	err := s.Records(t.Context(), 0, func(_ int64, hash [32]byte, _ []byte) error {
		tree.Add(hash)
		records = append(records, hash)
		heads = append(heads, journal.Checkpoint{Origin: top.Origin, Size: tree.Size(), Root: tree.Root()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(len(records))
	if top != heads[size] {
		t.Fatalf("the head is %v, and the records make %v", top, heads[size])
	}
	for i, record := range records {
		proof, err := journal.ProveInclusion(size, uint64(i), stored)
		if err != nil {
			t.Fatal(err)
		}
		if err := journal.CheckInclusion(proof, size, top.Root, uint64(i), record); err != nil {
			t.Errorf("record %d: %v", i, err)
		}
	}
	for _, old := range heads[1:] {
		loaded, err := journal.LoadTree(old.Size, stored)
		if err != nil || loaded.Root() != old.Root {
			t.Errorf("the root of size %d: %v (%v)", old.Size, loaded.Root(), err)
		}
		proof, err := journal.ProveConsistency(old.Size, size, stored)
		if err != nil {
			t.Fatal(err)
		}
		if err := journal.CheckConsistency(proof, old, top); err != nil {
			t.Errorf("size %d to %d: %v", old.Size, size, err)
		}
	}
}

func topOf(t *testing.T, r interface {
	Top(context.Context) (journal.Checkpoint, error)
}) journal.Checkpoint {
	t.Helper()
	top, err := r.Top(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// AU-03: what was secured earlier is proved to be the beginning of what is there now, from the stored tree alone.
func TestTheTreeIsThatOfTheRecords(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	k := new(storetest.Kit)
	for i := range 40 {
		k.Make(t, s, nil, action.T3, action.T11, action.T12)
		if i%3 == 0 { // a change that fails takes its records back, and the tree with them
			failed := errors.New("no")
			err := s.Commit(t.Context(), func(tx store.Tx) error { return errors.Join(tx.Append(k.Started(k.Run())), failed) })
			if !errors.Is(err, failed) {
				t.Fatal(err)
			}
		}
	}
	if int64(topOf(t, s).Size) != s.Size() || s.Size() < 200 {
		t.Errorf("%d records, and the head says %d", s.Size(), topOf(t, s).Size)
	}
	wantTree(t, s, s.Tree(t.Context()), topOf(t, s))
	r, err := sqlite.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	wantTree(t, r, r.Tree(t.Context()), topOf(t, r))
}

// A database from before there was a tree, or one whose tree was damaged, gets it when it is opened.
func TestTheTreeIsMadeAgain(t *testing.T) {
	for name, harm := range map[string]string{
		"none of it":            `delete from tree`,
		"the end of it":         `delete from tree where seq > 9`,
		"all but the end of it": `delete from tree where seq < 16`,
		"a shortened row":       `update tree set nodes = substr(nodes, 1, 32) where seq = 15`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openIn(t, written(t, harm), storetest.Options{})
			wantTree(t, s, s.Tree(t.Context()), topOf(t, s))
			new(storetest.Kit).Make(t, s, nil, action.T3)
			wantTree(t, s, s.Tree(t.Context()), topOf(t, s))
		})
	}
}

// A tree of more records than there are says that the journal was cut.
func TestATreeThatIsAheadIsACut(t *testing.T) {
	dir := written(t, `insert into tree values (9999, zeroblob(32))`)
	if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "it was cut") {
		t.Errorf("got %v", err)
	}
}

// A wrong hash in the stored tree cannot make a wrong thing true: proofs from it do not hold.
func TestADamagedTreeProvesNothing(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	k := new(storetest.Kit)
	for range 5 {
		k.Make(t, s, nil, action.T3, action.T11, action.T12)
	}
	db := byHand(t, s.dir)
	if _, err := db.Exec(`update tree set nodes = zeroblob(length(nodes)) where seq = 3`); err != nil {
		t.Fatal(err)
	}
	top := topOf(t, s)
	proof, err := journal.ProveInclusion(top.Size, 5, s.Tree(t.Context()))
	var record journal.Hash
	err = errors.Join(err, s.Records(t.Context(), 5, func(seq int64, hash [32]byte, _ []byte) error {
		if seq == 5 {
			record = hash
		}
		return nil
	}))
	if err == nil && journal.CheckInclusion(proof, top.Size, top.Root, 5, record) == nil {
		t.Error("a proof with a wrong hash in it holds")
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, s.Tree(t.Context()), topOf(t, s))
}

// The journal names its keys: the first in record 0, each further one in a record of its own, and none twice.
func TestTheJournalNamesItsKeys(t *testing.T) {
	dir := t.TempDir()
	var asked []string
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit", Key: func(origin string) (string, error) {
		asked = append(asked, origin)
		return "key one", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := new(storetest.Kit)
	k.Make(t, s, nil, action.T3)
	for _, c := range []struct {
		key  string
		want error
	}{{"key two", nil}, {"key two", store.ErrStale}, {"key one", store.ErrStale}} {
		if err := s.NameKey(t.Context(), c.key); !errors.Is(err, c.want) {
			t.Errorf("name %q: %v, want %v", c.key, err, c.want)
		}
	}
	k.Make(t, s, nil, action.T3)
	const want = "[{6 key two} {0 key one}]"
	keys := func() string {
		keys, err := s.LogKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(keys)
	}
	if got := keys(); got != want {
		t.Errorf("keys are %s, want %s", got, want)
	}
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := keys(); got != want {
		t.Errorf("keys are %s after a rebuild, want %s", got, want)
	}
	var bodies []string
	err = s.Records(t.Context(), 0, func(_ int64, _ [32]byte, body []byte) error {
		if strings.Contains(string(body), "log_key") {
			bodies = append(bodies, string(body))
		}
		return nil
	})
	if err != nil || len(bodies) != 2 || !strings.Contains(bodies[0], `"event":"journal.opened","format":"deed-journal-json/1","log_key":"key one"`) ||
		!strings.Contains(bodies[1], `"event":"journal.key","log_key":"key two"`) || !strings.Contains(bodies[1], `"replaces":"key one"`) {
		t.Errorf("the records are %q (%v)", bodies, err)
	}
	if len(asked) != 1 || asked[0] != "test.example/audit" {
		t.Errorf("the key was asked for %q", asked)
	}
	storetest.Histories(t, s)
}

// AU-11: whoever reads cannot write, not even into the side tables, and whoever writes can neither change nor cut.
func TestReadersCannotWrite(t *testing.T) {
	dir := written(t)
	db := byHand(t, dir)
	for _, statement := range []string{`update journal set body = x'7b7d' where seq = 3`, `delete from journal where seq = 3`, `update or replace journal set seq = 99 where seq = 3`} {
		if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	r, err := sqlite.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, writes := any(r).(store.Store); writes {
		t.Error("a reader can commit")
	}
}

// BenchmarkProve is one proof for any record from the side table: at most 0.1 ms.
func BenchmarkProve(b *testing.B) {
	s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Origin: "bench.example", TestOnlyNoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	k := new(storetest.Kit)
	for s.Size() < 100_000 {
		err := s.Commit(b.Context(), func(tx store.Tx) error {
			for range 2000 {
				if err := tx.Append(k.Started(k.Run())); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	size := uint64(s.Size())
	at := uint64(1)
	for b.Loop() {
		at = (at*7919 + 13) % size
		if _, err := journal.ProveInclusion(size, at, s.Tree(b.Context())); err != nil {
			b.Fatal(err)
		}
	}
}
