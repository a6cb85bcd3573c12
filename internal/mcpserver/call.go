package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/identity"
)

// call handles one tools/call.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	e := s.exchangeOf(req)
	if e == nil {
		return nil, errors.New("the request lost its way inside deed; nothing was done")
	}
	call, err := decode(req, e)
	if err != nil {
		return refusal(err), nil
	}
	ctx, stop := s.watch(ctx, e)
	defer stop()
	answer, err := s.o.Gateway.Submit(ctx, call)
	if err != nil {
		return refusal(err), nil
	}
	if !answer.Held && answer.Action.State.Final() {
		e.answer(answer.Action.ID)
	}
	return encode(answer), nil
}

func (s *Server) exchangeOf(req *mcp.CallToolRequest) *exchange {
	if req.Extra == nil {
		return nil
	}
	return s.exchanges.find(req.Extra.Header.Get(exchangeHeader))
}

// decode makes a call from a request. The arguments stay the bytes that arrived.
func decode(req *mcp.CallToolRequest, e *exchange) (action.Call, error) {
	call := action.Call{
		Tool: req.Params.Name, Arguments: req.Params.Arguments, Actor: e.actor, Protocol: e.protocol, At: time.Now(),
		Upstream: identity.Upstream(req.Params.Meta, http.Header(e.header), e.verified),
	}
	if len(call.Arguments) == 0 {
		call.Arguments = []byte("{}")
	}
	if info := req.ClientInfo(); info != nil {
		call.Protocol.Client = bounded(info.Name + " " + info.Version)
	}
	if version := req.ProtocolVersion(); call.Protocol.Era == "" {
		call.Protocol.Era = bounded(version)
	}
	var err error
	call.Caller, _, err = identity.CallerKey(req.Params.Meta)
	return call, err
}

// watch gives a context that ends when the caller leaves or asks to stop, and says which by its cause.
func (s *Server) watch(handler context.Context, e *exchange) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(handler))
	left := func() { cancel(errors.New("the caller left")) }
	stopGone := context.AfterFunc(e.gone, left)
	stopHandler := context.AfterFunc(handler, func() {
		if e.gone.Err() != nil {
			left()
			return
		}
		cancel(s.o.Cancelled)
	})
	return ctx, func() { stopGone(); stopHandler(); cancel(nil) }
}
