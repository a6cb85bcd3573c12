package mcpserver

import (
	"context"

	"deed.dev/deed/internal/action"
)

type actorKey struct{}

// withActor passes the verified caller on to the next handler of the same request.
func withActor(ctx context.Context, a action.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

func actorOf(ctx context.Context) action.Actor {
	a, _ := ctx.Value(actorKey{}).(action.Actor)
	return a
}
