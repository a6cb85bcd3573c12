package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"filippo.io/torchwood"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/note"
)

// The seeds of all of these are docs/vectors/audit.json and docs/vectors/journal.json.

// FuzzCheckpoint: any bytes get an answer and no panic. What is read is what torchwood
// reads, and what is signed is what was read.
func FuzzCheckpoint(f *testing.F) {
	for _, v := range loadAuditVectors(f).Checkpoints {
		f.Add(v.Note)
	}
	log := testSigner(f, testOrigin, "log")
	policy := TrustLogs(log.Key())
	f.Fuzz(func(t *testing.T, signed []byte) {
		c, err := ReadCheckpoint(signed)
		opened, openErr := policy.Open(signed)
		if openErr == nil && (err != nil || opened.Checkpoint != c || len(opened.Logs) != 1) {
			t.Fatalf("opened %+v, read %+v, %v", opened, c, err)
		}
		var problem *SignatureError
		if openErr != nil && (!errors.As(openErr, &problem) || problem.Error() == "") {
			t.Fatalf("got %v, want a *SignatureError", openErr)
		}
		if err != nil {
			return
		}
		text := string(signed[:bytes.LastIndex(signed, []byte("\n\n"))+1])
		judged, err := torchwood.ParseCheckpoint(text)
		if err != nil || judged.Origin != c.Origin || uint64(judged.N) != c.Size || Hash(judged.Hash) != c.Root {
			t.Fatalf("torchwood reads %v, %v, got %v", judged, err, c)
		}
		if again, err := ParseCheckpoint(c.String()); err != nil || again != c || !strings.HasPrefix(text, c.String()) {
			t.Fatalf("written again: %v, %v", again, err)
		}
	})
}

// FuzzKey: a key that is read has one spelling, and x/mod reads the same of a log's.
func FuzzKey(f *testing.F) {
	log, w := testSigner(f, testOrigin, "log"), testCosigner(f, "witness.example/w1")
	f.Add(log.Key().String())
	f.Add(w.Key().String())
	f.Add(testOrigin + "+00000000+AQ==")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			return
		}
		if k.String() != text {
			t.Fatalf("%q has the other spelling %q", text, k)
		}
		judge, err := note.NewVerifier(text)
		if !k.IsWitness() && (err != nil || judge.Name() != k.Name() || judge.KeyHash() != k.KeyHash()) {
			t.Fatalf("%q: x/mod reads another key: %v", text, err)
		}
	})
}

// FuzzPolicy: any bytes get an answer and no panic. A refusal names a line that is
// there, and what is accepted is a file of lines.
func FuzzPolicy(f *testing.F) {
	v := loadAuditVectors(f)
	for _, p := range v.Policies {
		f.Add([]byte(p.Policy))
	}
	signed := v.Checkpoints[0].Note
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePolicy(text)
		var broken *PolicyError
		if err != nil {
			if !errors.As(err, &broken) || broken.Line < 0 || broken.Line > bytes.Count(text, []byte("\n"))+1 || broken.Error() == "" {
				t.Fatalf("got %v, want a *PolicyError with a line of the file", err)
			}
			return
		}
		if text[len(text)-1] != '\n' || !bytes.Contains(text, []byte("quorum")) {
			t.Fatalf("%q was accepted", text)
		}
		if opened, err := p.Open(signed); err == nil && p.AsksForWitnesses() && opened.Quorum && len(opened.Cosignatures) == 0 {
			t.Fatal("a quorum of nobody")
		}
	})
}

// FuzzReceipt: any bytes get an answer and no panic. What is believed is exactly what
// the honest receipt says, and transparency-dev reads it too.
func FuzzReceipt(f *testing.F) {
	policy := TrustLogs(testSigner(f, testOrigin, "log").Key())
	honest := map[string]bool{}
	for _, v := range loadAuditVectors(f).Receipts {
		f.Add(v.Receipt)
		for _, body := range v.Bodies {
			honest[body] = true
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := VerifyReceipt(text, policy)
		var broken *ReceiptError
		if err != nil {
			if !errors.As(err, &broken) || broken.Error() == "" || report.Bodies != nil {
				t.Fatalf("got %+v, %v, want a *ReceiptError and nothing to believe", report, err)
			}
			return
		}
		for _, body := range report.Bodies {
			if !honest[string(body)] {
				t.Fatalf("the body %s was believed", body)
			}
		}
		var judge proof.TLogProof
		if err := judge.Unmarshal(text); err != nil || judge.Index != report.Index {
			t.Fatalf("transparency-dev reads index %d, %v, got %d", judge.Index, err, report.Index)
		}
	})
}

// FuzzHeader: the header lines that are accepted are written again as they were.
func FuzzHeader(f *testing.F) {
	for _, v := range loadVectors(f).Journals {
		f.Add([]byte(v.Lines))
	}
	for _, v := range loadAuditVectors(f).Audits {
		for _, file := range v.Files {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		var h header
		var text []byte
		for line := range bytes.Lines(lines) {
			if line[0] != '#' {
				break
			}
			if line[len(line)-1] != '\n' || !h.accept(line) {
				return // the file is refused at this line
			}
			text = append(text, line...)
		}
		v, ok := h.verifier()
		if !ok || h.from == 0 || h.origin == "" {
			return
		}
		again, err := AppendHeader(nil, h.origin, h.from, h.prev, v.Subtrees())
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("got  %s\nwant %s\n%v", again, text, err)
		}
	})
}

// FuzzAudit: any files and any checkpoint get a report and no panic, and no report of
// a changed file says that all is well under the checkpoint of another.
func FuzzAudit(f *testing.F) {
	whole := map[string]bool{}
	var policy *Policy
	for _, v := range loadAuditVectors(f).Audits {
		file := bytes.Join(v.Files, nil)
		f.Add(file, v.Beside)
		if len(v.Files) == 1 && v.Exit == ExitGood {
			whole[string(file)] = true
		}
	}
	policy = TrustLogs(testSigner(f, testOrigin, "log").Key())
	f.Fuzz(func(t *testing.T, file, beside []byte) {
		r, err := Audit(Evidence{Policy: policy, Beside: beside, Kept: [][]byte{beside}}, bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if r.Text() == "" || r.Explain() == "" || r.ExitCode() > ExitUnreadable {
			t.Fatalf("got exit %d, %q", r.ExitCode(), r.Text())
		}
		if r.ExitCode() == ExitGood && (r.End != r.Signature.Size || r.Chain != Valid) {
			t.Fatalf("all well, and not covered:\n%s", r.Text())
		}
		if r.ExitCode() == ExitGood && r.End == 24 && r.FirstSequence == 0 && !whole[string(file)] && file[0] != '#' {
			t.Fatal("another file is good under the same checkpoint")
		}
	})
}

// FuzzProfileAgainstOthers: inside the profile, what others make canonical by RFC 8785
// is what stands there already.
func FuzzProfileAgainstOthers(f *testing.F) {
	for _, v := range loadVectors(f).Bodies {
		f.Add(v.BodyBase64)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if CheckProfile(body) != nil {
			return
		}
		if got, err := jcs.Transform(body); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("jcs makes %s, %v of %s", got, err, body)
		}
		value := jsontext.Value(bytes.Clone(body))
		if err := value.Canonicalize(); err != nil || !bytes.Equal(value, body) {
			t.Fatalf("jsontext makes %s, %v of %s", value, err, body)
		}
	})
}
