package gateway

import "context"

// ModelTakeUp lets a test take a turn of Run and wait for all that it begins.
func (g *Gateway) ModelTakeUp(ctx context.Context) error {
	if err := g.findOrphans(ctx); err != nil {
		return err
	}
	g.takeUp(ctx)
	return nil
}
