package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func openedChain(t testing.TB) (*Chain, Record) {
	t.Helper()
	chain, err := NewChain("gw.example/audit/test-1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := chain.Open(map[string]any{"log_key": "gw.example+1234"})
	if err != nil {
		t.Fatal(err)
	}
	return chain, r
}

func TestRecordZeroOpensTheJournal(t *testing.T) {
	chain, r := openedChain(t)
	want := `{"event":"journal.opened","format":"deed-journal-json/1","log_key":"gw.example+1234","origin":"gw.example/audit/test-1","prev":"` +
		strings.Repeat("0", 64) + `","seq":0,"v":1}`
	if string(r.Body) != want {
		t.Errorf("got  %s\nwant %s", r.Body, want)
	}
	if r.Hash != LeafHash([]byte(want)) {
		t.Errorf("got hash %s, want that of the body", r.Hash)
	}
	if _, err := chain.Open(nil); err == nil {
		t.Error("a journal was opened twice")
	}
	fresh, err := NewChain("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Next(map[string]any{"event": "x"}); err == nil {
		t.Error("a journal began without being opened")
	}
	if _, err := fresh.Open(map[string]any{"origin": "b"}); err == nil {
		t.Error("the origin was overridden")
	}
	for _, origin := range []string{"", "a b", "a\nb", "a+b", "a\x00", "a\u2003b", "\xff"} {
		if _, err := NewChain(origin); err == nil {
			t.Errorf("origin %q was accepted", origin)
		}
	}
}

func TestRefusedFieldsLeaveTheChainAsItIs(t *testing.T) {
	chain, _ := openedChain(t)
	mark := chain.Mark()
	for _, fields := range []map[string]any{{"a": nil}, {"prev": "x"}, {"seq": 1}, {"v": 1}} {
		var broken *ProfileError
		if _, err := chain.Next(fields); !errors.As(err, &broken) {
			t.Errorf("fields %v: got %v, want a *ProfileError", fields, err)
		}
	}
	if chain.Mark() != mark {
		t.Error("the chain moved")
	}
	fields := map[string]any{"event": "x"}
	if _, err := chain.Next(fields); err != nil {
		t.Fatal(err)
	}
	if len(fields) != 1 {
		t.Errorf("the caller's map now has %d members, want 1", len(fields))
	}
}

func TestDroppedRecordsLeaveNoTrace(t *testing.T) {
	chain, opening := openedChain(t)
	stored := []Record{opening}
	next := func(name string) Record {
		t.Helper()
		r, err := chain.Next(map[string]any{"event": name})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	stored = append(stored, next("kept"))
	mark := chain.Mark()
	next("dropped")
	next("dropped")
	chain.Reset(mark)
	stored = append(stored, next("kept"))
	if got := chain.Pending(); got != 3 {
		t.Errorf("got %d pending, want 3", got)
	}
	if chain.Size() != 0 || chain.Head() != (Hash{}) {
		t.Errorf("got size %d, head %s before commit, want none", chain.Size(), chain.Head())
	}
	chain.Commit()
	next("dropped")
	chain.Rollback()
	stored = append(stored, next("kept"))
	chain.Commit()
	if got := chain.Origin(); got != "gw.example/audit/test-1" {
		t.Errorf("got origin %s, want the one given", got)
	}
	if chain.Size() != 4 || chain.Head() != stored[3].Hash || chain.Pending() != 0 {
		t.Errorf("got size %d, head %s, want 4, %s", chain.Size(), chain.Head(), stored[3].Hash)
	}
	if result := verifyLines(t, export(stored)); result.Chain != Valid || result.RecordsChecked != 4 {
		t.Errorf("got %+v, want 4 valid records", result)
	}
}

func TestStaleMarksPanic(t *testing.T) {
	for name, misuse := range map[string]func(c *Chain){
		"from before a commit": func(c *Chain) { mark := c.Mark(); must(c.Next(nil)); c.Commit(); c.Reset(mark) },
		"beyond the end":       func(c *Chain) { must(c.Next(nil)); mark := c.Mark(); c.Rollback(); c.Reset(mark) },
		"on a dropped record": func(c *Chain) {
			must(c.Next(map[string]any{"a": 1}))
			mark := c.Mark()
			c.Rollback()
			must(c.Next(map[string]any{"a": 2}))
			must(c.Next(nil))
			c.Reset(mark)
		},
	} {
		t.Run(name, func(t *testing.T) {
			chain, _ := openedChain(t)
			chain.Commit()
			defer func() {
				if recover() == nil {
					t.Error("the mark was accepted")
				}
			}()
			misuse(chain)
		})
	}
}

func must(_ Record, err error) {
	if err != nil {
		panic(err)
	}
}

// Whatever is prepared, dropped, stored or rolled back, and wherever the process is
// started anew, what was stored is one chain without a gap.
func TestAnyHistoryIsOneChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chain, err := NewChain("a")
		if err != nil {
			t.Fatal(err)
		}
		opening, err := chain.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		var stored []Record
		pending := []Record{opening}
		marks := []Mark{}
		lengths := []int{}
		store := func() {
			stored = append(stored, pending...)
			pending, marks, lengths = nil, nil, nil
			chain.Commit()
		}
		store()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"next", "next", "next", "mark", "reset", "commit", "rollback", "restart"}).Draw(t, "step") {
			case "next":
				r, err := chain.Next(map[string]any{"n": rapid.IntRange(0, 9).Draw(t, "n")})
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, r)
			case "mark":
				marks, lengths = append(marks, chain.Mark()), append(lengths, len(pending))
			case "reset":
				if len(marks) > 0 {
					i := rapid.IntRange(0, len(marks)-1).Draw(t, "mark")
					chain.Reset(marks[i])
					pending, marks, lengths = pending[:lengths[i]], marks[:i], lengths[:i]
				}
			case "commit":
				store()
			case "rollback":
				chain.Rollback()
				pending, marks, lengths = nil, nil, nil
			case "restart":
				if chain, err = ResumeChain("a", chain.Size(), chain.Head()); err != nil {
					t.Fatal(err)
				}
				pending, marks, lengths = nil, nil, nil
			}
			if chain.Pending() != len(pending) {
				t.Fatalf("got %d pending, want %d", chain.Pending(), len(pending))
			}
		}
		store()
		var v Verifier
		for _, r := range stored {
			if err := v.Add(r.Hash, r.Body); err != nil {
				t.Fatal(err)
			}
		}
		if got := v.Result(); got.RecordsChecked != chain.Size() || got.Head != chain.Head() || got.Origin != "a" {
			t.Fatalf("got %+v, want %d records up to %s", got, chain.Size(), chain.Head())
		}
	})
}

