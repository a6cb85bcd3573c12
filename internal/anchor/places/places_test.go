package places_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/anchor/places"
	"deed.dev/deed/internal/witness"
	"deed.dev/deed/journal"
)

// every makes a place of each kind, all of them real, for the journal; it gives the same place again each time, as the next
// process would find it.
func every(t *testing.T, l *anchortest.Log) map[string]func() anchor.Place {
	t.Helper()
	keys := []journal.Key{l.Signer.Key()}
	dir, own, repository := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "r.git")
	run(t, "git", "init", "--quiet", "--bare", repository)
	run(t, "git", "--git-dir="+repository, "config", "receive.denyNonFastForwards", "true")
	url, key := ourWitness(t, l)
	theirs, theirKey := anchortest.Litewitness(t, "witness.example/lite", l)
	storage := newS3(t)
	file := filepath.Join(t.TempDir(), "checkpoints")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]func() anchor.Place{
		"s3":          func() anchor.Place { return storage.place(t, "locked", "", keys) },
		"file":        func() anchor.Place { return places.NewFile("file", file, keys) },
		"directory":   func() anchor.Place { return places.NewDirectory("directory", dir, keys) },
		"git":         func() anchor.Place { return places.NewGit("git", repository, "main", filepath.Join(own, "git"), keys) },
		"witness":     func() anchor.Place { return places.NewWitness("witness", url, key, keys) },
		"litewitness": func() anchor.Place { return places.NewWitness("litewitness", theirs, theirKey, keys) },
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func ourWitness(t *testing.T, l *anchortest.Log) (url string, key journal.Key) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	key, err := witness.Create(dir, "witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	if err := witness.Watch(dir, l.Signer.Key()); err != nil {
		t.Fatal(err)
	}
	w, err := witness.Open(dir, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(w.Handler())
	t.Cleanup(func() { s.Close(); w.Close() })
	return s.URL, key
}

func keep(t *testing.T, p anchor.Place, h anchor.Head) []byte {
	t.Helper()
	lines, err := p.Keep(t.Context(), h)
	if err != nil {
		t.Fatalf("%s keeps %d records: %v", p.Name(), h.Size, err)
	}
	return lines
}

// AU-10, section 1.7 of the format: every kind of place takes a journal that grows, and tells by itself, to a new process, that
// a journal was cut or rewritten below what it holds. What is above is the window that no place closes.
func TestEveryPlaceTellsACutAndARewrite(t *testing.T) {
	l := anchortest.New(t, 600)
	for kind, open := range every(t, l) {
		t.Run(kind, func(t *testing.T) {
			p := open()
			if err := p.Check(t.Context(), l.Fork(0, 0).MustHead(t)); err != nil {
				t.Errorf("an empty place and an empty journal: %v", err)
			}
			journal := l.Fork(600, 0)
			keep(t, p, journal.MustHead(t))
			keep(t, p, journal.MustHead(t)) // again the same
			journal.Add(350)
			keep(t, p, journal.MustHead(t))
			journal.Add(50)
			for what, c := range map[string]struct {
				log  *anchortest.Log
				held uint64 // 0: it is continued
			}{
				"honest growth":         {journal, 0},
				"cut to 980":            {journal.Fork(980, 0), 0},
				"rewritten from 970":    {journal.Fork(970, 30), 0},
				"cut to 800":            {journal.Fork(800, 0), 950},
				"cut to 600":            {journal.Fork(600, 0), 950},
				"rewritten from 500":    {journal.Fork(500, 500), 950},
				"rewritten from 800":    {journal.Fork(800, 200), 950},
				"all replaced":          {journal.Fork(0, 1000), 950},
				"another one of 950":    {journal.Fork(949, 1), 950},
				"nothing is left of it": {journal.Fork(0, 0), 950},
			} {
				if c.held == 0 && strings.Contains(kind, "witness") && what != "honest growth" {
					continue // asking is submitting, and only one can be the first
				}
				err := open().Check(t.Context(), c.log.MustHead(t))
				var conflict *anchor.ConflictError
				if isConflict := errors.As(err, &conflict); isConflict != (c.held > 0) || !isConflict && err != nil {
					t.Errorf("%s: got %v", what, err)
				} else if isConflict && what != "honest growth" && conflict.Held < c.held {
					t.Errorf("%s: held is %d, want %d", what, conflict.Held, c.held)
				}
			}
		})
	}
}

// AU-10: a cosignature that is returned is one of the witness that was named, over this checkpoint.
func TestCosignaturesAreChecked(t *testing.T) {
	l := anchortest.New(t, 5)
	keys := []journal.Key{l.Signer.Key()}
	url, key := ourWitness(t, l)
	_, other := ourWitness(t, l)
	head := l.MustHead(t)
	lines := keep(t, places.NewWitness("w", url, key, keys), head)
	policy, err := journal.ParsePolicy([]byte("log " + keys[0].String() + "\nwitness w " + key.String() + "\nquorum w\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Check(append(bytes.Clone(head.Signed), lines...)); err != nil {
		t.Errorf("the policy does not trust it: %v", err)
	}
	if _, err := places.NewWitness("w", url, other, keys).Keep(t.Context(), head); err == nil {
		t.Error("a signature by another key was taken")
	}
	for what, answer := range map[string]string{
		"nothing": "", "words": "thank you\n", "an old line": string(keep(t, places.NewWitness("w", url, key, keys), head)),
	} {
		head := head
		if what == "an old line" {
			l.Add(1)
			head = l.MustHead(t)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		if got, err := places.NewWitness("w", s.URL, key, keys).Keep(t.Context(), head); err == nil {
			t.Errorf("%s: got %q", what, got)
		}
		s.Close()
	}
}

// A witness that is somewhere else each time, that redirects, that says too much or nothing is an error, not a conflict, and
// the call ends.
func TestStrangeWitnesses(t *testing.T) {
	l := anchortest.New(t, 5)
	_, key := ourWitness(t, l)
	n := 0
	for what, h := range map[string]http.HandlerFunc{
		"elsewhere each time": func(w http.ResponseWriter, _ *http.Request) {
			n++
			w.WriteHeader(409)
			_, _ = w.Write([]byte{byte('1' + n%4), '\n'})
		},
		"no size": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(409) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"unknown":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"broken":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"too much":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20)) },
		"gone":      nil,
	} {
		s := httptest.NewServer(h)
		if h == nil {
			s.Close()
		}
		_, err := places.NewWitness("w", s.URL, key, []journal.Key{l.Signer.Key()}).Keep(t.Context(), l.MustHead(t))
		var conflict *anchor.ConflictError
		if err == nil || errors.As(err, &conflict) {
			t.Errorf("%s: got %v, want an error that is no conflict", what, err)
		}
		s.Close()
	}
	waiting := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-waiting }))
	defer s.Close()
	defer close(waiting)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := places.NewWitness("w", s.URL, key, nil).Keep(ctx, l.MustHead(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent: got %v", err)
	}
}

