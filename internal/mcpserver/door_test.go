package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

const charge = `{"amount":25000,"customer":"cus_42"}`

// eras are the protocol revisions that a client may speak, on one URL.
var eras = map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}

// connect makes a client session over HTTP.
func connect(t *testing.T, url, token, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true,
	}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// bearer adds a token to each request and keeps no connection, so that net/http has none to resend on.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// status is the machine-readable half of a result.
func status(t *testing.T, r *mcp.CallToolResult) action.Status {
	t.Helper()
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Deed action.Status }
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s.Deed
}

func call(t *testing.T, s *mcp.ClientSession, tool, args string, meta mcp.Meta) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args), Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// API-03, API-10, HT-21: both eras on one URL list the tools and call one; the result names its action.
func TestBothErasOnOneURL(t *testing.T) {
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			s := connect(t, r.Door().URL, rig.TokenA, version)
			tools, err := s.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 5 {
				t.Fatalf("got %d tools, %v; want 5", len(tools.Tools), err)
			}
			got := call(t, s, "charge", charge, nil)
			st := status(t, got)
			if got.IsError || st.State != action.Completed || r.Effects() != 1 {
				t.Fatalf("got %+v, %d effects", st, r.Effects())
			}
			if !action.ValidID(action.Prefix, string(st.ActionID)) || st.ExecutionID != st.ActionID {
				t.Errorf("the result names %q and %q", st.ActionID, st.ExecutionID)
			}
			stored := r.Stored(st.ActionID)
			if stored.Actor != "token:agent-a" {
				t.Errorf("actor is %q", stored.Actor)
			}
			if seen := callOf(t, r, st.ActionID).Text("call.protocol_version"); seen != "" && seen != version {
				t.Errorf("the record says protocol %q, want %q", seen, version)
			}
		})
	}
}

func callOf(t *testing.T, r *rig.Rig, id action.ID) rig.Event {
	t.Helper()
	for _, e := range r.EventsOf(id) {
		if strings.HasPrefix(e.Kind(), "call.") {
			return e
		}
	}
	t.Fatalf("no call of %s is on record", id)
	return nil
}

// API-01: a client over a byte stream. EX-06: two processes that both number from 1 are not merged.
func TestTwoProcessesWithEqualCallsAreTwoActions(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	d := r.Door()
	a, b := r.Stream(d, rig.Agent("agent", 100)), r.Stream(d, rig.Agent("agent", 200))
	first, second := status(t, call(t, a, "charge", charge, nil)), status(t, call(t, b, "charge", charge, nil))
	if first.ActionID == second.ActionID || r.Effects() != 2 {
		t.Errorf("%s and %s, %d effects; want two actions and two effects", first.ActionID, second.ActionID, r.Effects())
	}
}

// API-18: the hints are those of the contract.
func TestAnnotationsComeFromTheContract(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	s := connect(t, r.Door().URL, rig.TokenA, "2025-11-25")
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		c, ok := r.Contracts.Tool(tool.Name)
		if !ok { // one of deed's own
			continue
		}
		want := c.Annotations()
		got := tool.Annotations
		if got.ReadOnlyHint != want.ReadOnly || *got.DestructiveHint != want.Destructive || got.IdempotentHint != want.Idempotent {
			t.Errorf("%s: got %+v, want %+v", tool.Name, got, want)
		}
		if tool.Meta["dev.deed/retry"] != c.Label() { // DOC-05
			t.Errorf("%s is labelled %v, want %s", tool.Name, tool.Meta["dev.deed/retry"], c.Label())
		}
		properties := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		if _, ok := properties["repeat_of"]; ok != c.HasEffects {
			t.Errorf("%s: repeat_of is offered: %v", tool.Name, ok)
		}
	}
}

// EX-05: one JSON-RPC id with two sets of arguments is two actions. EX-03, EX-04: the correlation is stored apart, with
// the caller and "no session" where there is none.
func TestJSONRPCIDDecidesNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	d := r.Door()
	var ids []action.ID
	for _, amount := range []int{100, 200} {
		_, body := post(t, d.URL, rig.TokenA, 41, fmt.Sprintf(`{"amount":%d,"customer":"cus_%d"}`, amount, amount), nil)
		ids = append(ids, statusOf(t, body).ActionID)
	}
	if ids[0] == ids[1] || r.Effects() != 2 {
		t.Fatalf("%v, %d effects", ids, r.Effects())
	}
	r.Settled()
	for _, id := range ids {
		e := callOf(t, r, id)
		if e.Text("call.request_id") != "41" || e.Text("call.session") != action.NoSession || e.Text("actor.identity") != "agent-a" {
			t.Errorf("correlation of %s: %v", id, e["call"])
		}
	}
}

