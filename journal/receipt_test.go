package journal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/merkle/compact"
	merkleproof "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// memory is a side table of tree hashes.
type memory []tlog.Hash

func (m memory) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var list []tlog.Hash
	for _, i := range indexes {
		if i < 0 || i >= int64(len(m)) {
			return nil, fmt.Errorf("no hash %d", i)
		}
		list = append(list, m[i])
	}
	return list, nil
}

// store keeps what Tree.Add says, where it says.
func store(t testing.TB, tree *Tree, m *memory, record Hash) {
	t.Helper()
	first, hashes := tree.Add(record)
	if first != int64(len(*m)) {
		t.Fatalf("got first index %d, want %d: the table has no gaps", first, len(*m))
	}
	*m = append(*m, theirs(hashes)...)
}

// AU-03, AU-10: what is stored, the roots and all proofs up to 130 records, judged by
// x/mod and by transparency-dev/merkle.
func TestTreeAgainstOthers(t *testing.T) {
	const n = 130
	var tree Tree
	var stored memory
	var want memory
	judge := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	var roots []Checkpoint
	for i := range n {
		loaded, err := LoadTree(uint64(i), stored)
		if err != nil || loaded.tree.root() != tree.root() || !slices.Equal(loaded.Subtrees(), tree.Subtrees()) {
			t.Fatalf("%d records: got another tree back, %v", i, err)
		}
		roots = append(roots, Checkpoint{testOrigin, uint64(i), tree.Root()})
		leaf := LeafHash([]byte{byte(i)})
		store(t, &tree, &stored, leaf)
		hashes, err := tlog.StoredHashesForRecordHash(int64(i), tlog.Hash(leaf), want)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, hashes...)
		if err := judge.Append(leaf[:], nil); err != nil {
			t.Fatal(err)
		}
		root, err := judge.GetRootHash(nil)
		if got := tree.Root(); err != nil || !bytes.Equal(got[:], root) || !slices.Equal(stored, want) || StoredHashes(tree.Size()) != int64(len(want)) {
			t.Fatalf("%d records: got root %s, merkle has %x, %v", i+1, got, root, err)
		}
	}
	roots = append(roots, Checkpoint{testOrigin, n, tree.Root()})
	raw := func(hashes []Hash) (list [][]byte) {
		for _, h := range hashes {
			list = append(list, h[:])
		}
		return list
	}
	for size := uint64(1); size <= n; size++ {
		root := roots[size].Root
		for i := range size {
			leaf := LeafHash([]byte{byte(i)})
			p, err := ProveInclusion(size, i, stored)
			if err != nil || CheckInclusion(p, size, root, i, leaf) != nil || CheckInclusion(p, size, root, i, Hash{}) == nil {
				t.Fatalf("record %d of %d: %v", i, size, err)
			}
			if err := merkleproof.VerifyInclusion(rfc6962.DefaultHasher, i, size, leaf[:], raw(p), root[:]); err != nil {
				t.Fatalf("record %d of %d: merkle: %v", i, size, err)
			}
		}
		for old := uint64(1); old <= size; old++ {
			p, err := ProveConsistency(old, size, stored)
			if err != nil || CheckConsistency(p, roots[old], roots[size]) != nil {
				t.Fatalf("%d to %d: %v", old, size, err)
			}
			if err := merkleproof.VerifyConsistency(rfc6962.DefaultHasher, old, size, raw(p), roots[old].Root[:], root[:]); err != nil {
				t.Fatalf("%d to %d: merkle: %v", old, size, err)
			}
			lie := roots[old]
			lie.Root[3] ^= 1
			if CheckConsistency(p, lie, roots[size]) == nil {
				t.Fatalf("%d to %d: another history was accepted", old, size)
			}
		}
	}
	foreign := roots[1]
	foreign.Origin = "b"
	if CheckConsistency(nil, roots[0], roots[5]) != nil || CheckConsistency(nil, Checkpoint{testOrigin, 0, Hash{}}, roots[5]) == nil ||
		CheckConsistency(nil, foreign, roots[1]) == nil || CheckConsistency(nil, roots[5], roots[1]) == nil {
		t.Error("empty, foreign or shrinking journals")
	}
	if _, err := ProveInclusion(n+10, n+9, stored); err == nil {
		t.Error("a proof was made from hashes that are not there")
	}
}

