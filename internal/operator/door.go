package operator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/identity"
)

const (
	patience = 50 * time.Second // for one request; what a decision sent goes on after it
	maxBody  = 1 << 20          // a decision with the result that callers get
)

// Serve answers on the socket until ctx ends, and then waits for requests that are under way, briefly.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, WriteTimeout: patience + 30*time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, &caller{conn: conn})
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOver)
		defer cancel()
		if err := server.Shutdown(brief); err != nil {
			return server.Close()
		}
		return nil
	}
}

const handOver = 500 * time.Millisecond // for answers on their way when deed stops

type callerKey struct{}

// caller is the process at the other end of a connection. It is looked at when it first asks for something.
type caller struct {
	conn net.Conn
	once sync.Once
	peer *identity.Peer
	err  error
}

var errNoSocket = errors.New("it is no Unix socket")

func (c *caller) identify() (*identity.Peer, error) {
	c.once.Do(func() {
		conn, ok := c.conn.(*net.UnixConn)
		if !ok {
			c.err = errNoSocket
			return
		}
		c.peer, c.err = identity.PeerOf(conn)
	})
	return c.peer, c.err
}

// enter lets in whoever runs as deed's own user, and root.
func (s *Server) enter(next func(http.ResponseWriter, *http.Request, Desk)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(callerKey{}).(*caller)
		if c == nil {
			c = &caller{}
		}
		peer, err := c.identify()
		if err == nil && !mayEnter(peer.UID()) {
			err = errors.New("it runs as another user")
		}
		if err != nil || !peer.Actor().Verified() {
			s.o.Log.Warn("somebody was turned away from the operator's door", "error", err)
			refuse(w, action.Errorf(action.CodeUnauthenticated, "this door is for deed's own user and for root; nothing was done"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		next(w, r.WithContext(ctx), Desk{s, peer.Actor()})
	}
}

func mayEnter(uid string) bool {
	own := os.Geteuid()
	return uid == "0" || own < 0 || uid == strconv.Itoa(own) // below 0, on Windows: only our own user is ever named
}
