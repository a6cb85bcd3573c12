// Package rig puts a whole gateway together for tests: a real provider with its own ledger, a proxy that breaks
// connections, the real HTTP executor and a real store in a temporary directory. Tests count effects on the provider's
// ledger and read what the store has exported, never only the reply.
//
// It is imported by tests alone and knows nothing that a user of the parts could not know.
package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/argseal"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// Options change a rig from its usual form.
type Options struct {
	Contracts string        // YAML documents; PROVIDER and PROXY stand for the provider's own address and the proxied one
	Wait      time.Duration // of one call; 20 s
	Now       func() time.Time
	Secret    string // value of the credential "provider"
	SecretAs  string // how it is sent, as the credentials file says it; "kind: bearer"
	Timeout   string // of the usual contracts; "5s"
	Log       slog.Handler
	Queue     int // how many changes may wait to be committed; the store's own limit
	Lease     time.Duration
	Parts     func(*gateway.Options) // changes the parts of the gateway before it is made
}

// Rig is one stage. Everything on it ends with the test.
type Rig struct {
	T          testing.TB
	Provider   *provider.Server
	URL        string // of the provider itself
	Proxy      *chaos.Proxy
	Dir        string // data directory
	Store      *sqlite.Store
	Gateway    *gateway.Gateway
	Vault      *vault.Vault
	secrets    *argseal.Sealer
	Keys       *digest.Keys
	Contracts  *contract.Set
	SecretFile string // that the credential "provider" is read from
	Approvers  Policy // who may decide: Ada and Bob, unless a test says otherwise

	o        Options
	executor *httpexec.Executor
	more     []*gateway.Gateway
}

// Secret is the usual value of the credential "provider".
const Secret = "canary-5f1e7c0d-provider-secret"

// New sets a stage with the usual tools, or with those of the options.
func New(t testing.TB, o Options) *Rig {
	t.Helper()
	r := &Rig{T: t, o: o, Dir: filepath.Join(t.TempDir(), "state")}
	if r.o.Wait == 0 {
		r.o.Wait = 20 * time.Second
	}
	if r.o.Timeout == "" {
		r.o.Timeout = "5s"
	}
	if r.o.Secret == "" {
		r.o.Secret = Secret
	}
	if r.o.SecretAs == "" {
		r.o.SecretAs = "kind: bearer"
	}
	var err error
	r.Provider, err = provider.Open(filepath.Join(t.TempDir(), "ledger"))
	r.must(err)
	r.URL, err = r.Provider.Listen("127.0.0.1:0")
	r.must(err)
	t.Cleanup(func() { r.must(r.Provider.Close()) })
	r.Proxy, err = chaos.New(strings.TrimPrefix(r.URL, "http://"))
	r.must(err)
	t.Cleanup(func() { r.must(r.Proxy.Close()) })
	r.credentials()
	r.furnish()
	r.Start()
	t.Cleanup(func() { r.Stop() })
	return r
}

func (r *Rig) must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// credentials writes one credential that may go to the provider, directly and through the proxy.
func (r *Rig) credentials() {
	dir := r.T.TempDir()
	secret := filepath.Join(dir, "secret")
	r.must(os.WriteFile(secret, []byte(r.o.Secret), 0o600))
	r.SecretFile = secret
	text := fmt.Sprintf("credentials:\n  - ref: provider\n    %s\n    hosts: [%q, %q]\n    insecure_loopback: true\n    file: %s\n",
		strings.ReplaceAll(r.o.SecretAs, "\n", "\n    "), strings.TrimPrefix(r.URL, "http://"), r.Proxy.Addr(), secret)
	path := filepath.Join(dir, "credentials.yaml")
	r.must(os.WriteFile(path, []byte(text), 0o600))
	v, err := vault.Load(path)
	r.must(err)
	r.Vault = v
}

