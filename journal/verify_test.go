package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func verifyLines(t testing.TB, lines []byte) Result {
	t.Helper()
	result, err := Verify(bytes.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// definitionOfRoot is RFC 6962 section 2.1 word for word, as the second opinion.
func definitionOfRoot(leaves [][]byte) []byte {
	sum := func(parts ...[]byte) []byte { s := sha256.Sum256(bytes.Join(parts, nil)); return s[:] }
	switch n := len(leaves); n {
	case 0:
		return sum()
	case 1:
		return sum([]byte{0}, leaves[0])
	default:
		k := 1
		for 2*k < n {
			k *= 2
		}
		return sum([]byte{1}, definitionOfRoot(leaves[:k]), definitionOfRoot(leaves[k:]))
	}
}

// AU-02: an independent re-computation of 1,842 events matches: canonical bytes,
// previous hash, new hash. It uses nothing of this package but the exported bytes.
func TestIndependentRecomputation(t *testing.T) {
	lines := export(exampleRecords(t, 1842))
	result := verifyLines(t, lines)
	if result.Chain != Valid || result.RecordsChecked != 1842 || result.LastSequence != 1841 {
		t.Fatalf("got %+v, want 1842 valid records", result)
	}
	head, number := strings.Repeat("0", 64), 0
	var bodies [][]byte
	for line := range strings.Lines(string(lines)) {
		stated, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		sum := sha256.Sum256([]byte("\x00" + body))
		computed := hex.EncodeToString(sum[:])
		var event struct {
			Prev string
			Seq  int
			V    int
		}
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			t.Fatal(err)
		}
		if stated != computed || event.Prev != head || event.Seq != number || event.V != 1 {
			t.Fatalf("record %d: stated %s, computed %s, prev %s, seq %d; want prev %s", number, stated, computed, event.Prev, event.Seq, head)
		}
		bodies = append(bodies, []byte(body))
		head, number = stated, number+1
	}
	if result.Head.String() != head {
		t.Errorf("got head %s, want %s", result.Head, head)
	}
	if want := definitionOfRoot(bodies); !bytes.Equal(result.Root[:], want) {
		t.Errorf("got root %s, want %x", result.Root, want)
	}
}

func TestRootIsThatOfTheDefinition(t *testing.T) {
	var v Verifier
	var bodies [][]byte
	for i, r := range exampleRecords(t, 70) {
		if got, want := v.Result().Root, definitionOfRoot(bodies); !bytes.Equal(got[:], want) {
			t.Fatalf("%d records: got root %s, want %x", i, got, want)
		}
		if err := v.Add(r.Hash, r.Body); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, r.Body)
	}
}

