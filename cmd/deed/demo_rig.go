package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deed.dev/deed/internal/identity"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// demoRig is the stage of the demo: a provider and a gateway in processes of their own, and a proxy that loses answers.
type demoRig struct {
	dir         string
	provider    controlled
	gateway     *process
	proxy       *chaos.Proxy
	address     string // of the gateway, the same over restarts
	token       string
	secret      string
	lastMessage string
}

func (r *demoRig) data() string   { return filepath.Join(r.dir, "state") }
func (r *demoRig) config() string { return filepath.Join(r.dir, "config") }
func (r *demoRig) ledger() string { return filepath.Join(r.dir, "provider.ledger") }

func (r *demoRig) start(ctx context.Context) error {
	p, line, err := startProcess(ctx, nil, "lab", "provider", "--ledger", r.ledger())
	if err != nil {
		return err
	}
	r.provider = controlled{process: p}
	var ready provider.Ready
	if err := json.Unmarshal(line, &ready); err != nil {
		return fmt.Errorf("the provider did not start: %w", err)
	}
	r.provider.url = ready.URL
	if err := r.configure(); err != nil {
		return err
	}
	r.address = "127.0.0.1:0"
	if err := r.startGateway(ctx); err != nil {
		return err
	}
	r.proxy, err = chaos.New(r.address)
	return err
}

