package httpexec

import (
	"context"
	"net/http"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// sending is an attempt for which everything is chosen; what is left of it is the exchange.
type sending struct {
	executor *Executor
	dispatch action.Dispatch
	link     *link
	request  *http.Request
	hide     *vault.Opened // what to look for in the answer; nil where there is no secret
	seen     progress
}

// exchange sends and reads until the answer is there, or ctx is over.
func (s *sending) exchange(ctx context.Context) exchanged {
	return s.link.exchange(ctx, s.request, maxResult(s.dispatch.Operation), s.executor.idleTimeout, &s.seen)
}

// finish says what a finished exchange proves, and gives the connection back or up.
func (s *sending) finish(ctx context.Context, got exchanged) action.Outcome {
	switch {
	case !got.reusable:
	case ctx.Err() != nil:
		s.link.drop()
	default:
		s.executor.pool.put(s.link)
	}
	return s.conclude(ctx, got)
}

func (s *sending) conclude(ctx context.Context, got exchanged) action.Outcome {
	out := s.executor.conclude(ctx, s.dispatch.Judge, got, s.hide)
	out.Remote = s.link.remote
	return out
}