func TestLines(t *testing.T) {
	_, r := openedChain(t)
	line := AppendLine(nil, r)
	if want := fmt.Sprintf("%s %s\n", r.Hash, r.Body); string(line) != want {
		t.Fatalf("got %q, want %q", line, want)
	}
	got, err := ParseLine(line)
	if err != nil || got.Hash != r.Hash || string(got.Body) != string(r.Body) {
		t.Errorf("got %v, %v, want the record", got, err)
	}
	for _, bad := range []string{"", "\n", string(line[:len(line)-1]), string(line) + "\n", strings.ToUpper(string(line[:64])) + string(line[64:]),
		string(line[:63]) + string(line[64:]), string(line[:64]) + "\n", string(line[:64]) + "\t{}\n", string(line[:64]) + " " + strings.Repeat("x", MaxBody+1) + "\n"} {
		if _, err := ParseLine([]byte(bad)); err == nil {
			t.Errorf("line %.80q was accepted", bad)
		}
	}
	if _, err := ParseHash(r.Hash.String() + "0"); err == nil {
		t.Error("a hash with 65 digits was accepted")
	}
	if got, err := ParseHash(r.Hash.String()); err != nil || got != r.Hash {
		t.Errorf("got %s, %v, want %s", got, err, r.Hash)
	}
}
