// Package mcpserver is the MCP front door: it decodes tools/call into an action.Call, asks the gateway, and encodes the
// answer. Both protocol eras are served on one URL, and a byte stream (stdio, a Unix socket) carries either.
//
// It decides nothing about an action. It refuses to know stores, executors and contracts, and it never takes a session,
// a JSON-RPC id or a client's own name for an identity: they are passed on as evidence.
package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
)

// Gateway is what this door needs of the line.
type Gateway interface {
	// Submit takes a call to its answer. A cancelled ctx means that the caller has left, or asked to stop if the cause is
	// Cancelled.
	Submit(ctx context.Context, call action.Call) (action.Answer, error)
	// Status says how an action of the caller's stands, and Await says it when the action is settled or atMost is over.
	// Both send and change nothing.
	Status(ctx context.Context, call action.Call, id action.ID) (action.Answer, error)
	Await(ctx context.Context, call action.Call, id action.ID, atMost time.Duration) (action.Answer, error)
	// Delivered records what the door knows of an answer's arrival.
	Delivered(id action.ID, to action.Delivery, why string)
}

// Tool is a tool as agents see it.
type Tool struct {
	Name        string
	Description string
	InputSchema []byte // JSON Schema
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
	Retry       string // safe, idempotent or unsafe: shown in the tool's _meta
	Class       string
}

// Options are the parts of the door.
type Options struct {
	Gateway      Gateway
	Tools        []Tool
	Cancelled    error // cause of a context whose caller asked to stop
	Authenticate func(bearer string, now time.Time) (action.Actor, error)
	Version      string
	Log          *slog.Logger
}

// Server serves MCP over HTTP and over byte streams.
type Server struct {
	o         Options
	exchanges exchanges
	shared    *mcp.Server
}

// New makes the door. It opens nothing.
func New(o Options) *Server {
	s := &Server{o: o}
	s.exchanges.open = map[string]*exchange{}
	s.shared = s.newMCP()
	return s
}

// newMCP makes an SDK server with all tools. Clients see them in the order of their names.
func (s *Server) newMCP() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "deed", Version: s.o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range s.o.Tools {
		server.AddTool(&mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: rawSchema(t.InputSchema),
			Annotations: &mcp.ToolAnnotations{
				ReadOnlyHint: t.ReadOnly, DestructiveHint: &t.Destructive, IdempotentHint: t.Idempotent, OpenWorldHint: &t.OpenWorld,
			},
			Meta: mcp.Meta{"dev.deed/retry": t.Retry, "dev.deed/class": t.Class},
		}, s.call)
	}
	s.addHelpers(server) // last: a contract cannot take their names
	return server
}

const instructions = "Every tool here acts on the outside world through deed, once per decision. If a call fails, times out or " +
	"is lost, make the same call again: it attaches to the action that exists and never does it twice. An answer that says " +
	"'unknown' means that the effect may have happened: do not try another way around it. To do the same thing a second time " +
	"on purpose, pass the repeat_of value of the completed result. To see how an action stands, call " + action.ToolStatus +
	" or " + action.ToolWait + " with its action_id."

// Handler serves MCP over HTTP: one URL for both eras.
func (s *Server) Handler() http.Handler {
	getServer := func(*http.Request) *mcp.Server { return s.shared }
	legacy := mcp.NewStreamableHTTPHandler(getServer, &mcp.StreamableHTTPOptions{
		SessionTimeout: 10 * time.Minute, MaxRequestBodyBytes: maxBody, Logger: s.o.Log,
	})
	modern := mcp.NewStreamableHTTPHandler(getServer, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, Logger: s.o.Log,
	})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if legacyRequest(r) {
			legacy.ServeHTTP(w, r)
			return
		}
		modern.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(s.authenticated(bound(s.observed(byEra))))
}

// legacyVersions are the protocol revisions with sessions.
var legacyVersions = map[string]bool{"": true, "2024-11-05": true, "2025-03-26": true, "2025-06-18": true, "2025-11-25": true}

// legacyRequest tells the eras apart: the newer one names its method in a header.
func legacyRequest(r *http.Request) bool {
	return legacyVersions[r.Header.Get("MCP-Protocol-Version")] && r.Header.Get("Mcp-Method") == ""
}
