package verifier_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/journal"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// AU-05, AU-09: checkpoints and receipts made with the libraries of the Go checksum database, which nobody here wrote, are
// read by the JavaScript verifier as a command, on files alone.
func TestNotesAndProofsOfOthers(t *testing.T) {
	t.Parallel()
	records := everyKind(t)
	var hashes storedHashes
	for i, r := range records {
		next, err := tlog.StoredHashesForRecordHash(int64(i), tlog.Hash(r.Hash), hashes)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, next...)
	}
	size := int64(len(records))
	root, err := tlog.TreeHash(size, hashes)
	if err != nil {
		t.Fatal(err)
	}
	const origin = "gw.example/audit/every-kind"
	secret, vkey, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", origin, size, root)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "journal.events")
	write(t, file, export(records))
	write(t, file+".checkpoint", checkpoint)
	want := fmt.Sprintf("records_checked: %d\nfirst_sequence: 0\nlast_sequence: %d\nchain: valid\nsignature: valid\n", size, size-1)
	if got := string(node(t, nil, "deed-verify.mjs", file, "--key", vkey)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	for at := size - 1; at >= 0; at -= 9 { // a process each is slow; every record is tried elsewhere
		life := lifeOf(t, records, at)
		proof, err := tlog.ProveRecord(size, at, hashes)
		if err != nil {
			t.Fatal(err)
		}
		var receipt bytes.Buffer
		fmt.Fprintf(&receipt, "c2sp.org/tlog-proof@v1\nextra %s\nindex %d\n", base64.StdEncoding.EncodeToString(bytes.Join(life, []byte("\n"))), at)
		for _, h := range proof {
			fmt.Fprintf(&receipt, "%s\n", h)
		}
		fmt.Fprintf(&receipt, "\n%s", checkpoint)
		path := filepath.Join(dir, "one.receipt")
		write(t, path, receipt.Bytes())
		got := string(node(t, nil, "deed-verify.mjs", "--receipt", path, "--key", vkey))
		if !strings.HasPrefix(got, fmt.Sprintf("receipt: valid\nevents: %d\n", len(life))) {
			t.Errorf("record %d: got %s, want a valid receipt of %d events", at, got, len(life))
		}
	}
}

// storedHashes is a tree as tlog reads it.
type storedHashes []tlog.Hash

func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		hashes[i] = s[at]
	}
	return hashes, nil
}

// lifeOf follows after from a record to the first event of its action, and returns the bodies, newest first.
func lifeOf(t *testing.T, records []journal.Record, at int64) (bodies [][]byte) {
	t.Helper()
	for {
		bodies = append(bodies, records[at].Body)
		var event struct{ After string }
		if err := json.Unmarshal(records[at].Body, &event); err != nil {
			t.Fatal(err)
		}
		if event.After == "" {
			return bodies
		}
		for at--; records[at].Hash.String() != event.After; at-- {
		}
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