// AU-03: a verification that starts from a known record in the middle rebuilds each
// link from there, and comes to the same head and root as one from the start.
func TestVerifyFromTheMiddle(t *testing.T) {
	records := exampleRecords(t, 40)
	whole := verifyLines(t, export(records))
	var before Verifier
	for from, r := range records {
		prev := before.Result().Head
		header := fmt.Sprintf("#from %d\n#prev %s\n", from, prev)
		v, err := NewVerifierAt(uint64(from), prev, before.Subtrees())
		if err != nil {
			t.Fatal(err)
		}
		for _, later := range records[from:] {
			if err := v.Add(later.Hash, later.Body); err != nil {
				t.Fatalf("from %d: %v", from, err)
			}
		}
		got := v.Result()
		if got.Head != whole.Head || got.Root != whole.Root || got.FirstSequence != uint64(from) || got.RecordsChecked != uint64(40-from) {
			t.Fatalf("from %d: got %+v, want head %s, root %s", from, got, whole.Head, whole.Root)
		}
		rootless := verifyLines(t, append([]byte(header), export(records[from:])...))
		if v, err := NewVerifierAt(uint64(from), prev, nil); err != nil || (v.Subtrees() == nil) != (from > 0) {
			t.Fatalf("from %d without subtrees: got %v, want none to hand on", from, err)
		}
		if rootless.Chain != Valid || rootless.Head != whole.Head || rootless.RootKnown != (from == 0) {
			t.Fatalf("from %d without subtrees: got %+v", from, rootless)
		}
		if err := before.Add(r.Hash, r.Body); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewVerifierAt(3, Hash{1}, make([]Hash, 3)); err == nil {
		t.Error("three subtrees were accepted for a tree of size 3")
	}
	if _, err := NewVerifierAt(0, Hash{1}, nil); err == nil {
		t.Error("a predecessor of record 0 was accepted")
	}
	wrong, err := NewVerifierAt(3, Hash{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bad *BadRecord
	if err := wrong.Add(records[3].Hash, records[3].Body); !errors.As(err, &bad) || bad.Reason != ReasonPredecessor || bad.Sequence != 3 {
		t.Errorf("from a wrong record: got %v, want predecessor at 3", err)
	}
}

// AU-01 and AU-07: a row changed, removed, inserted or moved is found, and the first
// bad sequence is named with the expected and the observed hash.
func TestDamagedRowsAreNamed(t *testing.T) {
	const n = 24
	records := exampleRecords(t, n)
	check := func(what string, damaged []Record, sequence int, reason Reason, expected, observed Hash) {
		t.Helper()
		bad := verifyLines(t, export(damaged)).Bad
		if bad == nil || bad.Sequence != uint64(sequence) || bad.Reason != reason || bad.Expected != expected || bad.Observed != observed {
			t.Fatalf("%s: got %v, want %s at %d: expected %s, observed %s", what, bad, reason, sequence, expected, observed)
		}
		for _, part := range []string{fmt.Sprint(sequence), string(reason), expected.String(), observed.String()} {
			if !strings.Contains(bad.Error(), part) {
				t.Fatalf("%s: the message %q does not hold %s", what, bad, part)
			}
		}
	}
	head := func(i int) Hash { // hash of the record before record i
		if i == 0 {
			return Hash{}
		}
		return records[i-1].Hash
	}
	for i, r := range records {
		body := bytes.Replace(r.Body, []byte(`"event":"`), []byte(`"event":"x`), 1)
		changed := slices.Clone(records)
		changed[i].Body = body
		check("one byte more", changed, i, ReasonContent, r.Hash, LeafHash(body))
		if i > 0 && i < n-1 {
			changed[i].Hash = LeafHash(body)
			check("changed with its hash", changed, i+1, ReasonPredecessor, LeafHash(body), r.Hash)
		}
		if i < n-1 {
			check("removed", slices.Delete(slices.Clone(records), i, i+1), i, ReasonPredecessor, head(i), r.Hash)
			swapped := slices.Clone(records)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			check("swapped", swapped, i, ReasonPredecessor, head(i), r.Hash)
		}
		for place := range n + 1 {
			if place != i { // the copy before its own original is the swap with itself
				inserted := slices.Insert(slices.Clone(records), place, r)
				check("inserted", inserted, place, ReasonPredecessor, head(place), head(i))
			}
		}
	}
}

// What no chain shows is a cut at the end. It shows against a size and a root that
// were kept elsewhere, which is what a checkpoint holds.
func TestCutAtARecordShowsOnlyAgainstAKeptRoot(t *testing.T) {
	records := exampleRecords(t, 24)
	kept := verifyLines(t, export(records))
	cut := verifyLines(t, export(records[:20]))
	if cut.Chain != Valid {
		t.Errorf("got chain %s, want valid: a prefix of a chain is a chain", cut.Chain)
	}
	if cut.LastSequence == kept.LastSequence || cut.Root == kept.Root {
		t.Errorf("got size and root of the whole journal for a part of it")
	}
}

func TestAfterTheFirstBadRecordNothingIsChecked(t *testing.T) {
	records := exampleRecords(t, 3)
	var v Verifier
	first := v.Add(records[1].Hash, records[1].Body)
	if second := v.Add(records[0].Hash, records[0].Body); first == nil || second != first {
		t.Errorf("got %v and then %v, want the same error twice", first, second)
	}
	if got := v.Result(); got.Chain != Broken || got.RecordsChecked != 0 {
		t.Errorf("got %+v, want broken and no records", got)
	}
}

func TestReadErrorIsNoVerdict(t *testing.T) {
	lines := export(exampleRecords(t, 5))
	broken := io.MultiReader(bytes.NewReader(lines), iotest.ErrReader(errors.New("disk on fire")))
	result, err := Verify(broken)
	if err == nil || result.Chain != Unchecked || result.RecordsChecked != 5 {
		t.Errorf("got %+v, %v, want an error and no verdict", result, err)
	}
	if result := verifyLines(t, nil); result.Chain != Unchecked {
		t.Errorf("nothing at all: got %s, want unchecked", result.Chain)
	}
	slow, err := Verify(iotest.OneByteReader(bytes.NewReader(lines)))
	if err != nil || slow.Chain != Valid || slow.RecordsChecked != 5 {
		t.Errorf("byte by byte: got %+v, %v, want 5 valid records", slow, err)
	}
}

func TestLongLines(t *testing.T) {
	line := func(size int) []byte {
		empty, err := Encode(linked(map[string]any{"a": "", "event": "journal.opened", "origin": "a", "format": Format, "seq": 0}))
		if err != nil {
			t.Fatal(err)
		}
		body := bytes.Replace(empty, []byte(`"a":"`), []byte(`"a":"`+strings.Repeat("x", size-len(empty))), 1)
		return AppendLine(nil, Record{LeafHash(body), body})
	}
	if got := verifyLines(t, line(MaxBody)); got.Chain != Valid {
		t.Errorf("longest body: got %v, want valid", got.Bad)
	}
	for _, long := range [][]byte{line(MaxBody + 1), line(3 * MaxBody), bytes.Repeat([]byte("x"), 3*MaxBody)} {
		if got := verifyLines(t, long); got.Bad == nil || got.Bad.Reason != ReasonFraming || got.Bad.Sequence != 0 {
			t.Errorf("%d bytes: got %v, want framing at 0", len(long), got.Bad)
		}
	}
	var v Verifier
	r, _, _ := bytes.Cut(line(MaxBody+1), []byte("\n"))
	var broken *ProfileError
	if err := v.Add(LeafHash(r[bodyAt:]), r[bodyAt:]); !errors.As(err, &broken) || broken.Rule != RuleSize {
		t.Errorf("got %v, want rule size broken", err)
	}
}

func TestGoodRecordsCostNoMemory(t *testing.T) {
	records := exampleRecords(t, 1000)
	lines := export(records)
	if got := testing.AllocsPerRun(5, func() { verifyLines(t, lines) }); got > 50 {
		t.Errorf("got %v allocations for 1,000 records, want at most 50", got)
	}
	body := records[1].Body
	if got := testing.AllocsPerRun(100, func() { _ = CheckProfile(body) }); got != 0 {
		t.Errorf("got %v allocations for a profile check, want none", got)
	}
}
