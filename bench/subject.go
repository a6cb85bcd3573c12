package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/mcpserver"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/vault"
)

// subject is a whole gateway in this process, without its command line.
type subject struct {
	dir      string
	store    *sqlite.Store
	gateway  *gateway.Gateway
	start    func() *gateway.Gateway // another one, as after a restart
	executor *httpexec.Executor
	tools    []mcpserver.Tool
}

const benchContract = `tool: charge
description: Charge a card.
input:
  type: object
  required: [amount, customer]
  properties: {amount: {type: integer}, customer: {type: string}}
http:
  method: POST
  url: TARGET/v1/charges
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, customer: "${args.customer}"}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  scope: run
  evidence: a target of this bench
done_when: ${status == 201}
attempts: 3
timeout: 10s
keep_result: 30d
`

// oneByOne keeps changes apart, so that each has a commit of its own.
type oneByOne struct {
	*sqlite.Store
	mu sync.Mutex
}

func (s *oneByOne) Commit(ctx context.Context, change func(store.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.Commit(ctx, change)
}

func newSubject(t *target, noSync, noGroup bool) (*subject, error) {
	dir, err := os.MkdirTemp("", "deed-bench-")
	if err != nil {
		return nil, err
	}
	s := &subject{dir: dir}
	if s.store, err = sqlite.Open(context.Background(), dir, sqlite.Options{Origin: "bench/1", TestOnlyNoSync: noSync}); err != nil {
		return nil, err
	}
	all, err := contract.Parse("bench", []byte(strings.ReplaceAll(benchContract, "TARGET", t.url)))
	if err != nil {
		return nil, err
	}
	set, err := contract.NewSet(all...)
	if err != nil {
		return nil, err
	}
	keys, err := digest.OpenKeys(filepath.Join(dir, "fingerprint.keys"))
	if err != nil {
		return nil, err
	}
	s.executor = httpexec.New(httpexec.Options{})
	var kept store.Store = s.store
	if noGroup {
		kept = &oneByOne{Store: s.store}
	}
	s.start = func() *gateway.Gateway {
		return gateway.New(gateway.Options{
			Store: kept, Contracts: set, Keys: keys, Vault: &vault.Vault{}, Wait: 30 * time.Second,
			Executors: map[string]gateway.Executor{"http": s.executor}, Log: slog.New(slog.DiscardHandler),
		})
	}
	s.gateway = s.start()
	for _, c := range set.Tools() {
		s.tools = append(s.tools, mcpserver.Tool{Name: c.Tool, Description: c.Description, InputSchema: c.InputSchema()})
	}
	return s, nil
}

func (s *subject) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := s.gateway.Close(ctx)
	s.executor.Close()
	return errors.Join(err, s.store.Close(), os.RemoveAll(s.dir))
}

func agentOf(n int) action.Actor {
	return action.Actor{Kind: "token", Identity: fmt.Sprint("agent-", n), Strength: action.StrengthToken}
}

// call makes one new action.
func (s *subject) call(ctx context.Context, agent int, customer string) error {
	a, err := s.gateway.Submit(ctx, action.Call{
		Tool: "charge", Arguments: []byte(`{"amount":25000,"customer":"` + customer + `"}`), Actor: agentOf(agent), At: time.Now(),
		Protocol: action.Correlation{Transport: "bench", Session: action.NoSession}, Upstream: action.Upstream{Source: action.UpstreamNone},
	})
	if err == nil && a.Action.State != action.Completed {
		err = fmt.Errorf("%s: %s", a.Action.State, a.Sentence())
	}
	return err
}

