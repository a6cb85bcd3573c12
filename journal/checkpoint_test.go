package journal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/torchwood"
	fnote "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// AU-10: a checkpoint goes through its text, and others read it as we do.
func TestCheckpointText(t *testing.T) {
	c := Checkpoint{testOrigin, 92843, LeafHash([]byte("x"))}
	got, err := ParseCheckpoint(c.String())
	if err != nil || got != c {
		t.Errorf("got %v, %v, want %v", got, err, c)
	}
	judged, err := torchwood.ParseCheckpoint(c.String())
	if err != nil || judged.Origin != c.Origin || judged.N != 92843 || Hash(judged.Hash) != c.Root {
		t.Errorf("torchwood: got %v, %v", judged, err)
	}
	if extended, err := ParseCheckpoint(c.String() + "an extension\n"); err != nil || extended != c {
		t.Errorf("extension: got %v, %v, want it passed over", extended, err)
	}
	root := strings.Split(c.String(), "\n")[2]
	for _, text := range []string{
		"", "a\n1\n", c.String()[:len(c.String())-1], "\n1\n" + root + "\n", "a b\n1\n" + root + "\n", "a\n01\n" + root + "\n", "a\n-1\n" + root + "\n",
		"a\n+1\n" + root + "\n", "a\n9007199254740992\n" + root + "\n", "a\n1\n" + root[:43] + "\n", "a\n1\n" + root[:42] + "9=\n", "a\n1\nAA" + root + "\n",
		"a\n1\n" + root + "\n\n", "a\n1\n" + root + "\nx\n\ny\n", "a\r\n1\r\n" + root + "\r\n", " a\n1\n" + root + "\n",
	} {
		if got, err := ParseCheckpoint(text); err == nil {
			t.Errorf("%q: got %v, want it refused", text, got)
		}
	}
}

