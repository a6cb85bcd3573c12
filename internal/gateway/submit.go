package gateway

import (
	"context"

	"deed.dev/deed/internal/action"
)

// Submit takes one call to its answer: who asks, which operation is meant, is it a repeat, may it run, what came of it.
//
// An error is always an *action.Error, and means that this call made no action. Everything else, an unknown outcome
// included, is an Answer. When ctx ends the caller has left: Submit returns what is known, and what was sent goes on.
func (g *Gateway) Submit(ctx context.Context, call action.Call) (action.Answer, error) {
	call.ID = action.CallID(newID(action.CallPrefix))
	run, err := g.identify(ctx, call)
	if err != nil {
		return action.Answer{}, g.refused(call, run, err)
	}
	asked, err := g.resolve(ctx, call, run)
	if err != nil {
		return action.Answer{}, g.refused(call, run, err)
	}
	claimed, err := g.claim(ctx, call, asked)
	if err != nil {
		return action.Answer{}, g.refused(call, run, err)
	}
	act, written := g.carryOn(ctx, claimed)
	return g.deliver(ctx, call, claimed, act, written)
}

// carryOn brings a claimed action as far as this call may bring it, and waits for that a bounded time. It also gives what
// was written while it waited, so that nobody has to read it again.
func (g *Gateway) carryOn(ctx context.Context, c claimed) (action.Action, *written) {
	over, done := context.WithTimeout(context.Background(), g.wait)
	defer done()
	for {
		if c.asksAPerson() {
			c.action = g.awaitDecision(ctx, c.action, over)
		}
		if !c.carriesOn() {
			return c.action, nil
		}
		landed := g.alongside(ctx, c, over)
		switch {
		case landed == nil:
			return g.current(c.action), nil
		case landed.action.State != action.AwaitingApproval:
			return landed.action, landed.written
		}
		c.action, c.flight = landed.action, nil // what was allowed was over, and a person is asked anew
	}
}

// alongside waits with the flight of a claimed action, and gives it when it has landed in time.
func (g *Gateway) alongside(ctx context.Context, c claimed, over context.Context) *flight {
	f := c.flight
	if f == nil {
		f = g.flights.join(c.action.ID, func(f *flight) { g.fly(f, c.action, plan{}) })
	}
	defer func() { g.flights.leave(f, context.Cause(ctx)) }()
	select {
	case <-f.done:
		return f
	case <-ctx.Done():
	case <-over.Done():
	}
	return nil
}
