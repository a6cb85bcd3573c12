package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/vectors/audit.json anew; read the difference before it is kept")

const auditVectorsFile = "../docs/vectors/audit.json"

// auditVectors is docs/vectors/audit.json. Bytes are base64, as encoding/json has it.
type auditVectors struct {
	Checkpoints []checkpointVector `json:"checkpoints"`
	Policies    []policyVector     `json:"policies"`
	Audits      []auditVector      `json:"audits"`
	Receipts    []receiptVector    `json:"receipts"`
}

type checkpointVector struct {
	Name      string   `json:"name"`
	Policy    string   `json:"policy"`
	Note      []byte   `json:"note_base64"`
	Origin    string   `json:"origin,omitempty"`
	Size      uint64   `json:"size,omitempty"`
	Root      string   `json:"root,omitempty"`
	Witnesses []string `json:"witnesses,omitempty"`
	Times     []int64  `json:"times,omitempty"`
	Quorum    bool     `json:"quorum,omitempty"`
	Refused   string   `json:"refused,omitempty"`
}

type policyVector struct {
	Name        string `json:"name"`
	Policy      string `json:"policy"`
	Logs        int    `json:"logs,omitempty"`
	Witnesses   int    `json:"witnesses,omitempty"`
	RefusedLine *int   `json:"refused_line,omitempty"`
}

type auditVector struct {
	Name   string   `json:"name"`
	Policy string   `json:"policy,omitempty"`
	Beside []byte   `json:"beside_base64,omitempty"`
	Kept   [][]byte `json:"kept_base64,omitempty"`
	Whole  bool     `json:"whole,omitempty"`
	Files  [][]byte `json:"files_base64"`
	Text   string   `json:"text"`
	Exit   int      `json:"exit"`
}

type receiptVector struct {
	Name    string   `json:"name"`
	Policy  string   `json:"policy"`
	Receipt []byte   `json:"receipt_base64"`
	Origin  string   `json:"origin,omitempty"`
	Index   uint64   `json:"index,omitempty"`
	Size    uint64   `json:"size,omitempty"`
	Bodies  []string `json:"bodies,omitempty"`
	Refused string   `json:"refused,omitempty"`
}

func loadAuditVectors(t testing.TB) (v auditVectors) {
	t.Helper()
	data, err := os.ReadFile(auditVectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Checkpoints) == 0 || len(v.Policies) == 0 || len(v.Audits) == 0 || len(v.Receipts) == 0 {
		t.Fatal("the vector file is empty")
	}
	return v
}

// answer fills in what this implementation says.
func (c *checkpointVector) answer(t testing.TB) {
	p := policyOf(t, strings.TrimSuffix(c.Policy, "\n"))
	opened, err := p.Open(c.Note)
	*c = checkpointVector{Name: c.Name, Policy: c.Policy, Note: c.Note}
	var problem *SignatureError
	if errors.As(err, &problem) {
		c.Refused = string(problem.Problem)
		return
	}
	c.Origin, c.Size, c.Root, c.Quorum = opened.Origin, opened.Size, opened.Root.String(), opened.Quorum
	for _, w := range opened.Cosignatures {
		c.Witnesses, c.Times = append(c.Witnesses, w.Witness), append(c.Times, w.Time.Unix())
	}
}

func (p *policyVector) answer(testing.TB) {
	parsed, err := ParsePolicy([]byte(p.Policy))
	*p = policyVector{Name: p.Name, Policy: p.Policy}
	var broken *PolicyError
	if errors.As(err, &broken) {
		p.RefusedLine = &broken.Line
		return
	}
	p.Logs, p.Witnesses = len(parsed.Logs), len(parsed.Witnesses)
}