// configure writes what a user would write: a contract, a credential by reference and a token.
func (r *demoRig) configure() error {
	r.secret = "demo-" + rand.Text()
	if err := os.MkdirAll(filepath.Join(r.config(), "contracts"), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(r.data(), 0o700); err != nil {
		return err
	}
	host := strings.TrimPrefix(r.provider.url, "http://")
	files := map[string]string{
		"contracts/charge.yaml": strings.ReplaceAll(demoContract, "PROVIDER", r.provider.url),
		"credentials.yaml":      strings.ReplaceAll(demoCredentials, "HOST", host),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.config(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	tokens, err := identity.OpenTokens(filepath.Join(r.data(), "tokens.json"))
	if err != nil {
		return err
	}
	r.token, err = tokens.Create("demo-agent", identity.TokenOptions{Sole: true}, time.Now())
	return err
}

func (r *demoRig) startGateway(ctx context.Context) error {
	p, line, err := startProcess(ctx, []string{"DEED_DEMO_SECRET=" + r.secret},
		"serve", "--json", "--config", r.config(), "--data", r.data(), "--socket", filepath.Join(r.dir, "deed.sock"),
		"--listen", r.address, "--log-level", "error")
	if err != nil {
		return err
	}
	r.gateway = p
	var ready struct {
		HTTP string `json:"http"`
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		return fmt.Errorf("the gateway did not start: %w", err)
	}
	r.address = strings.TrimSuffix(strings.TrimPrefix(ready.HTTP, "http://"), "/mcp")
	return nil
}

func (r *demoRig) kill() error {
	p := r.gateway
	r.gateway = nil
	return p.kill()
}

func (r *demoRig) stopGateway() error {
	p := r.gateway
	r.gateway = nil
	return p.stop()
}

func (r *demoRig) stop() error {
	var err error
	if r.gateway != nil {
		err = r.gateway.kill()
	}
	if r.proxy != nil {
		err = errors.Join(err, r.proxy.Close())
	}
	if r.provider.process != nil {
		err = errors.Join(err, r.provider.stop())
	}
	return err
}

// loseAnswers makes the network between agent and gateway swallow every answer, or pass it.
func (r *demoRig) loseAnswers(lose bool) {
	plan := chaos.Plan{}
	if lose {
		plan.Mode = chaos.CutResponse
	}
	_ = r.proxy.Set(plan) // Set fails only for a mode that does not exist
}

// call makes one tools/call over HTTP, on a connection of its own, as a client without any memory would.
func (r *demoRig) call(ctx context.Context, n int, try []int) (string, error) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": n + 1, "method": "tools/call",
		"params": map[string]any{
			"name":      "charge",
			"arguments": map[string]any{"amount": 25000, "currency": "usd", "customer": "cus_42"},
			"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
				"dev.deed/run":          "renewal",
				"dev.deed/tool_call_id": fmt.Sprintf("toolu_%d", try[0]), // the model makes a new one when it asks anew
			},
		},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.proxy.Addr()+"/mcp", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + r.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge",
	} {
		req.Header.Set(name, value)
	}
	answer, err := exchange(req)
	if err != nil {
		return "", err
	}
	var got struct {
		Result struct {
			Structured struct {
				Deed struct {
					State   string `json:"state"`
					Message string `json:"message"`
				} `json:"deed"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &got); err != nil || got.Result.Structured.Deed.State != "completed" {
		return "", fmt.Errorf("no result: %s", answer)
	}
	r.lastMessage = got.Result.Structured.Deed.Message
	return r.lastMessage, nil
}

// chargeDirectly calls the provider as a wrapper does that makes its key per call.
func (r *demoRig) chargeDirectly(ctx context.Context, customer string) error {
	body := fmt.Sprintf(`{"amount":25000,"currency":"usd","customer":%q}`, customer)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.provider.url+"/v1/charges", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", rand.Text())
	req.GetBody = nil
	_, err = exchange(req)
	return err
}

// exchange makes one request on a connection of its own.
func exchange(req *http.Request) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, 1<<20))
}

// effects counts a customer's charges on the provider's ledger file.
func (r *demoRig) effects(customer string) (n int, err error) {
	rows, err := provider.ReadLedger(r.ledger())
	for _, row := range rows {
		var charge struct {
			Customer string `json:"customer"`
		}
		if json.Unmarshal(row.Body, &charge) == nil && charge.Customer == customer {
			n++
		}
	}
	return n, err
}

// awaitEffect waits until the ledger shows a charge.
func (r *demoRig) awaitEffect(ctx context.Context, customer string) error {
	for {
		if n, err := r.effects(customer); err != nil || n > 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the provider was not reached: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// controlled is a provider process and the way to its switches.
type controlled struct {
	*process
	url string
}

func (c controlled) set(ctx context.Context, s provider.Switches) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.url+"/_control/switches", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := exchange(req)
	if err != nil {
		return fmt.Errorf("set the provider's switches: %w (%s)", err, answer)
	}
	return nil
}

// process is a child that runs this same program.
type process struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
}

// startProcess starts this program with other arguments and returns the first line that it prints.
func startProcess(ctx context.Context, env []string, args ...string) (*process, []byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), self, args...)}
	p.cmd.Env = append(withoutSettings(os.Environ()), env...)
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	line, err := firstValue(out)
	if err != nil {
		_ = p.kill()
		return nil, nil, fmt.Errorf("deed %s ended early: %s", args[0], strings.TrimSpace(p.errs.String()))
	}
	return p, line, nil
}

// withoutSettings leaves out the user's own settings of deed: the demo must not meet real contracts and credentials.
func withoutSettings(env []string) []string {
	return slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, "DEED_") })
}

// firstValue reads one JSON value, over however many lines it is printed.
func firstValue(r io.Reader) ([]byte, error) {
	var v json.RawMessage
	err := json.NewDecoder(bufio.NewReader(r)).Decode(&v)
	return v, err
}

// kill ends the process with SIGKILL, which it cannot notice.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = p.cmd.Wait() // says that it was killed
	return nil
}

// stop asks the process to end, and waits.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return p.kill()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.cmd.Wait() // it was asked to end
	}()
	select {
	case <-done:
		return nil
	case <-time.After(30 * time.Second):
		return p.kill()
	}
}

const demoContract = `# A charge at the demo's provider. Its keys work as Stripe documents its own.
tool: charge
description: Charge a customer's card.
input:
  type: object
  required: [amount, currency, customer]
  properties:
    amount: {type: integer, minimum: 1, description: in the smallest unit of the currency}
    currency: {type: string, enum: [usd, eur]}
    customer: {type: string}
http:
  method: POST
  url: PROVIDER/v1/charges
  credential: provider
  private: [127.0.0.0/8]
  json:
    amount: "${args.amount}"
    currency: "${args.currency}"
    customer: "${args.customer}"
    metadata: {}
metadata: {json: /metadata/idem_key}
resource: customer/${args.customer}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  scope: run
  evidence: the provider of this demo, lab/provider
done_when: ${status == 201}
no_effect_when: ${status in [400, 402, 403, 404, 422]}
impact: Charges ${args.customer} ${args.amount} ${args.currency}.
attempts: 5
timeout: 10s
keep_result: 30d
`

const demoCredentials = `credentials:
  - ref: provider
    kind: bearer
    hosts: [HOST]
    insecure_loopback: true
    env: DEED_DEMO_SECRET
`
