package httpexec

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"deed.dev/deed/internal/action"
)

// HT-12: the ways in which an HTTP/2 server leaves a request without an answer. net/http takes some of them for leave to
// send again; here an attempt stays one request, and what came of it stays open.
func TestHTTP2IsNotTriedAgain(t *testing.T) {
	endings := map[string]func(c *h2Conn, stream uint32){
		"refused stream":     func(c *h2Conn, stream uint32) { _ = c.WriteRSTStream(stream, http2.ErrCodeRefusedStream) },
		"cancelled stream":   func(c *h2Conn, stream uint32) { _ = c.WriteRSTStream(stream, http2.ErrCodeCancel) },
		"go away before it":  func(c *h2Conn, stream uint32) { _ = c.WriteGoAway(max(stream, 2)-2, http2.ErrCodeNo, nil) },
		"go away with error": func(c *h2Conn, stream uint32) { _ = c.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil); c.reset() },
		"go away after it":   func(c *h2Conn, stream uint32) { _ = c.WriteGoAway(stream, http2.ErrCodeNo, nil); _ = c.tcp.Close() },
		"reset":              func(c *h2Conn, stream uint32) { c.reset() },
		"close":              func(c *h2Conn, stream uint32) { _ = c.tcp.Close() },
	}
	for ending, end := range endings {
		for _, req := range resendable {
			for _, kept := range []bool{false, true} {
				name := ending + "/" + req.name + "/new"
				if kept {
					name = ending + "/" + req.name + "/kept"
				}
				t.Run(name, func(t *testing.T) {
					s := newRawH2(t, func(c *h2Conn, stream uint32) {
						if c.served == 1 && kept {
							c.ok(stream)
							return
						}
						end(c, stream)
					})
					executor, before := newExecutor(t, Options{}), 0
					if kept {
						first := executor.Perform(t.Context(), resendDispatch(t, s.base, "GET", "", nil))
						want(t, first, action.AttemptCompleted, action.EffectProven, "")
						before = 1
					}
					out := executor.Perform(t.Context(), resendDispatch(t, s.base, req.method, req.key, req.body))
					if out.State != action.AttemptTransportError || out.Certainty != action.Indeterminate || out.BytesSent == 0 {
						t.Errorf("got %s, %s, reason %q, %d bytes; want an open end", out.State, out.Certainty, out.Reason, out.BytesSent)
					}
					if out.Reason != ReasonReset && out.Reason != ReasonResponseLost {
						t.Errorf("reason is %q", out.Reason)
					}
					if got := s.seen() - before; got != 1 || s.connections() != 1 {
						t.Errorf("the server saw %d requests on %d connections, want 1 on 1", got, s.connections())
					}
				})
			}
		}
	}
}

// A connection on which the server has said that it will go is not used again.
func TestHTTP2ConnectionThatGoesAwayIsLeft(t *testing.T) {
	s := newRawH2(t, func(c *h2Conn, stream uint32) {
		_ = c.WriteGoAway(stream, http2.ErrCodeNo, nil)
		c.ok(stream)
	})
	executor := newExecutor(t, Options{})
	for range 3 {
		out := executor.Perform(t.Context(), resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x")))
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
	}
	if s.seen() != 3 || s.connections() != 3 {
		t.Errorf("the server saw %d requests on %d connections, want 3 on 3", s.seen(), s.connections())
	}
}

// The server says good-bye while nobody asks.
func TestHTTP2ConnectionThatGoesAwayWhileIdleIsLeft(t *testing.T) {
	conns := make(chan *h2Conn, 1)
	s := newRawH2(t, func(c *h2Conn, stream uint32) {
		c.ok(stream)
		conns <- c
	})
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
	for range 3 {
		want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
		executor.pool.mu.Lock()
		idle := executor.pool.links[keyOf(d.Operation)]
		executor.pool.mu.Unlock()
		if len(idle) != 1 {
			t.Fatalf("%d idle connections, want 1", len(idle))
		}
		_ = (<-conns).WriteGoAway(1, http2.ErrCodeNo, nil)
		await(t, "the client has heard it", func() bool { return idle[0].h2.Available() == 0 })
	}
	if s.seen() != 3 || s.connections() != 3 {
		t.Errorf("the server saw %d requests on %d connections, want 3 on 3", s.seen(), s.connections())
	}
}

// A status of sixteen digits came through HTTP/2, and no record can hold it: the outcome of the attempt was lost. Only three
// digits are a status; anything else proves nothing.
func TestHTTP2StatusThatIsNoneProvesNothing(t *testing.T) {
	for _, status := range []string{"9007199254740993", "1000", "099", "0", "-200"} {
		t.Run(status, func(t *testing.T) {
			s := newRawH2(t, func(c *h2Conn, stream uint32) {
				var block bytes.Buffer
				_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
				_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
				_ = c.WriteData(stream, true, []byte("ok"))
			})
			out := newExecutor(t, Options{}).Perform(t.Context(), resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x")))
			if out.Certainty != action.Indeterminate || out.Status != 0 || len(out.Result.Body) != 0 || out.Retry {
				t.Errorf("got %s, %s, status %d, body %q, retry %t; want an open end", out.State, out.Certainty, out.Status, out.Result.Body, out.Retry)
			}
			if s.seen() != 1 {
				t.Errorf("the server saw %d requests, want 1", s.seen())
			}
		})
	}
}
