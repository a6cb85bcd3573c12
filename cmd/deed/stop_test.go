package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/provider"
)

// endsWithin waits until a program has ended by itself, and fails the test if it did not, or not well.
func endsWithin(t *testing.T, cmd *exec.Cmd, limit time.Duration) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended badly: %v", err)
		}
	case <-time.After(limit):
		t.Errorf("it did not end within %s", limit)
		_ = cmd.Process.Kill()
		<-ended
	}
}

// legacy makes one request of a session of the older era and leaves its answer open.
func (d *daemon) legacy(method, session, body string) *http.Response {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, "http://"+d.address+"/mcp", strings.NewReader(body))
	d.must(err)
	for k, v := range map[string]string{
		"Authorization": "Bearer " + d.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2025-11-25",
	} {
		req.Header.Set(k, v)
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	} else {
		req.Header.Del("MCP-Protocol-Version")
	}
	res, err := http.DefaultClient.Do(req)
	d.must(err)
	d.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// A client of the older era leaves a stream open that only waits. It kept the gateway from stopping for as long as the
// gateway waits for targets, and made its end look like a failure.
func TestAWaitingClientDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.start(built.deed)
	first := d.legacy(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	_, err := io.Copy(io.Discard, first.Body)
	d.must(err)
	session := first.Header.Get("Mcp-Session-Id")
	d.legacy(http.MethodPost, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if hanging := d.legacy(http.MethodGet, session, ""); hanging.StatusCode != http.StatusOK {
		t.Fatalf("the stream was refused: %s", hanging.Status)
	}
	d.must(d.cmd.Process.Signal(syscall.SIGTERM))
	endsWithin(t, d.cmd, 10*time.Second)
	d.cmd = nil
	if said := d.stderr.String(); strings.Contains(said, "deadline") || strings.Contains(said, "rror:") {
		t.Errorf("it says:\n%s", said)
	}
}

// A request with an id that was in use was never answered, and deed mcp waited for that answer after its agent had gone.
func TestADuplicateIDDoesNotKeepTheProcessAlive(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.must(d.provider.Set(provider.Switches{Faults: []provider.Fault{{Kind: provider.CommitThenHang, Times: 1}}}))
	cmd := exec.Command(built.deed, "mcp", "--config", filepath.Join(d.dir, "config"), "--data", d.data(), "--socket", filepath.Join(d.dir, "none"))
	cmd.Env = append(os.Environ(), "DEED_DEMO_SECRET=canary-daemon-secret")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &d.stderr
	in, err := cmd.StdinPipe()
	d.must(err)
	d.must(cmd.Start())
	mail := func(to string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send_email","arguments":{"to":%q}}}`+"\n", to)
	}
	say := func(text string) { _, err := io.WriteString(in, text); d.must(err) }
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + mail("a"))
	d.must(d.provider.Await(t.Context(), func() bool { return len(d.provider.Effects()) == 1 }))
	say(mail("b"))
	d.must(in.Close())
	d.must(d.provider.Set(provider.Switches{}))
	endsWithin(t, cmd, 10*time.Second)
	answered := 0
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     any
			Result struct {
				StructuredContent struct{ Deed action.Status }
			}
		}
		d.must(json.Unmarshal([]byte(line), &m))
		if m.ID == float64(7) && m.Result.StructuredContent.Deed.State == action.Completed {
			answered++
		}
	}
	if answered != 1 || len(d.provider.Effects()) != 1 {
		t.Errorf("%d answers and %d effects, want 1 and 1\n%s%s", answered, len(d.provider.Effects()), out.String(), d.stderr.String())
	}
}
