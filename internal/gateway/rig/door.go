package rig

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/mcpserver"
)

// Tokens of the door, and who holds them.
const (
	TokenA      = "deed_token_of_agent_a" // one agent alone
	TokenB      = "deed_token_of_agent_b" // one agent alone
	TokenShared = "deed_token_of_several" // strangers may hold it
)

// Door is the MCP door of a rig.
type Door struct {
	*mcpserver.Server
	URL string // of the HTTP endpoint
}

// Door opens an MCP door before the rig's gateway.
func (r *Rig) Door() *Door {
	r.T.Helper()
	var tools []mcpserver.Tool
	for _, c := range r.Contracts.Tools() {
		hints := c.Annotations()
		tools = append(tools, mcpserver.Tool{
			Name: c.Tool, Description: c.Description, InputSchema: c.InputSchema(), Retry: c.Label(), Class: string(c.Class),
			ReadOnly: hints.ReadOnly, Destructive: hints.Destructive, Idempotent: hints.Idempotent, OpenWorld: hints.OpenWorld,
		})
	}
	d := &Door{Server: mcpserver.New(mcpserver.Options{
		Gateway: r.Gateway, Tools: tools, Cancelled: gateway.ErrCancelled, Authenticate: authenticate,
		Version: "test", Log: slog.New(slog.DiscardHandler),
	})}
	server := httptest.NewServer(d.Handler())
	r.T.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

func authenticate(bearer string, _ time.Time) (action.Actor, error) {
	names := map[string]string{TokenA: "agent-a", TokenB: "agent-b", TokenShared: "several"}
	name, ok := names[bearer]
	if !ok {
		return action.Actor{}, errors.New("unknown token")
	}
	return action.Actor{Kind: "token", Identity: name, Strength: action.StrengthToken, Shared: bearer == TokenShared}, nil
}

// Stream connects an MCP client over a byte stream, as the given process.
func (r *Rig) Stream(d *Door, actor action.Actor) *mcp.ClientSession {
	r.T.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = d.ServeStream(context.Background(), theirs, theirs, actor, "mcp-stdio")
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: ours, Writer: ours}, nil)
	r.must(err)
	r.T.Cleanup(func() { _ = session.Close(); <-served })
	return session
}
