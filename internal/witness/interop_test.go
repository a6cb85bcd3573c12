package witness_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/witness"
	"deed.dev/deed/journal"
)

// AU-10, section 5.8 of the format: a witness that nobody here wrote says the same of our journal as ours does.
func TestOurJournalBeforeLitewitness(t *testing.T) {
	l := anchortest.New(t, 950)
	dir, _ := watching(t, l)
	w := open(t, dir)
	defer w.Close()
	ours := serve(t, w)
	theirs, key := anchortest.Litewitness(t, "witness.example/lite", l)

	at950, fork := l.MustHead(t), l.Fork(500, 500).MustHead(t)
	l.Add(50)
	at1000 := l.MustHead(t)
	for _, c := range []struct {
		what string
		body []byte
		want int
	}{
		{"the first checkpoint", body(t, 0, at950), 200},
		{"a replayed old size", body(t, 0, at1000), 409},
		{"a rewritten history", body(t, 950, fork), 422},
		{"no proof", written(950, nil, at1000.Signed), 422},
		{"another key", body(t, 950, anchortest.New(t, 1000).MustHead(t)), 403},
		{"honest growth", body(t, 950, at1000), 200},
	} {
		for who, url := range map[string]string{"litewitness": theirs, "deed": ours} {
			got := post(t, url, c.body)
			if got.status != c.want || c.want == 409 && (got.body != "950\n" || got.kind != "text/x.tlog.size") {
				t.Errorf("%s: %s says %v, want %d", c.what, who, got, c.want)
			}
			if who == "litewitness" && got.status == 200 { // and its cosignature is one for us
				policy, err := journal.ParsePolicy(fmt.Appendf(nil, "log %s\nwitness w %s\nquorum w\n", l.Signer.Key(), key))
				if err != nil {
					t.Fatal(err)
				}
				head := at950
				if c.what == "honest growth" {
					head = at1000
				}
				if _, err := policy.Check(append(bytes.Clone(head.Signed), got.body...)); err != nil {
					t.Errorf("%s: the cosignature of litewitness: %v", c.what, err)
				}
			}
		}
	}
}

// A log that is made with the libraries of the Go checksum database and of torchwood is cosigned by our witness, and
// torchwood reads what it signed.
func TestAnotherLogBeforeOurWitness(t *testing.T) {
	private, public, err := note.GenerateKey(rand.Reader, "other.example/log")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := journal.ParseKey(public)
	if err != nil {
		t.Fatal(err)
	}
	dir, own := watching(t)
	if err := witness.Watch(dir, key); err != nil {
		t.Fatal(err)
	}
	w := open(t, dir)
	defer w.Close()
	url := serve(t, w)
	judge := torchwoodVerifier(t, dir)
	if judge.String() != own.String() {
		t.Errorf("our public key is %s, and torchwood makes %s of the private one", own, judge)
	}

	var hashes []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var list []tlog.Hash
		for _, i := range indexes {
			list = append(list, hashes[i])
		}
		return list, nil
	})
	old := int64(0)
	for size := int64(1); size <= 20; size++ {
		more, err := tlog.StoredHashes(size-1, fmt.Appendf(nil, "entry %d", size), reader)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, more...)
		if size%3 != 0 {
			continue
		}
		root, err := tlog.TreeHash(size, reader)
		if err != nil {
			t.Fatal(err)
		}
		text := torchwood.Checkpoint{Origin: "other.example/log", Tree: tlog.Tree{N: size, Hash: root}, Extension: "an extension\n"}.String()
		signed, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			t.Fatal(err)
		}
		request := fmt.Sprintf("old %d\n", old)
		if old > 0 {
			proof, err := tlog.ProveTree(size, old, reader)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range proof {
				request += h.String() + "\n"
			}
		}
		got := post(t, url, []byte(request+"\n"+string(signed)))
		if got.status != 200 || strings.Count(got.body, "\n") != 1 {
			t.Fatalf("size %d: %v", size, got)
		}
		n, err := note.Open(append(signed, got.body...), note.VerifierList(judge))
		if err != nil {
			t.Fatalf("torchwood does not accept the cosignature of size %d: %v", size, err)
		}
		if at, err := torchwood.CosignatureTimestamp(n.Sigs[0]); err != nil || at != noon.Unix() {
			t.Errorf("torchwood reads the time %d, %v; want %d", at, err, noon.Unix())
		}
		old = size
	}
}

// torchwoodVerifier is what torchwood makes of our private key; it reads no public ones.
func torchwoodVerifier(t *testing.T, dir string) *torchwood.CosignatureVerifier {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "witness.key"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(strings.TrimSpace(string(text)), "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil {
		t.Fatal(err)
	}
	signer, err := torchwood.NewCosignatureSigner(name, ed25519.NewKeyFromSeed(seed[1:]))
	if err != nil {
		t.Fatal(err)
	}
	return signer.Verifier()
}
