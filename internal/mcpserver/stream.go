package mcpserver

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
)

// ServeStream serves one peer over a byte stream until the peer closes it. Calls that are under way then go on without
// the peer; what they come to is recorded.
func (s *Server) ServeStream(ctx context.Context, r io.ReadCloser, w io.WriteCloser, actor action.Actor, transport string) error {
	t := &streamTransport{
		inner: &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: maxBody}, server: s, actor: actor, name: transport,
	}
	err := s.newMCP().Run(ctx, t)
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// streamTransport notes the protocol's numbers of each message as it passes, as the HTTP door does with each request.
type streamTransport struct {
	inner  mcp.Transport
	server *Server
	actor  action.Actor
	name   string
}

// Connect opens the stream.
func (t *streamTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &streamConnection{Connection: inner, t: t, open: map[jsonrpc.ID]string{}, ended: make(chan struct{}, 1), closed: make(chan struct{})}
	c.gone, c.leave = context.WithCancel(context.WithoutCancel(ctx))
	return c, nil
}

type streamConnection struct {
	mcp.Connection
	t     *streamTransport
	gone  context.Context
	leave context.CancelFunc

	ended  chan struct{} // an exchange has ended
	closed chan struct{} // nothing is written any more
	once   sync.Once

	mu      sync.Mutex
	open    map[jsonrpc.ID]string // exchanges under way, by request id
	doubled []string              // those of requests with an id that was in use
}

// Read passes a message on. A call gets an exchange.
func (c *streamConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.drain(ctx) // the SDK drops what is under way as soon as it sees the end
		c.leave()
		return nil, err
	}
	if req, ok := message.(*jsonrpc.Request); ok && req.IsCall() {
		req.Extra = &mcp.RequestExtra{Header: http.Header{exchangeHeader: {c.begin(req.ID)}}}
	}
	return message, nil
}

// drain waits until everything that was asked is answered. A peer that has said all may still be listening.
func (c *streamConnection) drain(ctx context.Context) {
	for {
		c.mu.Lock()
		left := len(c.open)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.ended:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *streamConnection) begin(id jsonrpc.ID) string {
	name := c.t.server.exchanges.add(&exchange{
		actor: c.t.actor, verified: true, gone: c.gone,
		protocol: action.Correlation{Transport: c.t.name, RequestID: bounded(requestID(id)), Session: action.NoSession},
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] != "" { // the SDK refuses it without an answer, so nothing would ever end it
		c.doubled = append(c.doubled, name)
		return name
	}
	c.open[id] = name
	return name
}

// Write passes a message on and notes whether an answer could be written.
func (c *streamConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if err != nil { // the SDK writes nothing after a failure, so nothing more will be answered
		c.once.Do(func() { close(c.closed) })
	}
	if res, ok := message.(*jsonrpc.Response); ok {
		c.end(res.ID, err != nil || c.gone.Err() != nil)
	}
	return err
}

func (c *streamConnection) end(id jsonrpc.ID, failed bool) {
	c.mu.Lock()
	name := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	select {
	case c.ended <- struct{}{}:
	default: // a signal is waiting already
	}
	if e := c.t.server.exchanges.find(name); e != nil {
		c.t.server.handedOver(e, failed)
	}
	c.t.server.exchanges.remove(name)
}

// Close ends the stream. Answers that were not written are interrupted.
func (c *streamConnection) Close() error {
	c.leave()
	c.once.Do(func() { close(c.closed) })
	c.mu.Lock()
	names := append(slices.Collect(maps.Values(c.open)), c.doubled...)
	c.open, c.doubled = map[jsonrpc.ID]string{}, nil
	c.mu.Unlock()
	for _, name := range names {
		c.t.server.exchanges.remove(name)
	}
	return c.Connection.Close()
}

// requestID is a JSON-RPC id as it stood in the message.
func requestID(id jsonrpc.ID) string {
	switch v := id.Raw().(type) {
	case string:
		return `"` + v + `"`
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}