// post makes one modern tools/call by hand, with the given JSON-RPC id.
func post(t *testing.T, url, token string, id int, args string, meta map[string]any) (int, []byte) {
	t.Helper()
	all := map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}
	for k, v := range meta {
		all[k] = v
	}
	m, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"charge","arguments":%s,"_meta":%s}}`, id, args, m)
	return postRaw(t, url, token, []byte(body))
}

func postRaw(t *testing.T, url, token string, body []byte) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge",
	} {
		req.Header.Set(k, v)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

func statusOf(t *testing.T, body []byte) action.Status {
	t.Helper()
	var m struct {
		Result struct {
			StructuredContent struct{ Deed action.Status }
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m.Result.StructuredContent.Deed
}

// RM-23, RM-24, ST-07, EX-07, case 097: the client drops its POST while the provider works and sends it again under a new
// id. The effect is one, the first answer is known to be interrupted, and the second call gets the recorded result.
func TestDroppedPostAttaches(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	d := r.Door()
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, drop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge","arguments":` + charge +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, body)
		for k, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + rig.TokenA,
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge",
		} {
			req.Header.Set(k, v)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	if err := r.Provider.Await(t.Context(), func() bool { return r.Effects() == 1 }); err != nil {
		t.Fatal(err)
	}
	drop()
	<-done
	id := r.Actions()[0].ID
	awaitKind(t, r, id, "call.left")
	r.Break() // the provider answers now, and nobody waits for it
	awaitKind(t, r, id, "action.completed")
	if got := r.Stored(id); got.State != action.Completed {
		t.Fatalf("the action is %s after its caller left", got.State)
	}
	_, again := post(t, d.URL, rig.TokenA, 2, charge, nil)
	st := statusOf(t, again)
	if st.AttachedTo != id || !st.Replayed || st.State != action.Completed || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("got %+v, %d effects, %d requests", st, r.Effects(), r.Requests())
	}
}