func (a *auditVector) answer(t testing.TB) {
	e := Evidence{Beside: a.Beside, Kept: a.Kept, Whole: a.Whole}
	if a.Policy != "" {
		e.Policy = policyOf(t, strings.TrimSuffix(a.Policy, "\n"))
	}
	var readers []io.Reader
	for _, f := range a.Files {
		readers = append(readers, bytes.NewReader(f))
	}
	r, err := Audit(e, readers...)
	if err != nil {
		t.Fatal(err)
	}
	a.Text, a.Exit = r.Text(), r.ExitCode()
}

func (v *receiptVector) answer(t testing.TB) {
	report, err := VerifyReceipt(v.Receipt, policyOf(t, strings.TrimSuffix(v.Policy, "\n")))
	*v = receiptVector{Name: v.Name, Policy: v.Policy, Receipt: v.Receipt}
	var broken *ReceiptError
	if errors.As(err, &broken) {
		v.Refused = string(broken.Problem)
		return
	}
	v.Origin, v.Index, v.Size = report.Origin, report.Index, report.Checkpoint.Size
	for _, body := range report.Bodies {
		v.Bodies = append(v.Bodies, string(body))
	}
}

// AU-05: the verdicts, words and codes that every implementation must give.
func TestAuditVectors(t *testing.T) {
	if *update {
		writeAuditVectors(t)
	}
	same := func(name string, got, want any) {
		t.Helper()
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		if !bytes.Equal(g, w) {
			t.Errorf("%s: got  %s\nwant %s", name, g, w)
		}
	}
	reasons, kinds, exits := map[string]bool{}, map[string]bool{}, map[int]bool{}
	v := loadAuditVectors(t)
	for _, want := range v.Checkpoints {
		got := want
		got.answer(t)
		same(want.Name, got, want)
	}
	for _, want := range v.Policies {
		got := want
		got.answer(t)
		same(want.Name, got, want)
	}
	for _, want := range v.Audits {
		got := want
		got.answer(t)
		same(want.Name, got, want)
		exits[want.Exit] = true
		for line := range strings.Lines(want.Text) {
			if reason, ok := strings.CutPrefix(line, "reason: "); ok {
				reasons[strings.TrimSpace(reason)] = true
			}
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == "signature:" {
				word, _, _ = strings.Cut(rest, ",")
				kinds[strings.TrimRight(word, "0123456789")] = true
			} else {
				kinds[strings.TrimSuffix(word, ":")] = true
			}
		}
	}
	problems := map[string]bool{}
	for _, want := range v.Receipts {
		got := want
		got.answer(t)
		same(want.Name, got, want)
		problems[want.Refused] = true
	}
	for _, reason := range []Reason{ReasonTornTail, ReasonFraming, ReasonContent, ReasonProfile, ReasonPredecessor, ReasonSequence, ReasonMissing, ReasonHeader} {
		if !reasons[string(reason)] {
			t.Errorf("no vector for the reason %s", reason)
		}
	}
	for _, kind := range []string{"valid", "valid to ", "absent", "invalid", "unchecked", "truncated", "root", "anchoring", "missing"} {
		if !kinds[kind] {
			t.Errorf("no vector for the verdict %q", kind)
		}
	}
	for _, p := range []ReceiptProblem{"", ReceiptMalformed, ReceiptCheckpoint, ReceiptProfile, ReceiptIndex, ReceiptInclusion, ReceiptAfter, ReceiptAction} {
		if !problems[string(p)] {
			t.Errorf("no vector for the receipt problem %q", p)
		}
	}
	for _, exit := range []int{ExitGood, ExitDamaged, ExitUnproven, ExitNotAnchored} {
		if !exits[exit] {
			t.Errorf("no vector for exit code %d", exit)
		}
	}
}

