package rig

import (
	"context"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/chaos"
)

// patience bounds every wait of a test for something that has to come.
const patience = 20 * time.Second

// Clock is a wall clock that a test moves.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
}

// Now is the time on the clock: real time, moved.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// Move turns the clock forward, or back.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// Pending is a call that has not returned yet.
type Pending struct {
	r    *Rig
	done chan struct{}
	a    action.Answer
	err  error
}

// Go makes the call and does not wait for it.
func (c *Call) Go() *Pending {
	p := &Pending{r: c.r, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.a, p.err = c.Try()
	}()
	return p
}

// Try waits for the call and gives what it returned.
func (p *Pending) Try() (action.Answer, error) {
	p.r.T.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.r.T.Fatal("the call did not return")
	}
	return p.a, p.err
}

// Answer waits for the call and fails the test if it made no action.
func (p *Pending) Answer() action.Answer {
	p.r.T.Helper()
	a, err := p.Try()
	r := p.r
	r.must(err)
	return a
}

// AwaitEffects waits until the provider's ledger has n rows.
func (r *Rig) AwaitEffects(n int) { r.T.Helper(); r.await(func() bool { return r.Effects() >= n }) }

// AwaitRequests waits until the provider saw n requests.
func (r *Rig) AwaitRequests(n int) { r.T.Helper(); r.await(func() bool { return r.Requests() >= n }) }

func (r *Rig) await(until func() bool) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.must(r.Provider.Await(ctx, until))
}

// AwaitBytes waits until a client has sent bytes to the proxy in the connection of that number, counted from 1.
func (r *Rig) AwaitBytes(connection int) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.must(r.Proxy.Await(ctx, func(all []chaos.Connection) bool {
		return len(all) >= connection && all[connection-1].FromClient > 0
	}))
}

// BytesToProvider counts what came to the proxy from the gateway.
func (r *Rig) BytesToProvider() (n int64) {
	for _, c := range r.Proxy.Connections() {
		n += c.FromClient
	}
	return n
}

// Tokens are the idempotency keys that the provider saw, one a request.
func (r *Rig) Tokens() []string {
	var all []string
	for _, request := range r.Provider.Requests() {
		all = append(all, request.Values("Idempotency-Key")...)
	}
	return all
}

// AttemptsOf reads the attempts of an action as another process sees them.
func (r *Rig) AttemptsOf(id action.ID) []action.Attempt {
	r.T.Helper()
	r.Settled()
	all, err := r.Reader().Attempts(context.Background(), id)
	r.must(err)
	return all
}

// Only gives the only action on record.
func (r *Rig) Only() action.Action {
	r.T.Helper()
	all := r.Actions()
	if len(all) != 1 {
		r.T.Fatalf("%d actions are on record, want 1", len(all))
	}
	return all[0]
}
