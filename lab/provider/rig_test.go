package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/lab/provider"
)

const goodCharge = `{"amount":25000,"currency":"usd","customer":"cus_1","metadata":{"idem_key":"k1"},"confirm":true}`

// rig is a provider that listens, with a client that never keeps a connection
// and so never sends a request again by itself.
type rig struct {
	*testing.T
	*provider.Server
	ledger string
	url    string
	client *http.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return openRig(t, filepath.Join(t.TempDir(), "ledger.jsonl"))
}

func openRig(t *testing.T, ledger string) *rig {
	t.Helper()
	server, err := provider.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, server, ledger, url, &http.Client{
		Timeout:       20 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (r *rig) set(switches provider.Switches) {
	r.Helper()
	if err := r.Set(switches); err != nil {
		r.Fatal(err)
	}
}

// fault sets one fault and nothing else.
func (r *rig) fault(fault provider.Fault) {
	r.Helper()
	r.set(provider.Switches{Faults: []provider.Fault{fault}})
}

// reply is an answer that was read to its end, or the error that came instead.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) String() string {
	if r.err != nil {
		return "error " + r.err.Error()
	}
	return http.StatusText(r.status) + " " + r.body
}

func (r *rig) send(ctx context.Context, method, path, key, body string) reply {
	r.Helper()
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(content), err}
}

func (r *rig) post(path, key, body string) reply {
	r.Helper()
	return r.send(r.Context(), http.MethodPost, path, key, body)
}

func (r *rig) charge(key string) reply {
	r.Helper()
	return r.post("/v1/charges", key, goodCharge)
}

func (r *rig) get(path string) reply {
	r.Helper()
	return r.send(r.Context(), http.MethodGet, path, "", "")
}

// postLater sends in the background and returns what came of it.
func (r *rig) postLater(ctx context.Context, path, key, body string) <-chan reply {
	r.Helper()
	replies := make(chan reply, 1)
	var sending sync.WaitGroup
	sending.Go(func() { replies <- r.send(ctx, http.MethodPost, path, key, body) })
	r.Cleanup(sending.Wait)
	return replies
}

// await waits for something that the provider has seen or done.
func (r *rig) await(until func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	if err := r.Await(ctx, until); err != nil {
		r.Fatalf("await: %v; requests %+v", err, r.Requests())
	}
}

// awaitRead waits until n bodies were read to their end.
func (r *rig) awaitRead(n int) {
	r.Helper()
	r.await(func() bool {
		read := 0
		for _, request := range r.Requests() {
			if request.BodyDigest != "" {
				read++
			}
		}
		return read >= n
	})
}

func (r *rig) expect(got reply, status int) reply {
	r.Helper()
	if got.err != nil || got.status != status {
		r.Fatalf("got %v, want %d", got, status)
	}
	return got
}

func (r *rig) expectCode(got reply, status int, code string) {
	r.Helper()
	r.expect(got, status)
	var in struct {
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(got.body), &in); err != nil || in.Error.Code != code {
		r.Fatalf("got %v, want the error code %s", got, code)
	}
}

func (r *rig) expectReplay(got, first reply) {
	r.Helper()
	r.expect(got, first.status)
	if got.body != first.body || got.header.Get("Idempotent-Replayed") != "true" {
		r.Fatalf("got %v with Idempotent-Replayed %q, want %v again and true", got, got.header.Get("Idempotent-Replayed"), first)
	}
}

// expectEffects compares the count in memory and in the file.
func (r *rig) expectEffects(n int) []provider.Row {
	r.Helper()
	rows := r.Effects()
	onDisk, err := provider.ReadLedger(r.ledger)
	if err != nil {
		r.Fatal(err)
	}
	got, _ := json.Marshal(rows)
	want, _ := json.Marshal(onDisk)
	if len(rows) != n || !bytes.Equal(got, want) {
		r.Fatalf("effects %s, on disk %s; want %d, the same in both", got, want, n)
	}
	return rows
}

// clock is a clock that the test turns.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (r *rig) stopClock() *clock {
	c := &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.Now = func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}
	return c
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
