package places_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/anchor/places"
	"deed.dev/deed/journal"
)

// The whole way with real places, as sinks.yaml lists them: a journal that grows is anchored everywhere, its end too; what is
// cosigned is what the policy of an auditor trusts; and the next process refuses a journal that was cut. AU-10
func TestFromTheFileToThePlaces(t *testing.T) {
	l := anchortest.New(t, 10)
	url, key := ourWitness(t, l)
	dir := t.TempDir()
	repository, shelf := filepath.Join(dir, "r.git"), filepath.Join(dir, "shelf")
	run(t, "git", "init", "--quiet", "--bare", repository)
	if err := os.Mkdir(shelf, 0o755); err != nil {
		t.Fatal(err)
	}
	open := func(l *anchortest.Log) *anchor.Anchor {
		c, err := loadText(t, places.Setup{Dir: dir, Keys: []journal.Key{l.Signer.Key()}}, fmt.Sprintf(`need: 3
sinks:
  - {name: w1, witness: {url: %q, key: %q}}
  - {name: repo, git: {remote: r.git}}
  - {name: shelf, directory: {path: shelf}}
`, url, key))
		if err != nil {
			t.Fatal(err)
		}
		return anchor.New(anchor.Options{Log: l, Sinks: c.Sinks, Limits: c.Limits, Dir: dir, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	}
	a := open(l)
	if err := a.Check(t.Context()); err != nil || a.Open() != nil {
		t.Fatalf("the start: %v, %v", err, a.Open())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	l.Add(90)
	cancel()
	<-done
	for _, p := range a.State().Places {
		if p.Size != 100 || !p.Checked || p.Problem != "" {
			t.Errorf("%s holds %d records (%s), want 100", p.Name, p.Size, p.Problem)
		}
	}
	policy, err := journal.ParsePolicy(fmt.Appendf(nil, "log %s\nwitness w1 %s\nquorum w1\n", l.Signer.Key(), key))
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := policy.Check(a.Cosigned()); err != nil || opened.Size != 100 {
		t.Errorf("an auditor reads a checkpoint of %d, %v; want one of 100", opened.Size, err)
	}
	if err := os.Remove(filepath.Join(dir, "anchored.json")); err != nil {
		t.Fatal(err)
	}
	cut := open(l.Fork(99, 0))
	err = cut.Check(t.Context())
	var conflict *anchor.ConflictError
	if !errors.As(err, &conflict) || conflict.Held != 100 || cut.Open() == nil {
		t.Errorf("one record less: %v; want a conflict", err)
	}
	for _, p := range cut.State().Places {
		if p.Problem == "" {
			t.Errorf("%s has nothing against it", p.Name)
		}
	}
	if err := open(l).Check(t.Context()); err != nil {
		t.Errorf("the whole journal is refused as well: %v", err)
	}
}