// journalOfActions has n records: the opening, and actions of one to five events that
// run side by side. chains are the numbers of the records of each action, newest first,
// for each record.
func journalOfActions(t testing.TB, n int) (records []Record, stored memory, chains [][]int) {
	t.Helper()
	chain, err := NewChain(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	var tree Tree
	last := map[int]int{}
	for i := range n {
		r, err := chain.Open(nil)
		mine := []int{i}
		if i > 0 {
			action := 100*(i%7) + i/35 // a new one after five events
			fields := map[string]any{"event": "action.changed", "action_id": fmt.Sprintf("act_%d", action)}
			if before, ok := last[action]; ok {
				fields["after"] = records[before].Hash
				mine = append(mine, chains[before]...)
			}
			last[action] = i
			r, err = chain.Next(fields)
		}
		if err != nil {
			t.Fatal(err)
		}
		records, chains = append(records, r), append(chains, mine)
		store(t, &tree, &stored, r.Hash)
	}
	return records, stored, chains
}

func bodiesOf(records []Record, numbers []int) (bodies [][]byte) {
	for _, i := range numbers {
		bodies = append(bodies, records[i].Body)
	}
	return bodies
}

func reseal(extra [][]byte, text []byte) []byte {
	lines := bytes.SplitN(text, []byte("\n"), 3)
	lines[1] = []byte("extra " + base64.StdEncoding.EncodeToString(bytes.Join(extra, []byte("\n"))))
	return bytes.Join(lines, []byte("\n"))
}

// AU-09, and test 9 of the format: the receipt of every event of 300, with every hash
// flipped, extra and index changed, and a checkpoint of another origin.
func TestReceiptOfEveryEvent(t *testing.T) {
	records, stored, chains := journalOfActions(t, 300)
	log, other := testSigner(t, testOrigin, "log"), testSigner(t, "gw.example/audit/other", "other")
	policy := TrustLogs(log.Key())
	c := checkpointOf(records)
	signed := sign(t, c, log)
	foreign := c
	foreign.Origin = other.Origin()
	foreignNote := sign(t, foreign, other)
	refused := func(what string, text []byte, p *Policy, problems ...ReceiptProblem) {
		t.Helper()
		report, err := VerifyReceipt(text, p)
		var broken *ReceiptError
		if !errors.As(err, &broken) || len(problems) > 0 && !slices.Contains(problems, broken.Problem) || broken.Error() == "" || report.Bodies != nil {
			t.Fatalf("%s: got %v, want %s", what, err, problems)
		}
	}
	for i := range records {
		bodies := bodiesOf(records, chains[i])
		text, err := MakeReceipt(bodies, stored, signed)
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		report, err := VerifyReceipt(text, policy)
		if err != nil || report.Index != uint64(i) || report.Origin != testOrigin || report.Checkpoint.Size != 300 || !slices.EqualFunc(report.Bodies, bodies, bytes.Equal) {
			t.Fatalf("record %d: got %+v, %v", i, report, err)
		}
		var judge proof.TLogProof
		if err := judge.Unmarshal(text); err != nil || judge.Index != uint64(i) || !bytes.Equal(judge.ExtraData, bytes.Join(bodies, []byte("\n"))) || !bytes.Equal(judge.Marshal(), text) {
			t.Fatalf("record %d: transparency-dev reads another proof: %v", i, err)
		}
		if i%10 != 0 && i < 290 {
			continue // the damages, for every tenth
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		for k := 3; lines[k][0] != '\n'; k++ {
			flipped := slices.Clone(lines)
			flipped[k] = bytes.Clone(lines[k])
			h, _ := parseBase64Hash(string(bytes.TrimSpace(flipped[k])))
			h[k%32] ^= 4
			copy(flipped[k], base64.StdEncoding.EncodeToString(h[:]))
			refused(fmt.Sprintf("record %d, hash %d flipped", i, k), bytes.Join(flipped, nil), policy, ReceiptInclusion)
			refused("hash removed", bytes.Join(slices.Delete(slices.Clone(lines), k, k+1), nil), policy, ReceiptInclusion)
		}
		refused("one hash more", bytes.Replace(text, []byte("\n\n"), []byte("\n"+strings.Repeat("A", 43)+"=\n\n"), 1), policy, ReceiptInclusion)
		refused("another index", bytes.Replace(text, fmt.Appendf(nil, "\nindex %d\n", i), fmt.Appendf(nil, "\nindex %d\n", (i+1)%300), 1), policy, ReceiptIndex)
		refused("index in another spelling", bytes.Replace(text, []byte("\nindex "), []byte("\nindex 0"), 1), policy, ReceiptMalformed)
		for k := range bodies {
			changed := slices.Clone(bodies)
			changed[k] = bytes.Replace(bodies[k], []byte(`"v":1`), []byte(`"w":1`), 1)
			refused("a name changed", reseal(changed, text), policy, ReceiptProfile)
			changed[k] = bytes.Replace(bodies[k], []byte(`"event":"`), []byte(`"event":"x`), 1)
			refused("a value changed", reseal(changed, text), policy, ReceiptInclusion, ReceiptAfter)
			refused("a body left out", reseal(slices.Delete(slices.Clone(bodies), k, k+1), text), policy)
			refused("a body twice", reseal(slices.Insert(slices.Clone(bodies), k, bodies[k]), text), policy)
			refused("an empty body", reseal(slices.Insert(slices.Clone(bodies), k, nil), text), policy, ReceiptProfile)
		}
		refused("a body of another action", reseal(append(slices.Clone(bodies), records[0].Body), text), policy, ReceiptAfter)
		at := bytes.Index(text, []byte("\n\n")) + 2
		swapped := append(bytes.Clone(text[:at]), foreignNote...)
		refused("checkpoint of another origin", swapped, policy, ReceiptCheckpoint)
		refused("no signature", append(bytes.Clone(text[:at]), c.String()...), policy, ReceiptCheckpoint)
		refused("another key", text, TrustLogs(other.Key()), ReceiptCheckpoint)
		refused("two at once", append(bytes.Clone(text), text...), policy)
		for cut := 0; cut < len(text); cut += 41 {
			refused("cut", text[:cut], policy)
		}
	}
	if _, err := MakeReceipt(nil, stored, signed); err == nil {
		t.Error("a receipt of nothing was made")
	}
	if _, err := MakeReceipt(bodiesOf(records, chains[299]), stored, sign(t, checkpointOf(records[:200]), log)); err == nil {
		t.Error("a receipt was made against an older checkpoint")
	}
	if _, err := MakeReceipt(bodiesOf(records, chains[299])[:1], stored, signed); err == nil {
		t.Error("a receipt was made without the earlier events")
	}
	if _, err := MakeReceipt(bodiesOf(records, chains[299]), stored, sign(t, Checkpoint{testOrigin, 300, Hash{1}}, log)); err == nil {
		t.Error("a receipt was made against the checkpoint of another journal")
	}
}

// A receipt under a policy needs the witnesses that the policy asks for, and says who
// they were.
func TestReceiptUnderAPolicy(t *testing.T) {
	records, stored, chains := journalOfActions(t, 40)
	log, w := testSigner(t, testOrigin, "log"), testCosigner(t, "witness.example/w1")
	p := policyOf(t, "log "+log.Key().String(), "witness one "+w.Key().String(), "quorum one")
	signed := sign(t, checkpointOf(records), log)
	bare, err := MakeReceipt(bodiesOf(records, chains[39]), stored, signed)
	if err != nil {
		t.Fatal(err)
	}
	var problem *SignatureError
	if _, err := VerifyReceipt(bare, p); !errors.As(err, &problem) || problem.Problem != ProblemQuorum {
		t.Errorf("got %v, want the quorum missed", err)
	}
	seen, err := MakeReceipt(bodiesOf(records, chains[39]), stored, cosign(t, signed, w))
	if err != nil {
		t.Fatal(err)
	}
	report, err := VerifyReceipt(seen, p)
	if err != nil || len(report.Checkpoint.Cosignatures) != 1 || report.Checkpoint.Cosignatures[0].Witness != "one" {
		t.Errorf("got %+v, %v", report, err)
	}
}

// A log may sign a record that names, as the one before it, an event that cannot have
// been before.
func TestReceiptGoesBackInTime(t *testing.T) {
	later, err := Encode(map[string]any{"event": "action.changed", "prev": Hash{1}, "seq": 9, "v": 1})
	if err != nil {
		t.Fatal(err)
	}
	chain, opening := openedChain(t)
	r, err := chain.Next(map[string]any{"event": "action.changed", "after": LeafHash(later)})
	if err != nil {
		t.Fatal(err)
	}
	var tree Tree
	var stored memory
	store(t, &tree, &stored, opening.Hash)
	store(t, &tree, &stored, r.Hash)
	signed := sign(t, Checkpoint{testOrigin, 2, tree.Root()}, testSigner(t, testOrigin, "log"))
	var broken *ReceiptError
	if _, err := MakeReceipt([][]byte{r.Body, later}, stored, signed); !errors.As(err, &broken) || broken.Problem != ReceiptAfter {
		t.Errorf("got %v, want %s", err, ReceiptAfter)
	}
}

func BenchmarkVerifyReceipt(b *testing.B) {
	records, stored, chains := journalOfActions(b, 300)
	log := testSigner(b, testOrigin, "log")
	text, err := MakeReceipt(bodiesOf(records, chains[299]), stored, sign(b, checkpointOf(records), log))
	if err != nil {
		b.Fatal(err)
	}
	policy := TrustLogs(log.Key())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := VerifyReceipt(text, policy); err != nil {
			b.Fatal(err)
		}
	}
}