// compare runs the target alone and deed in three forms, in turn.
func compare(ctx context.Context, s settings, t, provider *target, agents int) (map[string]measured, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: agents}}
	defer client.CloseIdleConnections()
	direct := func(t *target) func() (measured, error) {
		return func() (measured, error) {
			return load(ctx, agents, s.duration, func(ctx context.Context, _, _ int) error { return post(ctx, client, t.url+"/v1/charges") })
		}
	}
	contenders := map[string]func() (measured, error){"direct": direct(t), "provider, direct": direct(provider)}
	for name, form := range map[string]struct {
		target          *target
		noSync, noGroup bool
	}{
		"deed": {t, false, false}, "deed, no sync": {t, true, false}, "deed, no group": {t, false, true},
		"provider, through deed": {provider, false, false},
	} {
		sub, err := newSubject(form.target, form.noSync, form.noGroup)
		if err != nil {
			return nil, err
		}
		defer sub.close()
		round := 0
		contenders[name] = func() (measured, error) {
			round++
			return load(ctx, agents, s.duration, func(ctx context.Context, agent, n int) error {
				return sub.call(ctx, agent, fmt.Sprintf("cus_%d_%d_%d", round, agent, n))
			})
		}
	}
	return inTurn(s, contenders)
}

func post(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(`{"amount":25000,"currency":"usd","customer":"cus_42"}`)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

// compareMCP runs a bare SDK server and deed's door behind the same HTTP, called by hand so that the client costs the same.
func compareMCP(ctx context.Context, s settings, t *target, agents int) (map[string]measured, error) {
	echo := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	echo.AddTool(&mcp.Tool{Name: "charge", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", 64)}}}, nil
		})
	bare := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return echo },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	defer bare.Close()
	sub, err := newSubject(t, false, false)
	if err != nil {
		return nil, err
	}
	defer sub.close()
	door := httptest.NewServer(mcpserver.New(mcpserver.Options{
		Gateway: sub.gateway, Tools: sub.tools, Cancelled: gateway.ErrCancelled, Version: "bench", Log: slog.New(slog.DiscardHandler),
		Authenticate: func(string, time.Time) (action.Actor, error) { return agentOf(0), nil },
	}).Handler())
	defer door.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: agents}}
	defer client.CloseIdleConnections()
	round := 0
	run := func(url string) func() (measured, error) {
		return func() (measured, error) {
			round++
			return load(ctx, agents, s.duration, func(ctx context.Context, agent, n int) error {
				return toolsCall(ctx, client, url, fmt.Sprintf("cus_%d_%d_%d", round, agent, n))
			})
		}
	}
	return inTurn(s, map[string]func() (measured, error){"echo": run(bare.URL), "deed": run(door.URL)})
}

func toolsCall(ctx context.Context, client *http.Client, url, customer string) error {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge","arguments":{"amount":25000,"customer":"` + customer +
		`"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer x", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge",
	} {
		req.Header.Set(k, v)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	return errors.Join(err, res.Body.Close())
}

// compareAttach measures how long it takes to recognise a repeat, with few and with many actions on record.
func compareAttach(ctx context.Context, s settings, t *target) (map[string]measured, error) {
	contenders := map[string]func() (measured, error){}
	for name, stored := range map[string]int{"few": 1000, "many": s.stored} {
		sub, err := newSubject(t, true, false) // the decision is measured, not the disk
		if err != nil {
			return nil, err
		}
		defer sub.close()
		if err := sub.fill(ctx, stored); err != nil {
			return nil, err
		}
		contenders[name] = func() (measured, error) {
			return load(ctx, 1, s.duration, func(ctx context.Context, _, _ int) error { return sub.call(ctx, 0, "cus_0") })
		}
	}
	return inTurn(s, contenders)
}

// fill makes so many actions, from several agents at once.
func (s *subject) fill(ctx context.Context, n int) error {
	const agents = 64
	errs := make(chan error, agents)
	for agent := range agents {
		go func() {
			var err error
			for i := agent; i < n && err == nil; i += agents {
				err = s.call(ctx, 0, fmt.Sprint("cus_", i))
			}
			errs <- err
		}()
	}
	var err error
	for range agents {
		err = errors.Join(err, <-errs)
	}
	return err
}