// Start opens the store and the gateway, and takes up what an earlier one left.
func (r *Rig) Start() {
	r.T.Helper()
	text := r.o.Contracts
	if text == "" {
		text = Usual
	}
	text = strings.NewReplacer("PROVIDER", r.URL, "PROXY", "http://"+r.Proxy.Addr(), "TIMEOUT", r.o.Timeout).Replace(text)
	all, err := contract.Parse("test.yaml", []byte(text))
	r.must(err)
	r.Contracts, err = contract.NewSet(all...)
	r.must(err)
	r.Store, err = sqlite.Open(context.Background(), r.Dir, sqlite.Options{Origin: origin, Now: r.o.Now, QueueLimit: r.o.Queue, Logger: r.log()})
	r.must(err)
	r.Keys, err = digest.OpenKeys(filepath.Join(r.Dir, "fingerprint.keys"))
	r.must(err)
	r.secrets, err = argseal.OpenKey(filepath.Join(r.Dir, "arguments.key"))
	r.must(err)
	r.executor = httpexec.New(httpexec.Options{Vault: r.Vault})
	r.Gateway = r.gateway(r.o.Parts)
	_, err = r.Gateway.Recover(context.Background())
	r.must(err)
}

func (r *Rig) log() *slog.Logger {
	if r.o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(r.o.Log)
}

func (r *Rig) gateway(parts func(*gateway.Options)) *gateway.Gateway {
	o := gateway.Options{
		Store: r.Store, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault, Secrets: r.secrets, Lease: r.o.Lease,
		Executors: map[string]gateway.Executor{"http": r.executor}, Wait: r.o.Wait, Every: 50 * time.Millisecond, Log: r.log(),
		Approvers: &r.Approvers,
	}
	if parts != nil {
		parts(&o)
	}
	return gateway.New(o)
}

// Second makes another gateway on the same records, as on another machine. It has taken nothing up yet.
func (r *Rig) Second() *gateway.Gateway { return r.Another(nil) }

// Another is Second with parts of its own.
func (r *Rig) Another(parts func(*gateway.Options)) *gateway.Gateway {
	g := r.gateway(parts)
	r.more = append(r.more, g)
	return g
}

// Stop closes the gateway in good order. It may be called twice.
func (r *Rig) Stop() {
	if r.Gateway == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, g := range append(r.more, r.Gateway) {
		if err := g.Close(ctx); err != nil {
			r.T.Errorf("close the gateway: %v", err)
		}
	}
	r.executor.Close()
	r.must(r.Store.Close())
	r.Gateway, r.more = nil, nil
}

// Restart stops and starts the gateway, with other contracts if text is not empty.
func (r *Rig) Restart(text string) {
	r.T.Helper()
	r.Stop()
	if text != "" {
		r.o.Contracts = text
	}
	r.Start()
}

// Reader opens the records from outside, as another process does, with the keys of protected content.
func (r *Rig) Reader() *sqlite.Reader {
	reader, err := sqlite.OpenReader(context.Background(), r.Dir)
	r.must(err)
	keys, err := sealed.Read(filepath.Join(r.Dir, sqlite.KeysName))
	r.must(err)
	reader.Unseal(keys)
	r.T.Cleanup(func() { _ = reader.Close() })
	return reader
}

// Break sets the provider's faults; none means that it behaves.
func (r *Rig) Break(faults ...provider.Fault) {
	r.T.Helper()
	r.must(r.Provider.Set(provider.Switches{Faults: faults}))
}

// Switch sets all of the provider's switches.
func (r *Rig) Switch(s provider.Switches) { r.T.Helper(); r.must(r.Provider.Set(s)) }

// Cut sets the proxy's plan.
func (r *Rig) Cut(p chaos.Plan) { r.T.Helper(); r.must(r.Proxy.Set(p)) }

// Effects counts the provider's ledger rows.
func (r *Rig) Effects() int { return len(r.Provider.Effects()) }

// Requests counts what the provider saw on the wire.
func (r *Rig) Requests() int { return len(r.Provider.Requests()) }

// Agent is a verified caller for tests: a process that the kernel named.
func Agent(name string, pid int) action.Actor {
	return action.Actor{
		Kind: "process", Identity: "uid=1000 exe=/usr/bin/" + name, Strength: action.StrengthPeerPIDFD,
		Evidence: action.Evidence{PID: pid, StartTime: uint64(pid), BootID: "test-boot", Executable: "/usr/bin/" + name},
	}
}

// Call is a call under preparation.
type Call struct {
	r    *Rig
	at   *gateway.Gateway // the rig's own if nil
	call action.Call
	ctx  context.Context
}

// From prepares a call of a tool by an actor. args is JSON.
func (r *Rig) From(actor action.Actor, tool, args string) *Call {
	return &Call{r: r, ctx: context.Background(), call: action.Call{
		Tool: tool, Arguments: []byte(args), Actor: actor, At: time.Now(),
		Protocol: action.Correlation{Transport: "mcp-stdio", RequestID: "1", Session: action.NoSession},
		Upstream: action.Upstream{Source: action.UpstreamNone},
	}}
}

