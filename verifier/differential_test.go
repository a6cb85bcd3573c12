package verifier_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
	"deed.dev/deed/journal"
)

// verdict is what one of the two verifiers says of a journal. Hashes are text.
type verdict struct {
	Origin         string
	RecordsChecked uint64
	FirstSequence  uint64
	LastSequence   uint64
	Head           string
	Root           string // base64, empty when it is not known
	Chain          string
	Bad            *badRecord
}

type badRecord struct {
	Sequence           uint64
	Reason, Rule       string
	Offset             int
	Expected, Observed string
	ObservedSequence   uint64
	TornBytes          int
}

func (v verdict) String() string { text, _ := json.Marshal(v); return string(text) }

func inGo(t *testing.T, lines []byte) verdict {
	t.Helper()
	r, err := journal.Verify(bytes.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	v := verdict{
		Origin: r.Origin, RecordsChecked: r.RecordsChecked, FirstSequence: r.FirstSequence, LastSequence: r.LastSequence,
		Head: r.Head.String(), Chain: r.Chain.String(),
	}
	if r.RootKnown {
		v.Root = base64.StdEncoding.EncodeToString(r.Root[:])
	}
	if b := r.Bad; b != nil {
		v.Bad = &badRecord{Sequence: b.Sequence, Reason: string(b.Reason), ObservedSequence: b.ObservedSequence, TornBytes: b.TornBytes}
		if b.Reason == journal.ReasonContent || b.Reason == journal.ReasonPredecessor {
			v.Bad.Expected, v.Bad.Observed = b.Expected.String(), b.Observed.String()
		}
		var broken *journal.ProfileError
		if errors.As(b, &broken) {
			v.Bad.Rule, v.Bad.Offset = string(broken.Rule), broken.Offset
		}
	}
	return v
}

// agree runs both verifiers over all journals, one process of Node for all of them, and returns what they said.
func agree(t *testing.T, journals [][]byte) []verdict {
	t.Helper()
	in, err := json.Marshal(journals)
	if err != nil {
		t.Fatal(err)
	}
	var got []verdict
	if err := json.Unmarshal(node(t, in, "test/results.mjs"), &got); err != nil || len(got) != len(journals) {
		t.Fatalf("got %d verdicts, %v, want %d", len(got), err, len(journals))
	}
	for i, lines := range journals {
		want := inGo(t, lines)
		for _, v := range []verdict{got[i], want} {
			if v.Bad != nil && v.Bad.Rule == string(journal.RuleName) {
				v.Bad.Offset = 0 // one names the end of a name that begins with a digit, the other its beginning
			}
		}
		if got[i].String() != want.String() {
			t.Fatalf("journal %d:\nJavaScript %s\nGo         %s\n%q", i, got[i], want, lines)
		}
	}
	return got
}

// export writes a journal as the store does.
func export(records []journal.Record) (lines []byte) {
	for _, r := range records {
		lines = journal.AppendLine(lines, r)
	}
	return lines
}

// everyKind is a journal with one event of every kind and form that was ever written, the links of its action made anew.
func everyKind(t *testing.T) []journal.Record {
	t.Helper()
	files, err := filepath.Glob("../internal/store/eventlog/testdata/v*/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("got %d bodies, %v, want all kinds", len(files), err)
	}
	chain, err := journal.NewChain("gw.example/audit/every-kind")
	if err != nil {
		t.Fatal(err)
	}
	opening, err := chain.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	records := []journal.Record{opening}
	after := ""
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		var fields map[string]any
		if err := decoder.Decode(&fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"prev", "seq", "v"} {
			delete(fields, name)
		}
		_, linked := fields["after"]
		if delete(fields, "after"); linked && after != "" {
			fields["after"] = after
		}
		r, err := chain.Next(integers(t, fields).(map[string]any))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if linked {
			after = r.Hash.String()
		}
		records = append(records, r)
	}
	return records
}

// integers replaces numbers by int64, which is what Next takes.
func integers(t *testing.T, value any) any {
	switch value := value.(type) {
	case json.Number:
		n, err := value.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	case []any:
		for i := range value {
			value[i] = integers(t, value[i])
		}
	case map[string]any:
		for name := range value {
			value[name] = integers(t, value[name])
		}
	}
	return value
}

// stored is the journal of a real store in which an action was brought to every state.
func stored(t *testing.T) (records []journal.Record) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Origin: "gw.example/audit/stored"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var kit storetest.Kit
	for _, path := range storetest.Paths() {
		kit.Make(t, s, nil, path...)
	}
	for _, r := range storetest.Journal(t, s) {
		records = append(records, journal.Record{Hash: r.Hash, Body: r.Body})
	}
	return records
}

