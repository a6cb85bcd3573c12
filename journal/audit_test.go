package journal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/mod/sumdb/note"
)

const testOrigin = "gw.example/audit/test-1"

// privateKeyOf makes the same private key every time.
func privateKeyOf(t testing.TB, name, seed string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	secret := ed25519.NewKeyFromSeed(sum[:])
	vkey, err := note.NewEd25519VerifierKey(name, secret.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.SplitN(vkey, "+", 3)[1]
	return fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", name, id, base64.StdEncoding.EncodeToString(append([]byte{kindLog}, sum[:]...)))
}

func testSigner(t testing.TB, origin, seed string) *Signer {
	t.Helper()
	s, err := NewSigner(privateKeyOf(t, origin, seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testCosigner(t testing.TB, name string) *Cosigner {
	t.Helper()
	c, err := NewCosigner(privateKeyOf(t, name, name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sign(t testing.TB, c Checkpoint, signers ...*Signer) []byte {
	t.Helper()
	signed, err := SignCheckpoint(c, signers...)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func cosign(t testing.TB, signed []byte, witnesses ...*Cosigner) []byte {
	t.Helper()
	for _, w := range witnesses {
		line, err := w.Cosign(signed, time.Date(2026, 10, 5, 10, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		signed = append(slices.Clone(signed), line...)
	}
	return signed
}

func policyOf(t testing.TB, lines ...string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkpointOf(records []Record) Checkpoint {
	var tree Tree
	for _, r := range records {
		tree.Add(r.Hash)
	}
	return Checkpoint{testOrigin, tree.Size(), tree.Root()}
}

// part is records from one on, with the header that stands before them.
func part(t testing.TB, records []Record, from int) []byte {
	t.Helper()
	if from == 0 {
		return export(records)
	}
	var tree Tree
	for _, r := range records[:from] {
		tree.Add(r.Hash)
	}
	header, err := AppendHeader(nil, testOrigin, uint64(from), records[from-1].Hash, tree.Subtrees())
	if err != nil {
		t.Fatal(err)
	}
	return append(header, export(records[from:])...)
}

func auditOf(t testing.TB, e Evidence, segments ...[]byte) Report {
	t.Helper()
	var readers []io.Reader
	for _, s := range segments {
		readers = append(readers, bytes.NewReader(s))
	}
	r, err := Audit(e, readers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rewritten is what somebody makes who writes all records from one on anew, with
// hashes that fit.
func rewritten(t testing.TB, records []Record, from int) []Record {
	t.Helper()
	head := Hash{}
	if from > 0 {
		head = records[from-1].Hash
	}
	chain, err := ResumeChain(testOrigin, uint64(from), head)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Clone(records[:from])
	for i := from; i < len(records); i++ {
		fields := exampleFields(i)
		fields["summary"] = "something else"
		r, err := chain.Next(fields)
		if i == 0 {
			r, err = chain.Open(map[string]any{"summary": "something else"})
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// The attack table of the journal format, cell by cell: AU-01, AU-07, AU-10, AU-12,
// cases 075 and 076. The attacker holds the journal and the checkpoint beside it, and
// in some rows the log key. The auditor kept the checkpoint of 700 records, and the
// witness last signed that of 950.
func TestAttackTable(t *testing.T) {
	records := exampleRecords(t, 1000)
	log, witness := testSigner(t, testOrigin, "log"), testCosigner(t, "witness.example/w1")
	honest := func(size int) []byte { return sign(t, checkpointOf(records[:size]), log) }
	keys := TrustLogs(log.Key())
	policy := policyOf(t, "log "+log.Key().String(), "witness w1 "+witness.Key().String(), "quorum w1")
	kept700, witnessed950 := honest(700), cosign(t, honest(950), witness)

	modified := func(rehash bool) []Record {
		list := slices.Clone(records)
		list[500].Body = bytes.Replace(list[500].Body, []byte(`"attempt":0`), []byte(`"attempt":1`), 1)
		if rehash {
			list[500].Hash = LeafHash(list[500].Body)
		}
		return list
	}
	swapped := slices.Clone(records)
	swapped[500], swapped[501] = swapped[501], swapped[500]

	const silent = "silent"
	differs := func(n int) string { return fmt.Sprintf("root differs at %d", n) }
	truncated := func(has, ends int) string {
		return fmt.Sprintf("truncated: checkpoint has %d, file ends at %d", has, ends)
	}
	for _, row := range []struct {
		attack    string
		file      []Record
		beside    []byte // in the second column
		chain     string // reason and sequence
		own       string // the line that finds it
		auditor   string
		witness   string
		ownIsExit int
	}{
		{"none", records, honest(1000), silent, silent, silent, silent, 0},
		{"modify #500", modified(false), honest(1000), "content 500", "", "", "", 1},
		{"modify #500 and its own hash", modified(true), honest(1000), "predecessor 501", "", "", "", 1},
		{"delete #500", slices.Delete(slices.Clone(records), 500, 501), honest(1000), "predecessor 500", "", "", "", 1},
		{"insert a copy at #500", slices.Insert(slices.Clone(records), 500, records[500-1]), honest(1000), "predecessor 500", "", "", "", 1},
		{"swap #500, #501", swapped, honest(1000), "predecessor 500", "", "", "", 1},
		{"delete the head", records[1:], honest(1000), "predecessor 0", "", "", "", 1},
		{"cut to 980, checkpoint left there", records[:980], honest(1000), silent, truncated(1000, 980), silent, silent, 1},
		{"cut to 980, older checkpoint put back", records[:980], honest(980), silent, silent, silent, silent, 0},
		{"cut to 800, older checkpoint made", records[:800], honest(800), silent, silent, silent, truncated(950, 800), 0},
		{"cut to 600, older checkpoint made", records[:600], honest(600), silent, silent, truncated(700, 600), truncated(950, 600), 0},
		{"rewrite from #500, no key", rewritten(t, records, 500), honest(1000), silent, differs(1000), differs(700), differs(950), 1},
		{"the same, checkpoint removed", rewritten(t, records, 500), nil, silent, "signature: absent", differs(700), differs(950), 2},
		{"rewrite from #500 with the key", rewritten(t, records, 500), sign(t, checkpointOf(rewritten(t, records, 500)), log), silent, silent, differs(700), differs(950), 0},
		{"rewrite from #800 with the key", rewritten(t, records, 800), sign(t, checkpointOf(rewritten(t, records, 800)), log), silent, silent, silent, differs(950), 0},
		{"rewrite from #970 with the key", rewritten(t, records, 970), sign(t, checkpointOf(rewritten(t, records, 970)), log), silent, silent, silent, silent, 0},
		{"replace all with the key", rewritten(t, records, 0), sign(t, checkpointOf(rewritten(t, records, 0)), log), silent, silent, differs(700), differs(950), 0},
	} {
		t.Run(row.attack, func(t *testing.T) {
			file := export(row.file)
			size := len(row.file)
			if row.chain != silent {
				for column, e := range []Evidence{{}, {Policy: keys, Beside: row.beside}, {Policy: keys, Kept: [][]byte{kept700}}, {Policy: policy, Kept: [][]byte{witnessed950}}} {
					r := auditOf(t, e, file)
					if r.Chain != Broken || r.Bad == nil || fmt.Sprintf("%s %d", r.Bad.Reason, r.Bad.Sequence) != row.chain || r.ExitCode() != ExitDamaged {
						t.Errorf("column %d: got %v, exit %d, want %s, exit 1", column, r.Bad, r.ExitCode(), row.chain)
					}
				}
				return
			}
			// The chain alone: not one word of the chain is other than for the honest
			// file, and the report does not call it good.
			if r := auditOf(t, Evidence{}, file); r.Chain != Valid || r.ExitCode() != ExitUnproven || !strings.Contains(r.Text(), "signature: absent\n") {
				t.Errorf("chain alone: got exit %d\n%s", r.ExitCode(), r.Text())
			}
			check := func(column string, e Evidence, want, quiet string, quietExit int) {
				t.Helper()
				r := auditOf(t, e, file)
				exit := ExitDamaged
				if want == silent {
					want, exit = quiet, quietExit
				} else if want == "signature: absent" {
					exit = ExitUnproven
				}
				if !strings.Contains(r.Text(), "\n"+want+"\n") || r.ExitCode() != exit || r.Chain != Valid {
					t.Errorf("%s: got exit %d, want %d and %q in\n%s", column, r.ExitCode(), exit, want, r.Text())
				}
				if r.Explain() == "" || strings.Contains(r.Explain(), "immutable") {
					t.Errorf("%s: got explanation %q", column, r.Explain())
				}
			}
			check("own checkpoint", Evidence{Policy: keys, Beside: row.beside}, row.own, "signature: valid", ExitGood)
			check("auditor's 700", Evidence{Policy: keys, Kept: [][]byte{kept700}}, row.auditor,
				fmt.Sprintf("signature: valid to 699, %d records not anchored", size-700), ExitNotAnchored)
			check("witness 950", Evidence{Policy: policy, Kept: [][]byte{witnessed950}}, row.witness,
				fmt.Sprintf("signature: valid to 949, %d records not anchored", size-950), ExitNotAnchored)
			if got := auditOf(t, Evidence{Policy: keys, Beside: row.beside}, file).ExitCode(); got != row.ownIsExit {
				t.Errorf("own checkpoint: got exit %d, want %d", got, row.ownIsExit)
			}
			// What a careful auditor hands in: all of it at once.
			all := auditOf(t, Evidence{Policy: policy, Beside: row.beside, Kept: [][]byte{kept700, witnessed950}}, file)
			found := row.own != silent && row.own != "signature: absent" || row.auditor != silent || row.witness != silent
			if (all.ExitCode() == ExitDamaged) != found {
				t.Errorf("all evidence: got exit %d\n%s", all.ExitCode(), all.Text())
			}
		})
	}
}

// AU-03, AU-06, AU-28: the example of the requirement, 1,842 records from 91001 on.
func TestTheFiveLines(t *testing.T) {
	const from, n = 91001, 1842
	chain, err := NewChain(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	var tree Tree
	var prev Hash
	var lines []byte
	for i := range from + n {
		r, err := chain.Open(nil)
		if i > 0 {
			r, err = chain.Next(map[string]any{"event": "action.planned"})
		}
		if err != nil {
			t.Fatal(err)
		}
		chain.Commit()
		if i == from {
			if lines, err = AppendHeader(nil, testOrigin, from, prev, tree.Subtrees()); err != nil {
				t.Fatal(err)
			}
		}
		if i >= from {
			lines = AppendLine(lines, r)
		}
		tree.Add(r.Hash)
		prev = r.Hash
	}
	log := testSigner(t, testOrigin, "log")
	beside := sign(t, Checkpoint{testOrigin, tree.Size(), tree.Root()}, log)
	r := auditOf(t, Evidence{Policy: TrustLogs(log.Key()), Beside: beside}, lines)
	want := "records_checked: 1842\nfirst_sequence: 91001\nlast_sequence: 92842\nchain: valid\nsignature: valid\n"
	if r.Text() != want || r.ExitCode() != ExitGood {
		t.Errorf("got exit %d and\n%swant exit 0 and\n%s", r.ExitCode(), r.Text(), want)
	}
	// AU-28: the wrong key, of the same name.
	r = auditOf(t, Evidence{Policy: TrustLogs(testSigner(t, testOrigin, "another").Key()), Beside: beside}, lines)
	want = strings.Replace(want, "signature: valid", "signature: invalid", 1)
	if r.Text() != want || r.ExitCode() != ExitDamaged {
		t.Errorf("wrong key: got exit %d and\n%swant exit 1 and\n%s", r.ExitCode(), r.Text(), want)
	}
	// Without the range line the chain is checked, and the checkpoint cannot be.
	header, rest, _ := bytes.Cut(lines, []byte("#range"))
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	r = auditOf(t, Evidence{Policy: TrustLogs(log.Key()), Beside: beside}, slices.Concat(header, rest))
	if r.Chain != Valid || r.Signature.Kind != NotChecked || r.ExitCode() != ExitUnproven {
		t.Errorf("without range: got exit %d and\n%s", r.ExitCode(), r.Text())
	}
}

// AU-07, case 076, case 078: every other verdict has words and a code of its own.
func TestVerdictsOfAnAudit(t *testing.T) {
	records := exampleRecords(t, 40)
	file := export(records)
	log, other := testSigner(t, testOrigin, "log"), testSigner(t, "gw.example/audit/other", "other")
	w1, w2 := testCosigner(t, "w1.example"), testCosigner(t, "w2.example")
	keys := TrustLogs(log.Key(), other.Key())
	both := policyOf(t, "log "+log.Key().String(), "witness a "+w1.Key().String(), "witness b "+w2.Key().String(), "group g all a b", "quorum g")
	at := func(n int) []byte { return sign(t, checkpointOf(records[:n]), log) }
	torn := file[:len(file)-311]
	foreign := checkpointOf(records)
	foreign.Origin = other.Origin()
	for _, c := range []struct {
		name  string
		e     Evidence
		files [][]byte
		want  string // the last lines
		exit  int
	}{
		{"no checkpoint", Evidence{Policy: keys}, [][]byte{file}, "chain: valid\nsignature: absent\n", 2},
		{"no key", Evidence{Beside: at(40)}, [][]byte{file}, "chain: valid\nsignature: unchecked\n", 2},
		{"no key, kept", Evidence{Kept: [][]byte{at(30)}}, [][]byte{file}, "signature: unchecked\nanchoring: valid to 29, 10 records not anchored\n", 2},
		{"older checkpoint", Evidence{Policy: keys, Beside: at(39)}, [][]byte{file}, "signature: valid to 38, 1 record not anchored\n", 3},
		{"of an empty journal", Evidence{Policy: keys, Beside: at(0)}, [][]byte{file}, "signature: valid for no record, 40 records not anchored\n", 3},
		{"beside and kept", Evidence{Policy: keys, Beside: at(40), Kept: [][]byte{at(7), at(30)}}, [][]byte{file}, "signature: valid\nanchoring: valid to 29, 10 records not anchored\n", 0},
		{"kept is newer", Evidence{Policy: keys, Beside: at(20), Kept: [][]byte{at(40)}}, [][]byte{file}, "signature: valid\nanchoring: valid\n", 0},
		{"kept is newer than the file", Evidence{Policy: keys, Beside: at(38), Kept: [][]byte{at(40)}}, [][]byte{export(records[:38])}, "signature: valid\ntruncated: checkpoint has 40, file ends at 38\n", 1},
		{"all gone", Evidence{Policy: keys, Beside: at(40)}, [][]byte{nil}, "records_checked: 0\nchain: unchecked\ntruncated: checkpoint has 40, file ends at 0\n", 1},
		{"nothing at all", Evidence{Policy: keys}, nil, "records_checked: 0\nchain: unchecked\nsignature: absent\n", 2},
		{"of another journal", Evidence{Policy: keys, Beside: sign(t, foreign, other)}, [][]byte{file}, "chain: valid\nsignature: invalid\n", 1},
		{"not a note", Evidence{Policy: keys, Beside: []byte("x")}, [][]byte{file}, "signature: invalid\n", 1},
		{"kept is not a note", Evidence{Policy: keys, Beside: at(40), Kept: [][]byte{nil, {}, []byte("x")}}, [][]byte{file}, "signature: valid\nanchoring: invalid\n", 1},
		{"torn", Evidence{Policy: keys, Beside: at(39)}, [][]byte{torn}, fmt.Sprintf("chain: broken\nfirst_bad_sequence: 39\nreason: torn_tail\ntorn_tail: %d bytes\nsignature: valid\n", len(torn)-len(export(records[:39]))), 1},
		{"quorum", Evidence{Policy: both, Beside: cosign(t, at(40), w1, w2)}, [][]byte{file}, "signature: valid\nanchoring: valid\n", 0},
		{"one witness of two", Evidence{Policy: both, Beside: cosign(t, at(40), w1)}, [][]byte{file}, "signature: valid\nanchoring: absent\n", 2},
		{"tail that no witness saw", Evidence{Policy: both, Beside: at(40), Kept: [][]byte{cosign(t, at(35), w2, w1)}}, [][]byte{file}, "signature: valid\nanchoring: valid to 34, 5 records not anchored\n", 3},
		{"segments", Evidence{Policy: keys, Beside: at(40)}, [][]byte{export(records[:9]), part(t, records[:20], 9), part(t, records, 20)}, "first_sequence: 0\nlast_sequence: 39\nchain: valid\nsignature: valid\n", 0},
		{"oldest segment removed", Evidence{Policy: keys, Beside: at(40)}, [][]byte{part(t, records[:20], 9), part(t, records, 20)}, "first_sequence: 9\nlast_sequence: 39\nchain: valid\nsignature: valid\n", 0},
		{"oldest segment removed, whole asked for", Evidence{Policy: keys, Beside: at(40), Whole: true}, [][]byte{part(t, records, 20)}, "chain: valid\nmissing: records 0 to 19\nsignature: valid\n", 1},
		{"segment missing between", Evidence{Policy: keys, Beside: at(40)}, [][]byte{export(records[:9]), part(t, records, 20)}, "chain: broken\nfirst_bad_sequence: 9\nreason: missing\nmissing: records 9 to 19\nsignature: unchecked\n", 1},
		{"segment twice", Evidence{Policy: keys, Beside: at(40)}, [][]byte{export(records[:9]), export(records[:9])}, "reason: sequence\nexpected_sequence: 9\nobserved_sequence: 0\nsignature: unchecked\n", 1},
		{"checkpoint before the file", Evidence{Policy: keys, Beside: at(40), Kept: [][]byte{at(9)}}, [][]byte{part(t, records, 20)}, "signature: valid\nanchoring: unchecked\n", 2},
		{"checkpoint at the start", Evidence{Policy: keys, Beside: at(40), Kept: [][]byte{at(20)}}, [][]byte{part(t, records, 20)}, "signature: valid\nanchoring: valid to 19, 20 records not anchored\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := auditOf(t, c.e, c.files...)
			if !strings.HasSuffix("\n"+r.Text(), "\n"+c.want) || r.ExitCode() != c.exit {
				t.Errorf("got exit %d and\n%swant exit %d and\n%s", r.ExitCode(), r.Text(), c.exit, c.want)
			}
		})
	}
}

// AU-12: the report in words claims what was proved, and says what was not. It never
// calls a file immutable.
func TestExplanationsAreExact(t *testing.T) {
	records := exampleRecords(t, 40)
	log, w := testSigner(t, testOrigin, "log"), testCosigner(t, "w1.example")
	keys := TrustLogs(log.Key())
	policy := policyOf(t, "log "+log.Key().String(), "witness one "+w.Key().String(), "quorum one")
	at := func(n int) []byte { return sign(t, checkpointOf(records[:n]), log) }
	for _, c := range []struct {
		name string
		e    Evidence
		file []byte
		says []string
		not  []string
	}{
		{"all well", Evidence{Policy: keys, Beside: at(40)}, export(records),
			[]string{"Records 0 to 39", "which the log has signed", "No damage", "can write the whole file and its checkpoint anew"}, []string{"not anchored"}},
		{"no checkpoint", Evidence{}, export(records), []string{"Who wrote these records", "cut off at the end"}, []string{"signed"}},
		{"tail", Evidence{Policy: keys, Beside: at(30)}, export(records), []string{"The last 10 records", "not anchored"}, nil},
		{"witness", Evidence{Policy: policy, Beside: at(40), Kept: [][]byte{cosign(t, at(30), w)}}, export(records),
			[]string{"The witness one saw", "2026-10-05T10:00:00Z", "outside has seen the last 10 records"}, []string{"can write the whole file"}},
		{"cut", Evidence{Policy: keys, Beside: at(40)}, export(records[:38]), []string{"2 records at the end were cut off"}, []string{"No damage"}},
		{"rewritten with the key", Evidence{Policy: keys, Kept: [][]byte{at(30)}}, export(rewritten(t, records, 20)), []string{"The log has signed other records than these"}, []string{"No damage"}},
		{"torn", Evidence{Policy: keys, Beside: at(39)}, export(records)[:len(export(records))-5], []string{"ends inside a line", "A crash", "nothing was repaired"}, []string{"tamper", "changed after"}}, // case 078
		{"middle", Evidence{Policy: keys, Beside: at(40)}, part(t, records, 20), []string{"Anything about the 20 records before the first one"}, nil},
	} {
		text := auditOf(t, c.e, c.file).Explain()
		for _, want := range append(c.says, "An action that was never written cannot be found here") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, text)
			}
		}
		for _, word := range append(c.not, "immutable", "%!", "<nil>") {
			if strings.Contains(text, word) {
				t.Errorf("%s: %q is in\n%s", c.name, word, text)
			}
		}
	}
}

// Exit 4: a file that cannot be read to its end gets no verdict, and what was found
// before is kept.
func TestUnreadableIsNoVerdict(t *testing.T) {
	file := export(exampleRecords(t, 5))
	r, err := Audit(Evidence{}, io.MultiReader(bytes.NewReader(file), iotest.ErrReader(errors.New("disk on fire"))))
	if err == nil || r.ExitCode() != ExitUnreadable || r.Chain != Unchecked || !strings.Contains(r.Text(), "unreadable: after 5\n") {
		t.Errorf("got %v, exit %d\n%s", err, r.ExitCode(), r.Text())
	}
	if (Report{}).ExitCode() == ExitGood {
		t.Error("a report of nothing is good")
	}
}

func TestAuditTellsItsProgress(t *testing.T) {
	file := export(exampleRecords(t, 300))
	var last int64
	r := auditOf(t, Evidence{Progress: func(n int64) {
		if n < last {
			t.Errorf("progress went back from %d to %d", last, n)
		}
		last = n
	}}, file)
	if last != int64(len(file)) || r.RecordsChecked != 300 {
		t.Errorf("got %d bytes of %d", last, len(file))
	}
}

// AU-08: any bit flipped, any byte removed or inserted, and any cut of the file gets
// exit 1 under its checkpoint, the silent cuts of the chain included.
func TestNoDamageEscapesAnAudit(t *testing.T) {
	t.Parallel()
	file, ends := smallJournal(t)
	log := testSigner(t, "gw.example/audit/small", "log")
	result := verifyLines(t, file)
	// Without a key, because a signature costs more than the rest: undamaged is unproven.
	e := Evidence{Beside: sign(t, Checkpoint{result.Origin, result.RecordsChecked, result.Root}, log)}
	if r := auditOf(t, e, file); r.ExitCode() != ExitUnproven {
		t.Fatalf("undamaged: got\n%s", r.Text())
	}
	trial := func(what string, i int, damaged []byte) {
		if r := auditOf(t, e, damaged); r.ExitCode() != ExitDamaged {
			t.Fatalf("%s at %d: got exit %d\n%s", what, i, r.ExitCode(), r.Text())
		}
	}
	step, first := every(t)
	trials := 0
	for i := first; i < len(file); i += step {
		for bit := range 8 {
			damaged := slices.Clone(file)
			damaged[i] ^= 1 << bit
			trial("bit", i, damaged)
		}
		trial("deletion", i, slices.Delete(slices.Clone(file), i, i+1))
		trial("insertion", i, slices.Insert(slices.Clone(file), i, '\n'))
		trial("cut", i, file[:i])
		trials += 11
	}
	for _, end := range ends[:len(ends)-1] {
		trial("cut at a border", end, file[:end])
	}
	t.Logf("%d trials", trials)
}

// AU-24: rotated three times; the set verifies, and so does the rest after the oldest
// was removed. Joined without their headers the segments are the export, byte for byte.
func TestRotation(t *testing.T) {
	records := exampleRecords(t, 50)
	log := testSigner(t, testOrigin, "log")
	var files [4]bytes.Buffer
	e, err := NewExporter(&files[0], testOrigin, 0, Hash{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if i == 10 || i == 11 || i == 37 {
			if err := e.Rotate(&files[map[int]int{10: 1, 11: 2, 37: 3}[i]]); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	c, ok := e.Checkpoint()
	if !ok || c != checkpointOf(records) {
		t.Fatalf("got %v, want %v", c, checkpointOf(records))
	}
	var segments [][]byte
	var joined []byte
	for i := range files {
		segments = append(segments, files[i].Bytes())
		for line := range bytes.Lines(files[i].Bytes()) {
			if line[0] != '#' {
				joined = append(joined, line...)
			}
		}
	}
	if !bytes.Equal(joined, export(records)) {
		t.Error("the segments are not the export")
	}
	evidence := Evidence{Policy: TrustLogs(log.Key()), Beside: sign(t, c, log)}
	for oldest := range segments {
		if r := auditOf(t, evidence, segments[oldest:]...); r.ExitCode() != ExitGood {
			t.Errorf("from segment %d: got\n%s", oldest, r.Text())
		}
	}
	if err := e.Write(records[3]); err == nil {
		t.Error("a record out of order was exported")
	}
	for _, broken := range []string{"#prev", "#range", "#deed-journal"} {
		damaged := slices.Clone(segments)
		at := bytes.Index(damaged[2], []byte(broken)) + len(broken) + 5
		damaged[2] = slices.Clone(damaged[2])
		damaged[2][at] ^= 1
		if r := auditOf(t, evidence, damaged...); r.ExitCode() != ExitDamaged || r.Bad == nil || r.Bad.Sequence != 11 {
			t.Errorf("%s changed: got\n%s", broken, r.Text())
		}
	}
}

func TestAuditCostsNoMemoryPerRecord(t *testing.T) {
	records := exampleRecords(t, 1000)
	file, log := export(records), testSigner(t, testOrigin, "log")
	e := Evidence{Policy: TrustLogs(log.Key())}
	count := func(n int) float64 {
		e.Beside = sign(t, checkpointOf(records[:n]), log)
		lines := file[:len(export(records[:n]))]
		return testing.AllocsPerRun(5, func() { auditOf(t, e, lines) })
	}
	if few, many := count(10), count(1000); many-few > 50 {
		t.Errorf("got %v allocations for 10 records and %v for 1,000, want at most 50 more", few, many)
	}
}

func BenchmarkAudit(b *testing.B) {
	const n = 1000
	records := exampleRecords(b, n)
	lines, log := export(records), testSigner(b, testOrigin, "log")
	e := Evidence{Policy: TrustLogs(log.Key()), Beside: sign(b, checkpointOf(records), log)}
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		if r := auditOf(b, e, lines); r.ExitCode() != ExitGood {
			b.Fatal(r.Text())
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
}
