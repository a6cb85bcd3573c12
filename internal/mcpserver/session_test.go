package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// request makes one request by hand: of the older era, unless its header says otherwise. It may run beside the test.
func request(t *testing.T, method, url, token, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2025-11-25",
	} {
		req.Header.Set(k, v)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return &http.Response{}, ""
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s is answered %s, and the answer does not end: %v", method, res.Status, err)
	}
	return res, string(answer)
}

// openSession begins a session of the older era and gives the header that names it.
func openSession(t *testing.T, url, token string) map[string]string {
	t.Helper()
	res, answer := request(t, http.MethodPost, url, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, nil)
	session := map[string]string{"Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")}
	if session["Mcp-Session-Id"] == "" {
		t.Fatalf("no session was opened: %d %s", res.StatusCode, answer)
	}
	request(t, http.MethodPost, url, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	return session
}

// Whoever knew a session's id could speak in it with a token of its own: cancel its calls, hear its answers and close it.
func TestASessionBelongsToWhoOpenedIt(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	session := openSession(t, url, rig.TokenA)
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	answer := make(chan string, 1)
	go func() {
		_, text := request(t, http.MethodPost, url, rig.TokenA, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"charge","arguments":`+charge+`}}`, session)
		answer <- text
	}()
	r.AwaitEffects(1)
	for name, c := range map[string]struct{ method, body string }{
		"cancels": {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`},
		"calls":   {http.MethodPost, `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"charge","arguments":{"amount":1,"customer":"cus_7"}}}`},
		"listens": {http.MethodGet, ""},
		"closes":  {http.MethodDelete, ""},
	} {
		if res, text := request(t, c.method, url, rig.TokenB, c.body, session); res.StatusCode < 400 {
			t.Errorf("somebody else %s in the session: %d %s", name, res.StatusCode, text)
		}
	}
	r.Break()
	if text := <-answer; !strings.Contains(text, `"state":"completed"`) {
		t.Errorf("the owner's call was answered %s", text)
	}
	if res, text := request(t, http.MethodPost, url, rig.TokenA, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, session); res.StatusCode != http.StatusOK {
		t.Errorf("the owner's session is gone: %d %s", res.StatusCode, text)
	}
	r.Settled()
	for _, e := range r.Events() {
		if e.Kind() == "call.left" || strings.Contains(e.Text("actor.identity"), "agent-b") {
			t.Errorf("%s of %s is on record", e.Kind(), e.Text("actor.identity"))
		}
	}
	if r.Effects() != 1 || strings.Contains(r.Export(), session["Mcp-Session-Id"]) {
		t.Errorf("%d effects, want 1, and no session id in the journal", r.Effects())
	}
}

// A session's name went into the journal as it came: 60 kB of it with each call, and with more, or with bytes that are no
// UTF-8, neither the call nor its refusal could be recorded.
func TestASessionHeaderIsOnRecordAsADigest(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for name, session := range map[string]string{
		"short": "canary-session", "60 kB": strings.Repeat("s", 60_000), "more than a record holds": strings.Repeat("s", 70_000), "not UTF-8": "a\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			url := r.Door().URL
			header := map[string]string{
				"Mcp-Session-Id": session, "User-Agent": session, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge",
			}
			for args, want := range map[string]string{charge: string(action.Completed), `{"amount":"canary"}`: string(action.CodeInvalidArguments)} {
				_, text := request(t, http.MethodPost, url, rig.TokenA, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"charge","arguments":`+args+`,`+meta+`}}`, header)
				if !strings.Contains(text, want) {
					t.Errorf("%s is answered %.300s, want %s", args, text, want)
				}
			}
			r.Settled()
			calls := map[string]int{}
			for _, e := range r.Events() {
				if !strings.HasPrefix(e.Kind(), "call.") {
					continue
				}
				calls[e.Kind()]++
				if got := e.Text("call.session"); !strings.HasPrefix(got, "sha256:") || len(got) > 80 {
					t.Errorf("%s has the session %.100q, want a digest", e.Kind(), got)
				}
			}
			if calls["call.accepted"] != 1 || calls["call.refused"] != 1 || r.Effects() != 1 {
				t.Errorf("on record are %v, with %d effects; want one accepted, one refused and 1", calls, r.Effects())
			}
			if size := len(r.Export()); size > 20_000 {
				t.Errorf("the journal has %d bytes", size)
			}
		})
	}
}