// awaitKind waits until the journal has an event of the action.
func awaitKind(t *testing.T, r *rig.Rig, id action.ID, kind string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		r.Settled()
		for _, e := range r.EventsOf(id) {
			if e.Kind() == kind {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s of %s did not come: %v", kind, id, rig.Kinds(r.EventsOf(id)))
}

// Nobody proved anything, so nothing is done.
func TestCallersWithoutATokenAreTurnedAway(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	for _, token := range []string{"", "wrong", rig.TokenA + "x"} {
		if code, body := post(t, url, token, 1, charge, nil); code != http.StatusUnauthorized {
			t.Errorf("token %q: got %d %s", token, code, body)
		}
	}
	if r.Effects() != 0 || len(r.Actions()) != 0 {
		t.Error("a caller without a token acted")
	}
}

// case 042, API-16: a key counts inside its own actor only.
func TestKeysOfTwoActorsDoNotMeet(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	key := map[string]any{"dev.deed/run": "r", "dev.deed/tool_call_id": "1"}
	_, a := post(t, url, rig.TokenA, 1, charge, key)
	_, b := post(t, url, rig.TokenB, 1, charge, key)
	first, second := statusOf(t, a), statusOf(t, b)
	if first.ActionID == second.ActionID || r.Effects() != 2 {
		t.Errorf("%s and %s, %d effects", first.ActionID, second.ActionID, r.Effects())
	}
	if bytes.Contains(b, []byte(first.ActionID)) || bytes.Contains(b, []byte(first.RepeatOf)) {
		t.Error("one actor's answer names another's action")
	}
}

// A token that strangers share: a keyless repeat is held and sees nothing of the result; with a run of its own it attaches.
func TestSharedTokenIsHeldUnlessItSaysWhoItIs(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	_, a := post(t, url, rig.TokenShared, 1, charge, nil)
	_, b := post(t, url, rig.TokenShared, 2, charge, nil)
	first, second := statusOf(t, a), statusOf(t, b)
	if second.Code != action.CodeHeld || second.HeldBy != first.ActionID || bytes.Contains(b, []byte(`"ch_`)) || r.Effects() != 1 {
		t.Errorf("got %s, %d effects", b, r.Effects())
	}
	hint := map[string]any{"claudecode/toolUseId": "toolu_1"}
	_, c := post(t, url, rig.TokenShared, 3, `{"amount":1,"customer":"cus_7"}`, hint)
	_, d := post(t, url, rig.TokenShared, 4, `{"amount":1,"customer":"cus_7"}`, hint)
	if third, fourth := statusOf(t, c), statusOf(t, d); fourth.AttachedTo != third.ActionID || r.Effects() != 2 {
		t.Errorf("with a hint: %s then %s, %d effects", third.ActionID, fourth.AttachedTo, r.Effects())
	}
}

// case 041: over-long, empty and blank keys are refused, never cut and never taken for missing.
func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	for name, v := range map[string]any{"64 KiB": strings.Repeat("k", 64<<10), "empty": "", "blank": "   ", "a number": 7} {
		_, body := post(t, url, rig.TokenA, 1, charge, map[string]any{"dev.deed/tool_call_id": v})
		if st := statusOf(t, body); st.Code != action.CodeKeyInvalid || r.Effects() != 0 {
			t.Errorf("%s: got %s, %d effects", name, st.Code, r.Effects())
		}
	}
	long := strings.Repeat("k", 299)
	for _, last := range []string{"a", "b"} {
		post(t, url, rig.TokenA, 1, `{"amount":1,"customer":"cus_`+last+`"}`, map[string]any{"dev.deed/tool_call_id": long + last})
	}
	if r.Effects() != 2 {
		t.Errorf("two keys that differ in their last byte: %d effects, want 2", r.Effects())
	}
}

// Bad input gets a clear error, nothing is sent and nothing is lost: each of these leaves the door usable.
func TestBadInputSendsNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	wrap := func(args string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge","arguments":` + args +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	}
	for name, body := range map[string][]byte{
		"not JSON":                 []byte(`{"jsonrpc":`),
		"a list":                   []byte(`[1,2,3]`),
		"duplicate argument":       wrap(`{"amount":1,"customer":"acct_1","customer":"acct_2"}`), // case 046
		"other case":               wrap(`{"amount":1,"customer":"acct_1","CUSTOMER":"acct_2"}`),
		"Kelvin sign":              wrap("{\"amount\":1,\"customer\":\"a\",\"\u212Aind\":\"b\"}"),
		"invalid UTF-8":            wrap("{\"amount\":1,\"customer\":\"\xff\"}"),
		"lone surrogate":           wrap(`{"amount":1,"customer":"\ud800"}`),
		"2^64":                     wrap(`{"amount":18446744073709551616,"customer":"c"}`),
		"1e400":                    wrap(`{"amount":1e400,"customer":"c"}`),
		"text for a number":        wrap(`{"amount":"1","customer":"c"}`),
		"missing and unknown":      wrap(`{"amont":1}`),
		"arguments are a list":     wrap(`[1]`),
		"arguments are null":       wrap(`null`),
		"nested far too deep":      wrap(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)),
		"more than 2 MiB":          wrap(`{"amount":1,"customer":"` + strings.Repeat("x", 50<<20) + `"}`),
		"more than 1 MiB":          wrap(`{"amount":1,"customer":"` + strings.Repeat("x", 3<<19) + `"}`),
		"a result token of nobody": wrap(`{"amount":1,"customer":"c","repeat_of":"rep_00000000000000000000000000"}`),
	} {
		code, answer := postRaw(t, url, rig.TokenA, body)
		if code == http.StatusInternalServerError || len(answer) == 0 {
			t.Errorf("%s: got %d %q", name, code, answer)
		}
		if code == http.StatusOK && !bytes.Contains(answer, []byte(`"isError":true`)) && !bytes.Contains(answer, []byte(`"error"`)) {
			t.Errorf("%s: got %s", name, answer)
		}
		if r.Effects() != 0 || r.Requests() != 0 {
			t.Fatalf("%s: something was sent", name)
		}
	}
	if _, answer := post(t, url, rig.TokenA, 1, charge, nil); statusOf(t, answer).State != action.Completed {
		t.Errorf("after the bad input: %s", answer)
	}
}

// 2^53+1 keeps its digits all the way. case 043
func TestLargeIntegersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	for i, amount := range []string{"9007199254740992", "9007199254740993"} {
		post(t, url, rig.TokenA, 1, fmt.Sprintf(`{"amount":%s,"customer":"cus_%d"}`, amount, i), nil)
		rows := r.Provider.Effects()
		if len(rows) != i+1 || !strings.Contains(string(rows[i].Body), amount) {
			t.Errorf("the provider's ledger does not show %s: %d rows", amount, len(rows))
		}
	}
}

// RM-18, case 039: 50 equal calls at once through the door are one action and 49 attached.
func TestFiftyEqualCallsAreOneAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	d := r.Door()
	r.Break(provider.Fault{Kind: provider.Delay, Delay: 300 * time.Millisecond})
	s := r.Stream(d, rig.Agent("agent", 7))
	var mu sync.Mutex
	attached, ids := 0, map[action.ID]bool{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "charge", Arguments: json.RawMessage(charge)})
			if err != nil {
				t.Error(err)
				return
			}
			st := status(t, res)
			mu.Lock()
			defer mu.Unlock()
			ids[st.ActionID] = true
			if st.AttachedTo != "" {
				attached++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || attached != 49 || r.Effects() != 1 || len(r.Actions()) != 1 {
		t.Errorf("%d ids, %d attached, %d effects, %d actions", len(ids), attached, r.Effects(), len(r.Actions()))
	}
}
