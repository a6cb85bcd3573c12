package witness_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/dirlock"
	"deed.dev/deed/internal/witness"
	"deed.dev/deed/journal"
)

const name = "witness.example/w1"

var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, dir string) *witness.Witness {
	t.Helper()
	w, err := witness.Open(dir, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// watching makes a witness that watches the log.
func watching(t testing.TB, logs ...*anchortest.Log) (dir string, key journal.Key) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "witness")
	key, err := witness.Create(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if err := witness.Watch(dir, l.Signer.Key()); err != nil {
			t.Fatal(err)
		}
	}
	return dir, key
}

// body is a request from size old to the head.
func body(t testing.TB, old uint64, h anchor.Head) []byte {
	t.Helper()
	var proof []journal.Hash
	if old < h.Size {
		var err error
		if proof, err = h.Proof(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	return written(old, proof, h.Signed)
}

func written(old uint64, proof []journal.Hash, signed []byte) []byte {
	b := fmt.Appendf(nil, "old %d\n", old)
	for _, h := range proof {
		b = fmt.Appendf(b, "%s\n", base64.StdEncoding.EncodeToString(h[:]))
	}
	return append(append(b, '\n'), signed...)
}

type answer struct {
	status int
	body   string
	kind   string
}

func post(t testing.TB, url string, body []byte) answer {
	t.Helper()
	got, err := tryPost(url, body)
	if err != nil {
		t.Error(err)
	}
	return got
}

func tryPost(url string, body []byte) (answer, error) {
	resp, err := http.Post(url+witness.Path, "text/plain", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(text), resp.Header.Get("Content-Type")}, err
}

func serve(t testing.TB, w *witness.Witness) string {
	t.Helper()
	s := httptest.NewServer(w.Handler())
	t.Cleanup(s.Close)
	return s.URL
}

// AU-10, section 3 of the format: honest growth is cosigned, with the time of the witness, and everything else is refused with
// the status that the protocol has for it.
func TestStatusOfEveryAnswer(t *testing.T) {
	l := anchortest.New(t, 950)
	dir, key := watching(t, l)
	w := open(t, dir)
	defer w.Close()
	url := serve(t, w)
	at950 := l.MustHead(t)

	if got := post(t, url, body(t, 0, at950)); got.status != 200 {
		t.Fatalf("the first checkpoint: %v", got)
	} else {
		policy, err := journal.ParsePolicy([]byte("log " + l.Signer.Key().String() + "\nwitness w " + key.String() + "\nquorum w\n"))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := policy.Check(append(bytes.Clone(at950.Signed), got.body...))
		if err != nil || !opened.Cosignatures[0].Time.Equal(noon) {
			t.Errorf("the cosignature: %v, %v; want one of %s", opened.Cosignatures, err, noon)
		}
	}

	fork500, fork970 := l.Fork(500, 500), l.Fork(970, 30)
	l.Add(50)
	at1000 := l.MustHead(t)
	other := anchortest.New(t, 1000) // the same origin and records, another key
	forged := bytes.Replace(at1000.Signed, []byte("1000\n"), []byte("1001\n"), 1)
	proof, err := at1000.Prove(t.Context(), 950)
	if err != nil {
		t.Fatal(err)
	}
	short := proof[:len(proof)-1]
	flipped := append([]journal.Hash{}, proof...)
	flipped[0][0] ^= 1
	unknown := bytes.ReplaceAll(at1000.Signed, []byte(anchortest.Origin), []byte("gw.example/nobody"))
	text, _, _ := bytes.Cut(at1000.Signed, []byte("\n\n"))
	unsigned := fmt.Appendf(nil, "%s\n\n— x.example %s\n", text, base64.StdEncoding.EncodeToString(make([]byte, 68)))
	line := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for what, c := range map[string]struct {
		body []byte
		want answer
	}{
		"a replayed old size":           {body(t, 0, at1000), answer{409, "950\n", "text/x.tlog.size"}},
		"an old size before":            {body(t, 900, at1000), answer{409, "950\n", "text/x.tlog.size"}},
		"an old size not yet seen":      {body(t, 970, at1000), answer{409, "950\n", "text/x.tlog.size"}},
		"an older checkpoint":           {body(t, 400, l.Fork(500, 0).MustHead(t)), answer{409, "950\n", "text/x.tlog.size"}},
		"a second history of that size": {body(t, 950, l.Fork(500, 450).MustHead(t)), answer{409, "950\n", "text/x.tlog.size"}},
		"rewritten from 500":            {body(t, 950, fork500.MustHead(t)), answer{status: 422}},
		"a proof cut short":             {written(950, short, at1000.Signed), answer{status: 422}},
		"a proof with one bit changed":  {written(950, flipped, at1000.Signed), answer{status: 422}},
		"no proof":                      {written(950, nil, at1000.Signed), answer{status: 422}},
		"another key":                   {body(t, 950, other.MustHead(t)), answer{status: 403}},
		"another text under the name":   {written(950, proof, forged), answer{status: 403}},
		"no signature of the log":       {written(950, proof, unsigned), answer{status: 403}},
		"an unknown log":                {written(950, proof, unknown), answer{status: 404}},
		"an old size that is larger":    {written(1001, nil, at1000.Signed), answer{status: 400}},
		"nothing":                       {nil, answer{status: 400}},
		"no empty line":                 {[]byte("old 950\n"), answer{status: 400}},
		"a leading zero":                {append([]byte("old 0950\n\n"), at1000.Signed...), answer{status: 400}},
		"a sign":                        {append([]byte("old +950\n\n"), at1000.Signed...), answer{status: 400}},
		"another word":                  {append([]byte("new 950\n\n"), at1000.Signed...), answer{status: 400}},
		"a hash that is too short":      {append([]byte("old 950\nAAAA\n\n"), at1000.Signed...), answer{status: 400}},
		"sixty-four hashes":             {append([]byte("old 950\n"+strings.Repeat(line+"\n", 64)+"\n"), at1000.Signed...), answer{status: 400}},
		"no checkpoint":                 {[]byte("old 950\n\nnothing\n"), answer{status: 400}},
		"too much":                      {bytes.Repeat([]byte("x"), witness.MaxRequest+1), answer{status: 413}},
	} {
		got := post(t, url, c.body)
		if got.status != c.want.status || c.want.body != "" && (got.body != c.want.body || got.kind != c.want.kind) {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
		if strings.Contains(got.body, "— "+name) {
			t.Errorf("%s: it was cosigned", what)
		}
	}
	if got := post(t, url, body(t, 950, at1000)); got.status != 200 {
		t.Errorf("honest growth after all of that: %v", got)
	}
	if got := post(t, url, body(t, 1000, at1000)); got.status != 200 {
		t.Errorf("the same again: %v", got)
	}
	// Section 3: who holds the key may rewrite what no witness has seen. That window is why the bound exists.
	dir, _ = watching(t, l)
	late := open(t, dir)
	defer late.Close()
	url = serve(t, late)
	if got := post(t, url, body(t, 0, at950)); got.status != 200 {
		t.Fatal(got)
	}
	if got := post(t, url, body(t, 950, fork970.MustHead(t))); got.status != 200 {
		t.Errorf("rewritten from 970, after what was seen: %v", got)
	}
}

// A log that begins empty has one root.
func TestTheEmptyLog(t *testing.T) {
	l := anchortest.New(t, 0)
	dir, _ := watching(t, l)
	w := open(t, dir)
	defer w.Close()
	url := serve(t, w)
	signed, err := journal.SignCheckpoint(journal.Checkpoint{Origin: anchortest.Origin, Root: journal.Hash{1}}, l.Signer)
	if err != nil {
		t.Fatal(err)
	}
	if got := post(t, url, written(0, nil, signed)); got.status != 409 || got.body != "0\n" {
		t.Errorf("no records under a made-up root: %v", got)
	}
	empty := l.MustHead(t)
	l.Add(3)
	for _, h := range []anchor.Head{empty, empty, l.MustHead(t)} {
		if got := post(t, url, body(t, 0, h)); got.status != 200 {
			t.Errorf("size %d: %v", h.Size, got)
		}
	}
}

// What was cosigned is remembered by the next process, and a state that is gone is no new beginning.
func TestMemoryOutlivesTheProcess(t *testing.T) {
	l := anchortest.New(t, 10)
	dir, _ := watching(t, l)
	w := open(t, dir)
	if _, err := w.AddCheckpoint(t.Context(), body(t, 0, l.MustHead(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := witness.Open(dir, time.Now, slog.Default()); !errors.Is(err, dirlock.ErrHeld) {
		t.Errorf("a second witness over the same store: %v, want ErrHeld", err)
	}
	_ = w.Close()

	w = open(t, dir)
	var conflict *witness.ConflictError
	if _, err := w.AddCheckpoint(t.Context(), body(t, 0, l.Fork(5, 20).MustHead(t))); !errors.As(err, &conflict) || conflict.Size != 10 {
		t.Errorf("after a restart: %v, want a conflict at 10", err)
	}
	_ = w.Close()

	state := filepath.Join(dir, "state.json")
	good, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey := watching(t)
	for what, text := range map[string][]byte{
		"cut":               good[:len(good)/2],
		"empty":             {},
		"another format":    bytes.Replace(good, []byte("deed-witness/1"), []byte("deed-witness/2"), 1),
		"an unknown member": bytes.Replace(good, []byte(`"logs"`), []byte(`"forget": true, "logs"`), 1),
		"no root":           bytes.Replace(good, []byte(`"root": "`), []byte(`"root": "A`), 1),
		"another key":       bytes.Replace(good, []byte(`"key": "`+name), []byte(`"key": "`+otherKey.Name()+"x"), 1),
	} {
		if err := os.WriteFile(state, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := witness.Open(dir, time.Now, slog.Default()); err == nil {
			w.Close()
			t.Errorf("%s: the witness opened", what)
		}
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if _, err := witness.Open(dir, time.Now, slog.Default()); err == nil || !strings.Contains(err.Error(), "forgets") {
		t.Errorf("without its state: %v, want that it is gone", err)
	}
	if _, err := witness.Create(dir, name); !errors.Is(err, witness.ErrExists) {
		t.Errorf("made anew over the old key: %v, want ErrExists", err)
	}
}

// If the checkpoint cannot be remembered it is not cosigned.
func TestNothingIsSignedThatIsNotRemembered(t *testing.T) {
	l := anchortest.New(t, 10)
	dir, _ := watching(t, l)
	w := open(t, dir)
	defer w.Close()
	away := dir + "-away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	url := serve(t, w)
	if got := post(t, url, body(t, 0, l.MustHead(t))); got.status != 500 || strings.Contains(got.body, dir) {
		t.Errorf("got %v, want 500 without a path", got)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if got := post(t, url, body(t, 0, l.MustHead(t))); got.status != 200 {
		t.Errorf("when the directory is back: %v", got)
	}
}

// Two histories race for the same place. Whatever the order, one of them is cosigned and the other never.
func TestRacesEndInOneHistory(t *testing.T) {
	l := anchortest.New(t, 8)
	dir, _ := watching(t, l)
	w := open(t, dir)
	defer w.Close()
	url := serve(t, w)
	if got := post(t, url, body(t, 0, l.MustHead(t))); got.status != 200 {
		t.Fatal(got)
	}
	const rivals = 16
	heads := make([]anchor.Head, rivals)
	for i := range heads {
		heads[i] = l.Fork(8-i%2, 1+i).MustHead(t) // half of them do not even continue the 8
	}
	bodies := make([][]byte, rivals)
	for i, h := range heads {
		bodies[i] = body(t, 8, h)
	}
	won := make([]bool, rivals)
	var all sync.WaitGroup
	for i := range rivals {
		all.Go(func() { won[i] = post(t, url, bodies[i]).status == 200 })
	}
	all.Wait()
	var winners []journal.Checkpoint
	for i, ok := range won {
		if ok && i%2 == 1 && heads[i].Size > 8 {
			t.Errorf("a history of %d records that rewrites the 8 was cosigned", heads[i].Size)
		}
		if ok {
			winners = append(winners, heads[i].Checkpoint)
		}
	}
	if len(winners) != 1 {
		t.Errorf("%d histories were cosigned from the same place, want 1", len(winners))
	}
}

// The key is made once, is readable by its owner alone, and a list that names something else than logs is refused with its
// line.
func TestKeyAndList(t *testing.T) {
	dir, key := watching(t)
	info, err := os.Stat(filepath.Join(dir, "witness.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key: %v, %v", info.Mode(), err)
	}
	own, logs, err := witness.Keys(dir)
	if err != nil || own != key || len(logs) != 0 || !own.IsWitness() {
		t.Errorf("got %v, %v, %v", own, logs, err)
	}
	if err := witness.Watch(dir, own); err == nil {
		t.Error("a witness's key was taken for a log")
	}
	list := filepath.Join(dir, "logs.policy")
	for text, want := range map[string]string{
		"quorum none\nfoo\n":                          "line 2",
		"witness w " + key.String() + "\nquorum w\n":  "no other witness",
		"quorum none\nlog " + anchortest.Origin + "+": "line 2",
	} {
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if w, err := witness.Open(dir, time.Now, slog.Default()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want %q", text, w, err, want)
		}
	}
	if err := os.WriteFile(list, []byte("quorum none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "witness.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := witness.Open(dir, time.Now, slog.Default()); err == nil || !strings.Contains(err.Error(), "other users") {
		t.Errorf("with an open key: %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	private, _, err := journal.GenerateKey(rand.Reader, anchortest.Origin)
	if err != nil {
		f.Fatal(err)
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		f.Fatal(err)
	}
	signed, err := journal.SignCheckpoint(journal.Checkpoint{Origin: anchortest.Origin, Size: 1, Root: journal.LeafHash(nil)}, signer)
	if err != nil {
		f.Fatal(err)
	}
	dir := filepath.Join(f.TempDir(), "w")
	if _, err := witness.Create(dir, name); err != nil {
		f.Fatal(err)
	}
	w := open(f, dir)
	f.Cleanup(func() { w.Close() })
	f.Add(written(0, nil, signed))
	f.Add([]byte("old 18446744073709551616\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if line, err := w.AddCheckpoint(t.Context(), body); err == nil {
			t.Errorf("a witness that watches nobody has cosigned: %q", line)
		}
	})
}
