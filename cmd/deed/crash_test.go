package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/crashpoint"
	"deed.dev/deed/internal/identity"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/lab/provider"
)

// said is what a program writes, for those who read it while it still does.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string { return string(s.Bytes()) }

// Bytes is a copy.
func (s *said) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.text.Bytes())
}

func (s *said) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
}

// daemon is a gateway process under test, with a provider whose ledger it cannot reach.
type daemon struct {
	t        *testing.T
	provider *provider.Server
	dir      string
	address  string
	token    string
	cmd      *exec.Cmd
	stderr   said
	operator string // socket of the operator's door
}

const crashTools = demoContract + "---\n" + mailContract + `---
tool: read
description: A read.
input: {type: object}
http: {method: GET, url: PROVIDER/v1/echo, private: [127.0.0.0/8]}
on_lost_response: {class: read_only, evidence: the provider of these tests}
done_when: ${status == 200}
attempts: 3
timeout: 5s
---
tool: pay
description: A charge at a target that can be asked afterwards.
input: {type: object, required: [amount], properties: {amount: {type: integer}}}
http:
  method: POST
  url: PROVIDER/v1/charges
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response: {class: status_queryable, attach_for: 15m, evidence: the provider of these tests}
lookup:
  request: {method: GET, url: "PROVIDER/v1/charges?metadata%5Bidem_key%5D={deed.idem_key}"}
  found: ${status == 200 && size(body.data) > 0}
  result: ${body.data[0]}
  authoritative: true
  settle: 100ms
done_when: ${status == 201}
attempts: 9
timeout: 500ms
keep_result: 30d
`

func newDaemon(t *testing.T, tools string) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	var err error
	d.provider, err = provider.Open(filepath.Join(d.dir, "ledger"))
	d.must(err)
	t.Cleanup(func() { _ = d.provider.Close() })
	url, err := d.provider.Listen("127.0.0.1:0")
	d.must(err)
	d.must(os.MkdirAll(filepath.Join(d.dir, "config", "contracts"), 0o700))
	d.must(os.MkdirAll(d.data(), 0o700))
	for name, text := range map[string]string{
		"contracts/tools.yaml": strings.ReplaceAll(tools, "PROVIDER", url),
		"credentials.yaml":     strings.ReplaceAll(demoCredentials, "HOST", strings.TrimPrefix(url, "http://")),
	} {
		d.must(os.WriteFile(filepath.Join(d.dir, "config", name), []byte(text), 0o600))
	}
	tokens, err := identity.OpenTokens(filepath.Join(d.data(), "tokens.json"))
	d.must(err)
	d.token, err = tokens.Create("agent", identity.TokenOptions{Sole: true}, time.Now())
	d.must(err)
	t.Cleanup(func() {
		if d.cmd != nil {
			d.kill()
		}
	})
	return d
}

func (d *daemon) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) data() string { return filepath.Join(d.dir, "state") }

// start runs a binary, with env, and waits until its doors are open.
func (d *daemon) start(binary string, env ...string) {
	d.t.Helper()
	if err := d.tryStart(binary, env...); err != nil {
		d.t.Fatalf("the gateway did not start: %v\n%s", err, d.stderr.String())
	}
}