// Call prepares a call by the usual agent.
func (r *Rig) Call(tool, args string) *Call { return r.From(Agent("agent", 4711), tool, args) }

// Key gives the call the caller's own identity.
func (c *Call) Key(run string, step int64, toolCallID string) *Call {
	c.call.Caller = action.CallerKey{Run: run, Step: step, ToolCallID: toolCallID, Source: "dev.deed/tool_call_id"}
	return c
}

// Run gives the call the caller's name of its run and no key.
func (c *Call) Run(run string) *Call { c.call.Caller.Run = run; return c }

// ID gives the call a JSON-RPC id, a session and a transport.
func (c *Call) ID(id, session string) *Call {
	c.call.Protocol.RequestID, c.call.Protocol.Session = id, session
	return c
}

// Trace gives the call upstream trace context.
func (c *Call) Trace(u action.Upstream) *Call { c.call.Upstream = u; return c }

// Under sets the context that ends when the caller leaves.
func (c *Call) Under(ctx context.Context) *Call { c.ctx = ctx; return c }

// At sends the call to another gateway than the rig's own.
func (c *Call) At(g *gateway.Gateway) *Call { c.at = g; return c }

// Try makes the call.
func (c *Call) Try() (action.Answer, error) {
	if c.at != nil {
		return c.at.Submit(c.ctx, c.call)
	}
	return c.r.Gateway.Submit(c.ctx, c.call)
}

// Do makes the call and fails the test if it made no action.
func (c *Call) Do() action.Answer {
	c.r.T.Helper()
	a, err := c.Try()
	if err != nil {
		c.r.T.Fatalf("call of %s: %v", c.call.Tool, err)
	}
	return a
}

// Parallel makes n equal calls at once and returns their answers.
func (c *Call) Parallel(n int) []action.Answer {
	c.r.T.Helper()
	answers, errs := make([]action.Answer, n), make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = c.Try()
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			c.r.T.Errorf("call %d: %v", i, err)
		}
	}
	return answers
}

// Event is one journal entry, decoded.
type Event map[string]any

// Kind is the event's name.
func (e Event) Kind() string { s, _ := e["event"].(string); return s }

// Text is a member, by its path: "action.host".
func (e Event) Text(path string) string {
	v := any(map[string]any(e))
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[name]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Events reads the whole exported journal, in order.
func (r *Rig) Events() []Event {
	r.T.Helper()
	var all []Event
	r.must(r.Reader().Records(context.Background(), 0, func(_ int64, _ [32]byte, body []byte) error {
		var e Event
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.UseNumber()
		if err := d.Decode(&e); err != nil {
			return err
		}
		all = append(all, e)
		return nil
	}))
	return all
}

// EventsOf reads the journal's entries about one action, in order.
func (r *Rig) EventsOf(id action.ID) []Event {
	var some []Event
	for _, e := range r.Events() {
		if e.Text("action_id") == string(id) {
			some = append(some, e)
		}
	}
	return some
}

// Kinds are the names of events, in order.
func Kinds(events []Event) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.Kind()
	}
	return names
}

// Export is the journal's bytes, for sweeps.
func (r *Rig) Export() string {
	var b strings.Builder
	r.must(r.Reader().Records(context.Background(), 0, func(_ int64, hash [32]byte, body []byte) error {
		fmt.Fprintf(&b, "%x %s\n", hash, body)
		return nil
	}))
	return b.String()
}

// Settled waits until lazily written evidence is on record: a change behind it in the queue is then done too.
func (r *Rig) Settled() {
	r.T.Helper()
	r.must(r.Store.Commit(context.Background(), func(store.Tx) error { return nil }))
}

// Stored reads an action as another process sees it.
func (r *Rig) Stored(id action.ID) action.Action {
	r.T.Helper()
	r.Settled()
	a, err := r.Reader().Action(context.Background(), id)
	r.must(err)
	return a
}

// Actions lists all actions on record, newest first.
func (r *Rig) Actions() []action.Action {
	r.T.Helper()
	r.Settled()
	all, err := r.Reader().Actions(context.Background(), store.Query{Limit: 1000})
	r.must(err)
	return all
}

// FreePort is an address of this machine on which nobody listens.
func FreePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