// writeAuditVectors makes the inputs; the answers are this implementation's and are to
// be read before they are kept.
func writeAuditVectors(t *testing.T) {
	records, stored, chains := journalOfActions(t, 24)
	file := export(records)
	log, other := testSigner(t, testOrigin, "log"), testSigner(t, "gw.example/audit/other", "other")
	w1, w2 := testCosigner(t, "w1.example"), testCosigner(t, "w2.example")
	key := "log " + log.Key().String() + "\n"
	keys := key + "quorum none\n"
	twoLogs := key + "log " + other.Key().String() + "\nquorum none\n"
	both := key + "witness a " + w1.Key().String() + "\nwitness b " + w2.Key().String() + "\ngroup g all a b\nquorum g\n"
	wrong := "log " + testSigner(t, testOrigin, "another").Key().String() + "\nquorum none\n"
	at := func(n int) []byte { return sign(t, checkpointOf(records[:n]), log) }
	foreign := checkpointOf(records)
	foreign.Origin = other.Origin()
	forged := bytes.Replace(at(24), []byte("\n24\n"), []byte("\n23\n"), 1)
	change := func(i int, old, new string, rehash bool) []byte {
		list := slices.Clone(records)
		list[i].Body = bytes.Replace(list[i].Body, []byte(old), []byte(new), 1)
		if rehash {
			list[i].Hash = LeafHash(list[i].Body)
		}
		return export(list)
	}
	renumbered := func() []byte {
		body := bytes.Replace(records[23].Body, []byte(`"seq":23`), []byte(`"seq":24`), 1)
		return export(append(slices.Clone(records[:23]), Record{LeafHash(body), body}))
	}
	noRange := part(t, records, 9)
	noRange = slices.Concat(noRange[:bytes.Index(noRange, []byte("#range"))], export(records[9:]))
	otherHeader := bytes.Replace(part(t, records, 9), []byte(testOrigin), []byte(other.Origin()), 1)

	var v auditVectors
	v.Checkpoints = []checkpointVector{
		{Name: "signed by the log", Policy: keys, Note: at(24)},
		{Name: "with cosignatures", Policy: both, Note: cosign(t, at(24), w2, w1)},
		{Name: "with one cosignature of two", Policy: both, Note: cosign(t, at(24), w1)},
		{Name: "of an empty journal", Policy: keys, Note: at(0)},
		{Name: "another key", Policy: wrong, Note: at(24)},
		{Name: "size changed", Policy: keys, Note: forged},
		{Name: "origin of another log of the policy", Policy: "log " + other.Key().String() + "\nquorum none\n", Note: at(24)},
		{Name: "no signature", Policy: keys, Note: []byte(foreign.String())},
		{Name: "size with a leading zero", Policy: keys, Note: bytes.Replace(at(24), []byte("\n24\n"), []byte("\n024\n"), 1)},
	}
	v.Policies = []policyVector{
		{Name: "one log", Policy: keys}, {Name: "two witnesses", Policy: both}, {Name: "comments and space", Policy: "# c\n\n \tlog  " + log.Key().String() + "\thttps://gw.example/ \nquorum none\n"},
		{Name: "no quorum", Policy: key}, {Name: "last line cut", Policy: "quorum none"}, {Name: "a log twice", Policy: key + key + "quorum none\n"},
		{Name: "a witness as a log", Policy: "log " + w1.Key().String() + "\nquorum none\n"}, {Name: "unknown word", Policy: key + "witnesses\nquorum none\n"},
		{Name: "member of two groups", Policy: both[:strings.Index(both, "quorum")] + "group h any a\nquorum h\n"}, {Name: "name not defined", Policy: "quorum a\n"},
		{Name: "two quorums", Policy: "quorum none\nquorum none\n"}, {Name: "carriage return", Policy: "quorum none\r\n"},
		{Name: "group of too few", Policy: "witness a " + w1.Key().String() + "\ngroup g 2 a\nquorum g\n"},
	}
	one := func(f []byte) [][]byte { return [][]byte{f} }
	v.Audits = []auditVector{
		{Name: "all well", Policy: keys, Beside: at(24), Files: one(file)},
		{Name: "all well from the middle", Policy: keys, Beside: at(24), Files: one(part(t, records, 9))},
		{Name: "three segments", Policy: keys, Beside: at(24), Files: [][]byte{export(records[:9]), part(t, records[:17], 9), part(t, records, 17)}},
		{Name: "oldest segment removed", Policy: keys, Beside: at(24), Files: [][]byte{part(t, records[:17], 9), part(t, records, 17)}},
		{Name: "oldest segment removed and asked for", Policy: keys, Beside: at(24), Whole: true, Files: one(part(t, records, 9))},
		{Name: "segment missing", Policy: keys, Beside: at(24), Files: [][]byte{export(records[:9]), part(t, records, 17)}},
		{Name: "segment of another journal", Policy: keys, Beside: at(24), Files: [][]byte{export(records[:9]), otherHeader}},
		{Name: "no checkpoint", Policy: keys, Files: one(file)},
		{Name: "no key", Beside: at(24), Files: one(file)},
		{Name: "no key, root differs", Beside: sign(t, Checkpoint{testOrigin, 24, Hash{1}}, log), Files: one(file)},
		{Name: "no range", Policy: keys, Beside: at(24), Files: one(noRange)},
		{Name: "wrong key", Policy: wrong, Beside: at(24), Files: one(file)},
		{Name: "forged checkpoint", Policy: keys, Beside: forged, Files: one(file)},
		{Name: "checkpoint of another journal", Policy: twoLogs, Beside: sign(t, foreign, other), Files: one(file)},
		{Name: "records after the checkpoint", Policy: keys, Beside: at(20), Files: one(file)},
		{Name: "one record after the checkpoint", Policy: keys, Beside: at(23), Files: one(file)},
		{Name: "checkpoint of an empty journal", Policy: keys, Beside: at(0), Files: one(file)},
		{Name: "cut between two records", Policy: keys, Beside: at(24), Files: one(export(records[:20]))},
		{Name: "everything cut", Policy: keys, Beside: at(24), Files: one([]byte{})},
		{Name: "cut inside a record", Policy: keys, Beside: at(23), Files: one(file[:len(file)-11])},
		{Name: "last line feed cut", Policy: keys, Beside: at(24), Files: one(file[:len(file)-1])},
		{Name: "root differs", Policy: keys, Beside: sign(t, Checkpoint{testOrigin, 24, Hash{1}}, log), Files: one(file)},
		{Name: "older checkpoint kept", Policy: keys, Beside: at(24), Kept: [][]byte{at(7), at(15)}, Files: one(file)},
		{Name: "kept checkpoint differs", Policy: keys, Beside: at(24), Kept: [][]byte{sign(t, Checkpoint{testOrigin, 15, Hash{1}}, log)}, Files: one(file)},
		{Name: "kept checkpoint is newer", Policy: keys, Beside: at(20), Kept: [][]byte{at(24)}, Files: one(export(records[:20]))},
		{Name: "kept checkpoint is forged", Policy: keys, Beside: at(24), Kept: [][]byte{forged}, Files: one(file)},
		{Name: "kept checkpoint is older than the file", Policy: keys, Beside: at(24), Kept: [][]byte{at(7)}, Files: one(part(t, records, 9))},
		{Name: "quorum", Policy: both, Beside: cosign(t, at(24), w1, w2), Files: one(file)},
		{Name: "quorum for the first 20", Policy: both, Beside: at(24), Kept: [][]byte{cosign(t, at(20), w1, w2)}, Files: one(file)},
		{Name: "no quorum", Policy: both, Beside: cosign(t, at(24), w1), Files: one(file)},
		{Name: "content", Policy: keys, Beside: at(24), Files: one(change(9, "action.changed", "action.changes", false))},
		{Name: "content with its hash", Policy: keys, Beside: at(24), Files: one(change(9, "action.changed", "action.changes", true))},
		{Name: "record removed", Policy: keys, Beside: at(24), Files: one(export(slices.Delete(slices.Clone(records), 9, 10)))},
		{Name: "record numbered wrongly", Policy: keys, Beside: at(24), Files: one(renumbered())},
		{Name: "profile", Policy: keys, Beside: at(24), Files: one(change(23, `"event":`, `"event": `, true))},
		{Name: "empty line", Policy: keys, Beside: at(24), Files: one(append(slices.Clone(file), '\n'))},
	}
	receipt := func(i int, checkpoint []byte) []byte {
		text, err := MakeReceipt(bodiesOf(records, chains[i]), stored, checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := receipt(22, at(24))
	bodies := bodiesOf(records, chains[22])
	v.Receipts = []receiptVector{
		{Name: "one action", Policy: keys, Receipt: good},
		{Name: "one event", Policy: keys, Receipt: receipt(0, at(24))},
		{Name: "under a quorum", Policy: both, Receipt: receipt(22, cosign(t, at(24), w1, w2))},
		{Name: "without quorum", Policy: both, Receipt: receipt(22, cosign(t, at(24), w2))},
		{Name: "wrong key", Policy: wrong, Receipt: good},
		{Name: "cut", Policy: keys, Receipt: good[:200]},
		{Name: "index changed", Policy: keys, Receipt: bytes.Replace(good, []byte("\nindex 22\n"), []byte("\nindex 21\n"), 1)},
		{Name: "newest body changed", Policy: keys, Receipt: reseal(append([][]byte{bytes.Replace(bodies[0], []byte("changed"), []byte("changes"), 1)}, bodies[1:]...), good)},
		{Name: "earlier body changed", Policy: keys, Receipt: reseal([][]byte{bodies[0], bytes.Replace(bodies[1], []byte("changed"), []byte("changes"), 1), bodies[2]}, good)},
		{Name: "oldest body left out", Policy: keys, Receipt: reseal(bodies[:len(bodies)-1], good)},
		{Name: "events of two actions", Policy: keys, Receipt: linkedStrangers(t, log, "act_1", "act_2")},
		{Name: "events of no action", Policy: keys, Receipt: linkedStrangers(t, log, "", "")},
		{Name: "body with a space", Policy: keys, Receipt: reseal([][]byte{bytes.Replace(bodies[0], []byte(":"), []byte(": "), 1)}, good)},
	}
	for i := range v.Checkpoints {
		v.Checkpoints[i].answer(t)
	}
	for i := range v.Policies {
		v.Policies[i].answer(t)
	}
	for i := range v.Audits {
		v.Audits[i].answer(t)
	}
	for i := range v.Receipts {
		v.Receipts[i].answer(t)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(auditVectorsFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// linkedStrangers is the receipt that comes of a writer who links the record of one action to that of another, or records of
// none. MakeReceipt would refuse it.
func linkedStrangers(t *testing.T, log *Signer, first, second string) []byte {
	t.Helper()
	chain, err := NewChain(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	var tree Tree
	var hashes memory
	var linked [][]byte
	opening, err := chain.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	store(t, &tree, &hashes, opening.Hash)
	var before Record
	for i, action := range []string{first, second} {
		fields := map[string]any{"event": "action.changed"}
		if action != "" {
			fields["action_id"] = action
		}
		if i > 0 {
			fields["after"] = before.Hash
		}
		if before, err = chain.Next(fields); err != nil {
			t.Fatal(err)
		}
		store(t, &tree, &hashes, before.Hash)
		linked = append([][]byte{before.Body}, linked...)
	}
	checkpoint := sign(t, Checkpoint{testOrigin, 3, tree.Root()}, log)
	proof, err := ProveInclusion(3, 2, hashes)
	if err != nil {
		t.Fatal(err)
	}
	r := receipt{bodies: linked, index: 2, proof: proof, note: checkpoint}
	return r.append(nil)
}