// tryStart is start for a gateway that may refuse to.
func (d *daemon) tryStart(binary string, env ...string) error {
	d.t.Helper()
	// A Unix socket's path is short; the directory of a test may not be.
	socket, err := os.MkdirTemp("", "deed-c-")
	d.must(err)
	d.t.Cleanup(func() { _ = os.RemoveAll(socket) })
	d.stderr.Reset()
	d.cmd = exec.Command(binary, "serve", "--json", "--config", filepath.Join(d.dir, "config"), "--data", d.data(),
		"--socket", filepath.Join(socket, "deed.sock"), "--listen", d.address)
	d.cmd.Env = append(append(os.Environ(), "DEED_DEMO_SECRET=canary-daemon-secret"), env...)
	d.cmd.Stderr = &d.stderr
	out, err := d.cmd.StdoutPipe()
	d.must(err)
	d.must(d.cmd.Start())
	var ready struct {
		HTTP     string `json:"http"`
		Operator string `json:"operator_socket"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		err = errors.Join(err, d.cmd.Wait())
		d.cmd = nil
		return err
	}
	d.operator = ready.Operator
	d.address = strings.TrimSuffix(strings.TrimPrefix(ready.HTTP, "http://"), "/mcp")
	return nil
}

// kill ends the gateway as a crash does, and checks that it was one.
func (d *daemon) kill() {
	d.t.Helper()
	d.must(d.cmd.Process.Kill())
	_ = d.cmd.Wait()
	if ws, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signal() != syscall.SIGKILL {
		d.t.Errorf("the gateway ended by %v, not by SIGKILL\n%s", d.cmd.ProcessState, d.stderr.String())
	}
	d.cmd = nil
}

// call makes one tools/call, keyed or not. ok is false when the answer was lost.
func (d *daemon) call(ctx context.Context, tool, args, key string) (action.Status, bool) {
	return d.callWith(ctx, tool, args, key, nil)
}

// callWith is call with headers of the agent's own.
func (d *daemon) callWith(ctx context.Context, tool, args, key string, headers http.Header) (action.Status, bool) {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}
	if key != "" {
		meta["dev.deed/run"], meta["dev.deed/tool_call_id"] = "crash", key
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": json.RawMessage(args), "_meta": meta}})
	d.must(err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.address+"/mcp", bytes.NewReader(body))
	d.must(err)
	for k, v := range map[string]string{
		"Authorization": "Bearer " + d.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(k, v)
	}
	for name, values := range headers {
		req.Header[name] = values
	}
	answer, err := exchange(req)
	var m struct {
		Result struct {
			StructuredContent struct{ Deed action.Status }
		}
	}
	if err != nil || json.Unmarshal(answer, &m) != nil {
		return action.Status{}, false
	}
	return m.Result.StructuredContent.Deed, true
}

// actions reads the records from outside.
func (d *daemon) actions() []action.Action {
	d.t.Helper()
	r, err := sqlite.OpenReader(d.t.Context(), d.data())
	d.must(err)
	defer r.Close()
	all, err := r.Actions(d.t.Context(), store.Query{Limit: 1000})
	d.must(err)
	return all
}

func (d *daemon) chain() string {
	d.t.Helper()
	r, err := sqlite.OpenReader(d.t.Context(), d.data())
	d.must(err)
	defer r.Close()
	verdict, _, err := checkChain(d.t.Context(), r)
	d.must(err)
	return verdict
}

// crashAt starts a gateway that parks at a place, makes the call, waits until the place was reached and kills it there.
func (d *daemon) crashAt(place, tool, args, key string) {
	d.t.Helper()
	note := filepath.Join(d.dir, "parked-"+strings.ReplaceAll(place, "#", "-"))
	d.start(built.stoppable, "DEED_CRASH_AT="+place, "DEED_CRASH_FILE="+note)
	lost := make(chan bool, 1)
	go func() {
		_, ok := d.call(context.Background(), tool, args, key)
		lost <- !ok
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(note); err == nil && len(text) > 0 {
			break
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s was not reached\n%s", place, d.stderr.String())
		}
	}
	d.kill()
	if !<-lost {
		d.t.Errorf("the caller was answered although the gateway died at %s", place)
	}
}

// EX-11, EX-17, ST-11, ST-12, ST-20, UN-24, IK-11, RM-11, case 015 and 4.5 of the requirements: the real binary is killed at
// each of the four windows. What is found afterwards, and what a repeated call does, is as the table says, counted on the
// provider's own ledger.
func TestKilledInEachWindow(t *testing.T) {
	charge := `{"amount":25000,"currency":"usd","customer":"cus_42"}`
	mail := `{"to":"a"}`
	for _, c := range []struct {
		place, tool, args string
		found             action.State // "" for no record
		effectsAtCrash    int
		state             action.State // after the repeated call
		effects, attempts int
	}{
		{crashpoint.BeforeClaim, "charge", charge, "", 0, action.Completed, 1, 1},
		{crashpoint.AfterPlan, "charge", charge, action.Dispatched, 0, action.Completed, 1, 2},
		{crashpoint.AfterEffect, "charge", charge, action.Dispatched, 1, action.Completed, 1, 2},
		{crashpoint.AfterOutcome, "charge", charge, action.Completed, 1, action.Completed, 1, 1},

		{crashpoint.BeforeClaim, "send_email", mail, "", 0, action.Completed, 1, 1},
		{crashpoint.AfterPlan, "send_email", mail, action.Dispatched, 0, action.Unknown, 0, 1},
		{crashpoint.AfterEffect, "send_email", mail, action.Dispatched, 1, action.Unknown, 1, 1},
		{crashpoint.AfterOutcome, "send_email", mail, action.Completed, 1, action.Completed, 1, 1},

		{crashpoint.BeforeClaim, "read", `{}`, "", 0, action.Completed, 0, 1},
		{crashpoint.AfterPlan, "read", `{}`, action.Dispatched, 0, action.Completed, 0, 2},
		{crashpoint.AfterEffect, "read", `{}`, action.Dispatched, 0, action.Completed, 0, 2},
		{crashpoint.AfterOutcome, "read", `{}`, action.Completed, 0, action.Completed, 0, 1},
	} {
		for _, key := range []string{"toolu_1", ""} {
			t.Run(fmt.Sprintf("%s %s keyed=%t", c.tool, c.place, key != ""), func(t *testing.T) {
				t.Parallel()
				d := newDaemon(t, crashTools)
				d.crashAt(c.place, c.tool, c.args, key)
				found := d.actions()
				if n := len(d.provider.Effects()); n != c.effectsAtCrash {
					t.Fatalf("%d effects at the crash, want %d", n, c.effectsAtCrash)
				}
				switch {
				case c.found == "" && len(found) != 0:
					t.Fatalf("an action is on record before its intent was: %v", found[0].State)
				case c.found != "" && (len(found) != 1 || found[0].State != c.found):
					t.Fatalf("found %+v, want one action that is %s", found, c.found)
				}
				d.start(built.deed)
				st, ok := d.call(t.Context(), c.tool, c.args, key)
				if !ok {
					t.Fatalf("the repeated call was not answered\n%s", d.stderr.String())
				}
				// A read without a key has no window: asked again after its end, which recovery brings, it is a new one.
				again := c.tool == "read" && key == ""
				if len(found) == 1 && st.ActionID != found[0].ID && !again {
					t.Errorf("the repeated call is %s, found was %s", st.ActionID, found[0].ID)
				}
				if st.State != c.state || len(d.provider.Effects()) != c.effects || len(st.Attempts) != c.attempts && !again {
					t.Errorf("got %s, %d effects, %d attempts; want %s, %d, %d\n%s",
						st.State, len(d.provider.Effects()), len(st.Attempts), c.state, c.effects, c.attempts, st.Message)
				}
				if got := d.chain(); got != "valid" {
					t.Errorf("the chain is %s", got)
				}
			})
		}
	}
}

// UN-30: the agent is gone for good after W3. The action reaches its end by itself at the next start.
func TestRecoveryNeedsNoCaller(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.crashAt(crashpoint.AfterEffect, "charge", `{"amount":1,"currency":"usd","customer":"c"}`, "")
	d.start(built.deed)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if all := d.actions(); len(all) == 1 && all[0].State == action.Completed {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("after the restart: %+v", all)
		}
	}
	if n := len(d.provider.Effects()); n != 1 {
		t.Errorf("%d effects", n)
	}
}

// parkAt starts a gateway that parks at a place while it recovers, and reports whether it got there before everything was
// settled. Either way the gateway is killed.
func (d *daemon) parkAt(place, note string) bool {
	d.t.Helper()
	d.start(built.stoppable, "DEED_CRASH_AT="+place, "DEED_CRASH_FILE="+note)
	defer func() { d.kill() }()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(note); err == nil && len(text) > 0 {
			return true
		}
		if all := d.actions(); len(all) == 1 && all[0].State.Final() {
			time.Sleep(50 * time.Millisecond) // the place may lie behind the record
			text, err := os.ReadFile(note)
			return err == nil && len(text) > 0
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s was not reached while recovering, and nothing is settled: %+v\n%s", place, d.actions(), d.stderr.String())
		}
	}
}

// UN-09, UN-11, UN-12, EX-11: killed while it recovers, at every place that recovery passes, and killed again there or at
// the next place: one effect, the right result, and a whole chain.
func TestKilledWhileItRecovers(t *testing.T) {
	resend := []string{crashpoint.AfterPlan, crashpoint.AfterEffect, crashpoint.AfterOutcome}
	ask := []string{crashpoint.AfterQuestion, crashpoint.AfterAnswer, crashpoint.AfterEvidence}
	for _, c := range []struct {
		name, tool, args, first string
		places                  []string
	}{
		{"sent again", "charge", `{"amount":1,"currency":"usd","customer":"c"}`, crashpoint.AfterEffect, resend},
		{"found", "pay", `{"amount":1}`, crashpoint.AfterEffect, ask},
		{"absent and sent again", "pay", `{"amount":1}`, crashpoint.AfterPlan, append(ask[:3:3], resend...)},
	} {
		for i, place := range c.places {
			for _, again := range c.places[i:min(i+2, len(c.places))] {
				t.Run(fmt.Sprintf("%s/%s %s", c.name, place, again), func(t *testing.T) {
					t.Parallel()
					d := newDaemon(t, crashTools)
					d.crashAt(c.first, c.tool, c.args, "k")
					first := d.parkAt(place, filepath.Join(d.dir, "first"))
					second := d.parkAt(again, filepath.Join(d.dir, "second"))
					if !first {
						t.Errorf("%s was not reached", place)
					}
					// Once it is settled nothing is left to recover: by its outcome, or by a look-up that finds the effect.
					settled := place == crashpoint.AfterOutcome || c.name == "found" && place == crashpoint.AfterEvidence ||
						c.tool == "pay" && place == crashpoint.AfterEffect
					if second == settled {
						t.Errorf("killed again at %s: %t", again, second)
					}
					d.start(built.deed)
					st, ok := d.call(t.Context(), c.tool, c.args, "k")
					for deadline := time.Now().Add(10 * time.Second); ok && st.State != action.Completed && time.Now().Before(deadline); {
						time.Sleep(50 * time.Millisecond)
						st, ok = d.call(t.Context(), c.tool, c.args, "k")
					}
					if !ok || st.State != action.Completed || len(d.provider.Effects()) != 1 || len(d.actions()) != 1 {
						t.Errorf("got %+v, %d effects", st, len(d.provider.Effects()))
					}
					if got := d.chain(); got != "valid" {
						t.Errorf("the chain is %s", got)
					}
				})
			}
		}
	}
}