// AU-02, AU-05: both verifiers come to the same numbers, hashes and root.
func TestBothAgreeOnWholeJournals(t *testing.T) {
	t.Parallel()
	for name, records := range map[string][]journal.Record{"every kind": everyKind(t), "a real store": stored(t)} {
		for _, v := range agree(t, [][]byte{export(records)}) {
			if v.Chain != "valid" || v.RecordsChecked != uint64(len(records)) || v.Root == "" {
				t.Errorf("%s: got %s, want %d valid records", name, v, len(records))
			}
		}
		var counts []int
		if err := json.Unmarshal(node(t, export(records), "test/receipts.mjs"), &counts); err != nil || len(counts) != len(records) {
			t.Fatalf("%s: got %d receipts, %v, want one per record", name, len(counts), err)
		}
		if slices.Max(counts) < 4 {
			t.Errorf("%s: got at most %d events in a receipt, want whole lives", name, slices.Max(counts))
		}
	}
}

// small is a journal that is short enough for damage to hit every part of it, and its tail as a file of its own.
func small(t *testing.T) (records []journal.Record, whole, tail []byte) {
	t.Helper()
	chain, err := journal.NewChain("gw.example/audit/small")
	if err != nil {
		t.Fatal(err)
	}
	var v journal.Verifier
	for i := range 12 {
		r, err := chain.Open(nil)
		if i > 0 {
			r, err = chain.Next(map[string]any{
				"event": "action.planned", "note": fmt.Sprintf("é€😀\n\x01\"%d", i), "time": "2026-10-05T10:09:57.123456Z",
				"list": []any{-i, true, false, "", map[string]any{"ended_at": "2024-02-29T23:59:59.000000Z"}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 7 {
			tail = fmt.Appendf(nil, "#deed-journal/v1 %s\n#from 7\n#prev %s\n#range", chain.Origin(), records[6].Hash)
			for _, h := range v.Subtrees() {
				tail = append(append(tail, ' '), base64.StdEncoding.EncodeToString(h[:])...)
			}
			tail = append(tail, '\n')
		}
		if err := v.Add(r.Hash, r.Body); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records, export(records), append(tail, export(records[7:])...)
}

// spoil changes, removes or inserts one byte: any, or one that means something in a journal.
func spoil(random *rand.Rand, text []byte) []byte {
	at := random.IntN(len(text))
	b := byte(random.IntN(256))
	if random.IntN(2) == 0 {
		const meaning = "\n \t\r\"\\{}[],:#-+.eE0123456789abcdefnul_Z\x00\x7f\x80\xbf\xc2\xe2\xed\xf0\xff"
		b = meaning[random.IntN(len(meaning))]
	}
	switch random.IntN(4) {
	case 0:
		return slices.Delete(slices.Clone(text), at, at+1)
	case 1:
		return slices.Insert(slices.Clone(text), at, b)
	}
	spoilt := slices.Clone(text)
	spoilt[at] = b
	return spoilt
}

func newRandom(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// AU-05: one byte of the file damaged, or one and a cut, gives the same reason and sequence.
func TestBothAgreeOnDamage(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	_, whole, tail := small(t)
	journals := make([][]byte, 4000)
	for i := range journals {
		lines := whole
		switch i % 4 {
		case 1:
			lines = tail
		case 2: // the header is short, so it has its own share
			end := bytes.Index(tail, []byte("\n"+tailRecord(tail)))
			journals[i] = append(spoil(random, tail[:end+1]), tail[end+1:]...)
			continue
		case 3:
			lines = lines[:1+random.IntN(len(lines)-1)]
		}
		journals[i] = spoil(random, lines)
	}
	reasons := count(agree(t, journals))
	for _, reason := range []journal.Reason{journal.ReasonTornTail, journal.ReasonFraming, journal.ReasonContent} {
		if reasons[string(reason)] == 0 {
			t.Errorf("no damage gave the reason %s: %v", reason, reasons)
		}
	}
}

// tailRecord is how the first record of the tail begins.
func tailRecord(tail []byte) string {
	for line := range strings.Lines(string(tail)) {
		if line[0] != '#' {
			return line[:64]
		}
	}
	return ""
}

// AU-05: a body damaged by somebody who knows how to hash breaks the same rule at the same byte, or the same link.
func TestBothAgreeOnWellHashedDamage(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	records, _, _ := small(t)
	journals := make([][]byte, 6000)
	for i := range journals {
		damaged := slices.Clone(records)
		at := random.IntN(len(damaged))
		body := damaged[at].Body
		for range 1 + random.IntN(3) {
			body = spoil(random, body)
		}
		damaged[at] = journal.Record{Hash: journal.LeafHash(body), Body: body}
		journals[i] = export(damaged)
	}
	said := agree(t, journals)
	rules := map[string]int{}
	for _, v := range said {
		if v.Bad != nil && v.Bad.Rule != "" {
			rules[v.Bad.Rule]++
		}
	}
	for _, rule := range []journal.Rule{
		journal.RuleSyntax, journal.RuleEncoding, journal.RuleSpace, journal.RuleName, journal.RuleOrder, journal.RuleLink,
		journal.RuleOpening, journal.RuleEscape, journal.RuleTime,
	} {
		if rules[string(rule)] == 0 {
			t.Errorf("no damage broke the rule %q: %v", rule, rules)
		}
	}
}

func count(said []verdict) map[string]int {
	reasons := map[string]int{}
	for _, v := range said {
		if v.Bad != nil {
			reasons[v.Bad.Reason]++
		}
	}
	return reasons
}
