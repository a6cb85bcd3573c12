// Package gateway is the line that every action takes: submit, claim, perform, deliver, and recover after a crash.
//
//	agent ─▶ front door ─▶ Submit: resolve ─▶ claim ─▶ perform ─▶ deliver ─▶ agent
//	                                           │          │  ▲
//	                                           │          │  └ outcome, durable, then the answer
//	                                           │          └ plan, durable, then the send
//	                                           └ found or new, allowed and planned: one durable commit
//
// perform.go is the only code that calls an executor. The package knows no protocol of a front door, no SQL and nothing
// of how a target is reached.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/store"
)

// An Executor performs one attempt of one operation and says what it proved. It makes exactly one send, never a second
// one, and reports what it cannot tell as indeterminate. ctx ends only when the gateway gives up on the attempt; a
// caller's leaving does not end it.
type Executor interface {
	Perform(ctx context.Context, d action.Dispatch) action.Outcome
}

// Vault is what the gateway asks of the credentials: whether they are open, and to read one anew after a target refused
// it. It never sees a secret.
type Vault interface {
	Locked() bool
	Refresh(ctx context.Context, ref string) error
}

// Sealer keeps secret arguments under a key of its own, each bound to its action and name.
type Sealer interface {
	Seal(id action.ID, name, value string) ([]byte, error)
	Open(id action.ID, name string, sealed []byte) (string, error)
}

// Options are the parts of a gateway.
type Options struct {
	Store     store.Store
	Contracts *contract.Set
	Keys      *digest.Keys
	Vault     Vault
	Secrets   Sealer              // nil: calls with secret arguments are refused
	Executors map[string]Executor // by channel
	Wait      time.Duration       // how long one call waits for an outcome before it answers "in progress"
	Every     time.Duration       // how often Run looks for what is due; 1 s if not said
	Lease     time.Duration       // how long others leave this gateway's actions alone without a sign of life; 15 s
	Log       *slog.Logger
	Gate      Gate // asked before something new is sent; open if there is none

	Approvers     Approvers             // who may decide; nil: nobody
	EachUse       func(ref string) bool // whether a person approves every use of a credential; nil: of none
	AuthorizeRuns bool                  // a person authorizes the run of each new agent process
	RunLife       time.Duration         // how long such an authorization holds at the most; 24 h
}

// Gateway runs actions. Make one with New, call Recover before the doors open, and Close when they are shut.
type Gateway struct {
	store     store.Store
	contracts *contract.Set
	keys      *digest.Keys
	vault     Vault
	secrets   Sealer
	executors map[string]Executor
	wait      time.Duration
	every     time.Duration
	log       *slog.Logger
	gate      Gate
	refusals  rare // of calls that came while the gate was closed

	approvers     Approvers
	eachUse       func(ref string) bool
	authorizeRuns bool
	runLife       time.Duration
	bells         bells
	oneDecision   sync.Mutex

	lease   lease
	runs    knownRuns
	flights flights
	older   olderContracts
	kept    sync.Map // digests of contract versions that are on record

	// mattering are older contract versions, by tool, whose actions may still be repeated. Recover finds them before the doors
	// open; new actions are made under the current versions only, so the list can only become shorter.
	mattering atomic.Pointer[map[string][]string]

	closing sync.Mutex // held while somebody enters, so that Close waits for all who did
	closed  bool

	shut   context.Context // ends when Close begins: nothing that can wait is begun then
	close  context.CancelFunc
	ctx    context.Context // of everything that outlives its caller
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New makes a gateway. It starts nothing.
func New(o Options) *Gateway {
	g := &Gateway{
		store: o.Store, contracts: o.Contracts, keys: o.Keys, vault: o.Vault, secrets: o.Secrets,
		executors: o.Executors, wait: o.Wait, every: o.Every, log: o.Log, gate: o.Gate,
	}
	if g.gate == nil {
		g.gate = openGate{}
	}
	g.approvers, g.eachUse, g.authorizeRuns, g.runLife = o.Approvers, o.EachUse, o.AuthorizeRuns, o.RunLife
	if g.runLife <= 0 {
		g.runLife = 24 * time.Hour
	}
	if g.every <= 0 {
		g.every = time.Second
	}
	g.lease.owner, g.lease.life = action.OwnerID(newID(action.OwnerPrefix)), o.Lease
	if g.lease.life <= 0 {
		g.lease.life = defaultLease
	}
	g.flights.running = map[action.ID]*flight{}
	g.mattering.Store(&map[string][]string{})
	g.older.parsed = map[string]*contract.Contract{}
	g.shut, g.close = context.WithCancel(context.Background())
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// enter admits one more piece of work, unless deed is stopping. Whoever enters calls work.Done.
func (g *Gateway) enter() bool {
	g.closing.Lock()
	defer g.closing.Unlock()
	if g.closed {
		return false
	}
	g.work.Add(1)
	return true
}

// Close waits for the attempts that are under way, for as long as ctx allows, and then gives up on them: what they were
// doing is found as unknown at the next start.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.Lock()
	g.closed = true
	g.closing.Unlock()
	g.close()
	done := make(chan struct{})
	go func() { g.work.Wait(); close(done) }()
	select {
	case <-done:
		g.cancel()
		return nil
	case <-ctx.Done():
		g.cancel()
		<-done
		return fmt.Errorf("attempts were given up while they ran; the next start finds them: %w", ctx.Err())
	}
}

// Contracts is the set of tools that this gateway offers.
func (g *Gateway) Contracts() *contract.Set { return g.contracts }