// A file that is there is never written again, and one that is no checkpoint of this journal is not passed over.
func TestDirectoryNeverOverwrites(t *testing.T) {
	l := anchortest.New(t, 7)
	dir := t.TempDir()
	p := places.NewDirectory("d", dir, []journal.Key{l.Signer.Key()})
	keep(t, p, l.MustHead(t))
	file := filepath.Join(dir, "0000000000000007.checkpoint")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, p, l.MustHead(t))
	var conflict *anchor.ConflictError
	if _, err := p.Keep(t.Context(), l.Fork(3, 4).MustHead(t)); !errors.As(err, &conflict) {
		t.Errorf("another history of the same size: %v, want a conflict", err)
	}
	after, err := os.Stat(file)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written again: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files, want 1", len(left))
	}
	for name, text := range map[string]string{"0000000000000009.checkpoint": "rubbish", "notes.txt": "hello", "9.checkpoint": "rubbish", ".new-x": "torn"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		l.Add(1)
		err := p.Check(t.Context(), l.MustHead(t))
		if ours := strings.HasPrefix(name, "000"); (err != nil) != ours {
			t.Errorf("%s: got %v", name, err)
		}
		_ = os.Remove(path)
	}
	if _, err := places.NewDirectory("d", filepath.Join(dir, "none"), nil).Keep(t.Context(), l.MustHead(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// The branch grows by a commit for each checkpoint, another writer's commit is built upon, and a remote that refuses is an
// error.
func TestGitGrows(t *testing.T) {
	l := anchortest.New(t, 3)
	keys := []journal.Key{l.Signer.Key()}
	repository := filepath.Join(t.TempDir(), "r.git")
	run(t, "git", "init", "--quiet", "--bare", repository)
	a := places.NewGit("a", repository, "main", filepath.Join(t.TempDir(), "a"), keys)
	b := places.NewGit("b", repository, "main", filepath.Join(t.TempDir(), "b"), keys)
	keep(t, a, l.MustHead(t))
	l.Add(1)
	keep(t, b, l.MustHead(t))
	l.Add(1)
	keep(t, a, l.MustHead(t))
	keep(t, a, l.MustHead(t))
	if got := strings.Fields(run(t, "git", "--git-dir="+repository, "log", "--format=%s", "--reverse", "main")); len(got) != 9 || got[1] != "3" || got[4] != "4" || got[7] != "5" {
		t.Errorf("commits: %v, want three that end with 5 records", got)
	}
	if got := run(t, "git", "--git-dir="+repository, "show", "main:checkpoint"); got != string(l.MustHead(t).Signed) {
		t.Errorf("the newest commit has %q", got)
	}
	var conflict *anchor.ConflictError
	if _, err := b.Keep(t.Context(), l.Fork(2, 9).MustHead(t)); !errors.As(err, &conflict) {
		t.Errorf("another history: %v, want a conflict", err)
	}
	away := places.NewGit("c", filepath.Join(t.TempDir(), "none"), "main", filepath.Join(t.TempDir(), "c"), keys)
	if err := away.Check(t.Context(), l.MustHead(t)); err == nil || errors.As(err, &conflict) {
		t.Errorf("no repository: %v, want an error that is no conflict", err)
	}
}

// loadText loads what a sinks.yaml with that text says.
func loadText(t *testing.T, s places.Setup, text string) (places.Config, error) {
	t.Helper()
	path := filepath.Join(s.Dir, "sinks.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return places.Load(path, s)
}

func TestConfig(t *testing.T) {
	l := anchortest.New(t, 1)
	_, key := ourWitness(t, l)
	dir := t.TempDir()
	path := filepath.Join(dir, "sinks.yaml")
	setup := places.Setup{Keys: []journal.Key{l.Signer.Key()}, Dir: dir}
	if c, err := places.Load(path, setup); err != nil || len(c.Sinks) != 0 {
		t.Errorf("no file: %v, %v", c, err)
	}
	good := `need: 2
max_unanchored: {records: 500, age: 2m}
sinks:
  - name: w1
    witness: {url: "http://127.0.0.1:7334", key: "` + key.String() + `"}
  - name: shelf
    every: 5s
    directory: {path: shelf}
  - name: repo
    git: {remote: "ssh://git@git.example/audit.git"}
`
	load := func(text string) (places.Config, error) { return loadText(t, setup, text) }
	c, err := load(good)
	if err != nil || len(c.Sinks) != 3 || c.Limits != (anchor.Limits{Records: 500, Age: 2 * time.Minute, Need: 2}) {
		t.Fatalf("got %v, %v", c, err)
	}
	for i, want := range []anchor.Sink{{Kind: "witness", Every: time.Second}, {Kind: "directory", Every: 5 * time.Second}, {Kind: "git", Every: time.Minute}} {
		if got := c.Sinks[i]; got.Kind != want.Kind || got.Every != want.Every {
			t.Errorf("sink %d: got %s each %s, want %s each %s", i, got.Kind, got.Every, want.Kind, want.Every)
		}
	}
	for text, want := range map[string]string{
		strings.Replace(good, "every: 5s", "evry: 5s", 1):                           ":7: ",
		strings.Replace(good, "need: 2", "ned: 2", 1):                               ":1: ",
		strings.Replace(good, "{path: shelf}", "{path: shelf, mode: 1}", 1):         ":8: ",
		strings.Replace(good, "need: 2", "need: 4", 1):                              "from 1 to 3",
		strings.Replace(good, "need: 2", "need: 0", 1):                              "from 1 to 3",
		strings.Replace(good, "500", "0", 1):                                        "1 or more",
		strings.Replace(good, "age: 2m", "age: 2", 1):                               "such as 15m",
		strings.Replace(good, "every: 5s", "every: 5ms", 1):                         "at least 1s",
		strings.Replace(good, "name: shelf", "name: w1", 1):                         "used already",
		strings.Replace(good, "name: shelf", "name: The Shelf", 1):                  "one word",
		strings.Replace(good, "{path: shelf}", "{}", 1):                             "path is missing",
		strings.Replace(good, "directory: {path: shelf}", "file: {}", 1):            "path is missing",
		strings.Replace(good, "    directory: {path: shelf}\n", "", 1):              "exactly one",
		good + "    directory: {path: x}\n":                                         "exactly one",
		strings.Replace(good, key.String(), l.Signer.Key().String(), 1):             "key of a journal",
		strings.Replace(good, "http://127.0.0.1:7334", "ftp://x", 1):                "http://",
		strings.Replace(good, "http://127.0.0.1", "http://me:pass@127.0.0.1", 1):    "http://",
		strings.Replace(good, "ssh://git@git.example/audit.git", "--upload-p=x", 1): "remote",
		strings.Replace(good, "audit.git\"}", "audit.git\", branch: ../x}", 1):      "branch",
		"sinks: [": "sinks.yaml",
		"- a":      "sinks.yaml",
	} {
		if c, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, %v, want %q", text, c, err, want)
		}
	}
	if c, err := load("# nothing yet\n"); err != nil || len(c.Sinks) != 0 {
		t.Errorf("comments only: %v, %v", c, err)
	}
}
