package gateway_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/places"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/witness"
	"deed.dev/deed/journal"
)

// storedLog is the journal of a store, signed with a key of the test.
type storedLog struct {
	*sqlite.Store
	signer *journal.Signer
}

func (l storedLog) Head(ctx context.Context) (anchor.Head, error) {
	top, err := l.Top(ctx)
	if err != nil {
		return anchor.Head{}, err
	}
	h := anchor.Head{Checkpoint: top, Time: time.Now()}
	h.Prove = func(ctx context.Context, old uint64) ([]journal.Hash, error) {
		return journal.ProveConsistency(old, top.Size, l.Tree(ctx))
	}
	h.Signed, err = journal.SignCheckpoint(top, l.signer)
	return h, err
}

// AU-10, section 1.3 of the format, with nothing in the way of the real thing: a gateway with its store, an anchor and a
// witness. While the witness is away calls go on up to the limit and no further; when it is back, so are they.
func TestAGatewayWithoutItsWitness(t *testing.T) {
	t.Parallel()
	private, _, err := journal.GenerateKey(rand.Reader, "test/rig")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "w")
	key, err := witness.Create(dir, "witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	if err := witness.Watch(dir, signer.Key()); err != nil {
		t.Fatal(err)
	}
	w, err := witness.Open(dir, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var away atomic.Bool
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(rw, "away", http.StatusServiceUnavailable)
			return
		}
		w.Handler().ServeHTTP(rw, r)
	}))
	defer door.Close()

	const limit = 60
	var a *anchor.Anchor
	r := rig.New(t, rig.Options{Parts: func(o *gateway.Options) {
		a = anchor.New(anchor.Options{
			Log: storedLog{o.Store.(*sqlite.Store), signer}, Limits: anchor.Limits{Records: limit}, Dir: t.TempDir(), Logger: o.Log, Now: time.Now,
			Sinks: []anchor.Sink{{Place: places.NewWitness("w1", door.URL, key, []journal.Key{signer.Key()}), Kind: "witness"}},
		})
		if err := a.Check(t.Context()); err != nil {
			t.Errorf("the start is refused: %v", err)
		}
		o.Gate = a
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()

	charge := func(n int) (action.Answer, error) {
		return r.Call("charge", fmt.Sprintf(`{"amount":%d,"customer":"cus_42"}`, 100+n)).Key("run", int64(n), fmt.Sprintf("toolu_%d", n)).Try()
	}
	away.Store(true)
	n, refused := 0, (*action.Error)(nil)
	for ; n < limit && !errors.As(err, &refused); n++ {
		_, err = charge(n)
	}
	if refused == nil || refused.Reason != "not_anchored" {
		t.Fatalf("%d calls without a witness, and the last one says %v", n, err)
	}
	sent := r.Requests()
	if sent == 0 || sent != n-1 {
		t.Errorf("%d requests for %d calls, want one for each but the last", sent, n)
	}
	if u := a.Unanchored(); u.Records < limit || u.Records > limit+15 {
		t.Errorf("%d records are not anchored, and the limit is %d", u.Records, limit)
	}
	if _, err = charge(n - 1); err == nil || r.Requests() != sent {
		t.Errorf("again: %v, %d requests more", err, r.Requests()-sent)
	}
	away.Store(false)
	for deadline := time.Now().Add(20 * time.Second); a.Open() != nil && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // the anchor's own time to try again
	}
	if answer, err := charge(n - 1); err != nil || answer.Action.State != action.Completed || r.Requests() != sent+1 {
		t.Errorf("when it is back: %v, %d requests more, want one", err, r.Requests()-sent)
	}
	if len(a.Cosigned()) == 0 {
		t.Error("no checkpoint is cosigned")
	}
}