func TestKeysAreThoseOfSignedNotes(t *testing.T) {
	private, public, err := GenerateKey(rand.Reader, testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(private)
	if err != nil || s.Key() != public || s.Origin() != testOrigin {
		t.Fatalf("got %v, %v", s, err)
	}
	signed := sign(t, Checkpoint{testOrigin, 5, Hash{5}}, s)
	judge, err := note.NewVerifier(public.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(signed, note.VerifierList(judge)); err != nil {
		t.Errorf("x/mod does not accept the signature: %v", err)
	}
	w := testCosigner(t, "witness.example/w1")
	cosigned := cosign(t, signed, w)
	theirs, err := fnote.NewVerifierForCosignatureV1(w.Key().String())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(cosigned, note.VerifierList(judge, theirs))
	if err != nil || len(opened.Sigs) != 2 {
		t.Errorf("transparency-dev does not accept the cosignature: %v", err)
	}
	for _, bad := range []string{"", "x", private, public.String() + "A", strings.Replace(public.String(), "+", "x+", 1), "a b" + public.String()[len(testOrigin):],
		strings.ToUpper(public.String()), "example.com/mldsa+5dad3ebd+Bg==", "a+00000000+"} {
		if k, err := ParseKey(bad); err == nil {
			t.Errorf("%q: got %v, want it refused", bad, k)
		} else if strings.Contains(err.Error(), private) {
			t.Errorf("the message repeats a private key") // AU-25
		}
	}
	for _, bad := range []string{"", "x", public.String(), private[:len(private)-4], private + "A"} {
		if _, err := NewSigner(bad); err == nil {
			t.Errorf("%q: want it refused", bad)
		} else if len(bad) > 20 && strings.Contains(err.Error(), bad[20:]) {
			t.Errorf("the message repeats a private key") // AU-25
		}
	}
	if _, err := SignCheckpoint(Checkpoint{"b", 1, Hash{}}, s); err == nil {
		t.Error("a key signed for another origin")
	}
	if _, err := SignCheckpoint(Checkpoint{testOrigin, 1, Hash{}}); err == nil {
		t.Error("a checkpoint was signed by nobody")
	}
}

// Case 8 of the format's tests: cosignatures made by torchwood are read, with their time.
func TestCosignaturesOfTorchwoodAreRead(t *testing.T) {
	log := testSigner(t, testOrigin, "log")
	w := testCosigner(t, "witness.example/w1")
	theirs, err := torchwood.NewCosignatureSigner("witness.example/w1", w.secret)
	if err != nil {
		t.Fatal(err)
	}
	if theirs.Verifier().String() != w.Key().String() {
		t.Fatalf("got key %s, torchwood has %s", w.Key(), theirs.Verifier())
	}
	signed, err := note.Sign(&note.Note{Text: Checkpoint{testOrigin, 7, Hash{7}}.String()}, log.signer, theirs)
	if err != nil {
		t.Fatal(err)
	}
	p := policyOf(t, "log "+log.Key().String(), "witness one "+w.Key().String()+" https://witness.example/", "quorum one")
	opened, err := p.Check(signed)
	if err != nil || len(opened.Cosignatures) != 1 || opened.Cosignatures[0].Witness != "one" || time.Since(opened.Cosignatures[0].Time) > time.Hour {
		t.Fatalf("got %+v, %v", opened, err)
	}
	ours := cosign(t, sign(t, opened.Checkpoint, log), w)
	if _, err := note.Open(ours, note.VerifierList(theirs.Verifier())); err != nil {
		t.Errorf("torchwood does not accept ours: %v", err)
	}
	// Any byte changed is found, in the text and in both signatures. Only the last digit
	// of a signature may change: two bits of it mean nothing.
	for i := range signed {
		changed := bytes.Clone(signed)
		changed[i] ^= 1
		if _, err := p.Check(changed); err == nil && signed[i+1] != '=' {
			t.Errorf("byte %d changed from %q: accepted", i, signed[i])
		}
	}
}

func TestSignatureProblems(t *testing.T) {
	log, next, other := testSigner(t, testOrigin, "log"), testSigner(t, testOrigin, "next"), testSigner(t, "other.example", "other")
	w := testCosigner(t, "witness.example/w1")
	p := policyOf(t, "log "+log.Key().String(), "log "+other.Key().String(), "witness one "+w.Key().String(), "quorum one")
	c := Checkpoint{testOrigin, 7, Hash{7}}
	good := cosign(t, sign(t, c, log), w)
	forged := cosign(t, sign(t, Checkpoint{testOrigin, 7, Hash{8}}, log), w)
	mixed := append(bytes.Clone(good[:bytes.Index(good, []byte("\n— "))+1]), forged[bytes.Index(forged, []byte("\n— "))+1:]...)
	otherNote, err := note.Sign(&note.Note{Text: c.String()}, other.signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		signed []byte
		want   SignatureProblem
	}{
		{"good", good, ""},
		{"handed over to another key", cosign(t, sign(t, c, next, log), w), ""},
		{"not a note", []byte("x\n"), ProblemMalformed},
		{"note of something else", []byte("x\n\n— a AAAAAAA=\n"), ProblemMalformed},
		{"another key", sign(t, c, next), ProblemUnsigned},
		{"a log of the policy, under the origin of another", otherNote, ProblemUnsigned},
		{"a witness alone", []byte(strings.Join(append(strings.SplitAfter(string(good), "\n")[:4], strings.SplitAfter(string(good), "\n")[5]), "")), ProblemUnsigned},
		{"signatures of another text", mixed, ProblemForged},
		{"no witness", sign(t, c, log), ProblemQuorum},
	} {
		_, err := p.Check(x.signed)
		var problem *SignatureError
		if x.want == "" && err != nil || x.want != "" && (!errors.As(err, &problem) || problem.Problem != x.want || problem.Error() == "") {
			t.Errorf("%s: got %v, want %q", x.name, err, x.want)
		}
	}
	if _, err := (&Policy{}).Open(good); err == nil {
		t.Error("a policy of nobody trusts a checkpoint")
	}
	if opened, err := policyOf(t, "quorum none").WithLogs(log.Key()).Check(good); err != nil || len(opened.Logs) != 1 {
		t.Errorf("logs known from elsewhere: got %+v, %v", opened, err)
	}
}

// C2SP tlog-policy: quorums of two levels, as in its example, in every combination.
func TestQuorumOfGroups(t *testing.T) {
	log := testSigner(t, testOrigin, "log")
	lines := []string{"# who may sign", "", "log " + log.Key().String()}
	var witnesses []*Cosigner
	for i := range 6 {
		w := testCosigner(t, fmt.Sprintf("w%d.example", i))
		witnesses = append(witnesses, w)
		lines = append(lines, fmt.Sprintf("\twitness  w%d %s", i, w.Key()))
	}
	lines = append(lines, "group x 2 w0 w1 w2", "group y any w3 w4 w5", "group both all x y", "quorum both")
	p := policyOf(t, lines...)
	signed := sign(t, Checkpoint{testOrigin, 7, Hash{7}}, log)
	for set := range 64 {
		var who []*Cosigner
		count := [2]int{}
		for i, w := range witnesses {
			if set>>i&1 == 1 {
				who = append(who, w)
				count[i/3]++
			}
		}
		opened, err := p.Open(cosign(t, signed, who...))
		if want := count[0] >= 2 && count[1] >= 1; err != nil || opened.Quorum != want || len(opened.Cosignatures) != len(who) {
			t.Errorf("witnesses %06b: got %t, %v, want %t", set, opened.Quorum, err, want)
		}
	}
}

func TestPolicyErrorsNameTheLine(t *testing.T) {
	log, w := testSigner(t, testOrigin, "log").Key().String(), testCosigner(t, "w.example").Key().String()
	renamed := newKey("renamed", kindWitness, testCosigner(t, "w.example").key.public[:]).String()
	v := testCosigner(t, "v.example").Key().String()
	for _, c := range []struct {
		text string
		line int
	}{
		{"", 0}, {"log " + log + "\n", 0},
		{"quorum none\nquorum none\n", 2}, {"quorum x\n", 1}, {"quorum\n", 1}, {"quorum none none\n", 1}, {"quorum none", 1}, {"quorum none\r\n", 1},
		{"\n# x\nlogs " + log + "\n", 3}, {"log\n", 1}, {"log " + w + "\n", 1}, {"log " + log + " u u\n", 1}, {"log " + log + "\nlog " + log + "\n", 2},
		{"witness a\n", 1}, {"witness a " + log + "\n", 1}, {"witness none " + w + "\n", 1}, {"witness a " + w + "\nwitness b " + renamed + "\n", 2},
		{"witness a " + w + "\nwitness a " + v + "\n", 2}, {"witness a " + w + "\ngroup a all a\n", 2},
		{"witness a " + w + "\ngroup g all\n", 2}, {"witness a " + w + "\ngroup g 2 a\n", 2}, {"witness a " + w + "\ngroup g 0 a\n", 2},
		{"witness a " + w + "\ngroup g 01 a\n", 2}, {"witness a " + w + "\ngroup g +1 a\n", 2}, {"witness a " + w + "\ngroup g some a\n", 2},
		{"witness a " + w + "\ngroup g any a a\n", 2}, {"witness a " + w + "\ngroup g any none\n", 2}, {"witness a " + w + "\ngroup g any g\n", 2},
		{"witness a " + w + "\ngroup g any a\ngroup h any a\n", 3}, {"\x00quorum none\n", 1}, {"quorum none # why\n", 1}, {"quorum none\x7f\n", 1},
		{strings.Repeat("#\n", maxPolicy), 0},
	} {
		_, err := ParsePolicy([]byte(c.text))
		var broken *PolicyError
		if !errors.As(err, &broken) || broken.Line != c.line || broken.Error() == "" {
			t.Errorf("%.60q: got %v, want an error in line %d", c.text, err, c.line)
		}
	}
	if p := policyOf(t, "quorum none"); p.AsksForWitnesses() || len(p.Logs) != 0 {
		t.Errorf("got %+v", p)
	}
}
