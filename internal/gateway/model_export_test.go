package gateway

import (
	"context"
	"time"
)

// ModelTakeUp lets a test take a turn of Run and wait for all that it begins.
func (g *Gateway) ModelTakeUp(ctx context.Context) error {
	g.flights.mu.Lock()
	g.flights.last = time.Time{} // nobody calls: there is no caller to let go first
	g.flights.mu.Unlock()
	if err := g.findOrphans(ctx); err != nil {
		return err
	}
	g.takeUp(ctx)
	for g.flights.busy() {
		time.Sleep(time.Millisecond)
	}
	return nil
}
