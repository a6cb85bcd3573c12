package httpexec

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

// await waits until something that another goroutine does is done.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// Case 003 (a): the server closed the kept connection before the next request. That is seen before anything is written, so
// the attempt takes a new connection and is still one request.
func TestClosedConnectionIsNotUsedAgain(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		for name, end := range map[string]func(*rawConn){"close": func(*rawConn) {}, "reset": (*rawConn).reset} {
			t.Run(fmt.Sprintf("tls=%t/%s", withTLS, name), func(t *testing.T) {
				closed := make(chan bool, 10)
				s := newRawServer(t, withTLS, func(c *rawConn) {
					if c.request() != nil {
						c.say(okAnswer)
						end(c)
					}
					_ = c.Close()
					closed <- true
				})
				executor := newExecutor(t, Options{})
				for i := range 3 {
					out := executor.Perform(t.Context(), resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x")))
					if name == "close" || out.State == action.AttemptCompleted {
						want(t, out, action.AttemptCompleted, action.EffectProven, "")
					}
					<-closed
					if len(s.seen()) != i+1 || s.connections() != i+1 {
						t.Fatalf("after %d attempts the server saw %d requests on %d connections", i+1, len(s.seen()), s.connections())
					}
				}
			})
		}
	}
}

// Bytes that nobody asked for would be taken for the answer to the next request. The connection is given up instead, and
// what they say, which may be a secret, appears in no log.
func TestUnaskedBytesAreNoAnswer(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	forged := strings.Replace(okAnswer, "ok", "no", 1)
	for _, withTLS := range []bool{false, true} {
		for _, when := range []string{"in one record", "in one piece", "later"} {
			t.Run(fmt.Sprintf("tls=%t/%s", withTLS, when), func(t *testing.T) {
				sent := make(chan bool, 10)
				s := newRawServer(t, withTLS, func(c *rawConn) {
					req := c.request()
					if req == nil {
						return
					}
					unasked := forged + req.Header.Get("Authorization")
					switch when {
					case "in one record":
						c.say(okAnswer + unasked)
					case "in one piece":
						c.together(okAnswer, unasked)
					default:
						c.say(okAnswer)
						c.say(unasked)
					}
					sent <- true
					c.request()
				})
				executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
				for i := range 3 {
					d := dispatchTo(t, s.base)
					out := executor.Perform(t.Context(), d)
					want(t, out, action.AttemptCompleted, action.EffectProven, "")
					if string(out.Result.Body) != "ok" {
						t.Errorf("attempt %d got the answer %q", i+1, out.Result.Body)
					}
					<-sent
				}
				if len(s.seen()) != 3 || s.connections() != 3 {
					t.Errorf("the server saw %d requests on %d connections, want 3 on 3", len(s.seen()), s.connections())
				}
			})
		}
	}
	if logged.Len() > 0 {
		t.Errorf("the log says %q", logged.String())
	}
}

// HT-11: a kept connection that dies when no byte of the request has left proves that nothing was sent.
func TestConnectionThatDiesBeforeTheFirstByteIsNotSent(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		s := newRawServer(t, withTLS, func(c *rawConn) {
			for c.request() != nil {
				c.say(okAnswer)
			}
		})
		executor := newExecutor(t, Options{})
		d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
		want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
		executor.testOnlyBeforeSend = func(l *link) { _ = l.meter.Close() }
		out := executor.Perform(t.Context(), d)
		want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonResponseLost)
		if out.BytesSent != 0 || len(s.seen()) != 1 {
			t.Errorf("%d bytes sent, %d requests arrived; want 0 and the first one", out.BytesSent, len(s.seen()))
		}
	}
}

// HT-11: an answer that comes although nothing was asked answers something else.
func TestAnswerToNothingIsNoAnswer(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		if c.request() != nil {
			c.say(okAnswer)
		}
		c.request() // the client has closed its side
		c.say(okAnswer)
		c.request()
	})
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	executor.testOnlyBeforeSend = func(l *link) { _ = l.meter.Conn.(*net.TCPConn).CloseWrite() }
	out := executor.Perform(t.Context(), d)
	if out.State != action.AttemptNotSent || out.Certainty != action.NoEffectProven || out.Status != 0 {
		t.Errorf("got %s, %s, status %d", out.State, out.Certainty, out.Status)
	}
}

// A cancelled attempt does not touch a kept connection.
func TestCancelledAttemptLeavesTheConnectionAlone(t *testing.T) {
	s := watched(t)
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	want(t, executor.Perform(ctx, d), action.AttemptCompleted, action.EffectProven, "")
	cancel()
	for range 50 {
		want(t, executor.Perform(ctx, d), action.AttemptNotSent, action.NoEffectProven, ReasonCancelled)
	}
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	if len(s.seen()) != 2 || s.connections() != 1 {
		t.Errorf("the server saw %d requests on %d connections, want 2 on 1", len(s.seen()), s.connections())
	}
}

func TestIdleConnectionsAreLimited(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		for c.request() != nil {
			c.say("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	executor := newExecutor(t, Options{IdleTimeout: 50 * time.Millisecond})
	d := resendDispatch(t, s.base, "GET", "", nil)
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	await(t, "the idle connection is gone", func() bool {
		executor.pool.mu.Lock()
		defer executor.pool.mu.Unlock()
		return len(executor.pool.links) == 0
	})
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	if s.connections() != 2 {
		t.Errorf("%d connections, want 2", s.connections())
	}
}

// A connection that one contract may make is not there for another, which may not.
func TestConnectionsAreNotShared(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		for c.request() != nil {
			c.say(okAnswer)
		}
	})
	executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
	d := resendDispatch(t, s.base, "GET", "", nil)
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	other := d
	other.Operation.Credential = "bearer"
	want(t, executor.Perform(t.Context(), other), action.AttemptCompleted, action.EffectProven, "")
	if s.connections() != 2 {
		t.Errorf("%d connections, want one for each credential", s.connections())
	}
	public := d
	public.Operation.Target.Private = nil
	want(t, executor.Perform(t.Context(), public), action.AttemptNotSent, action.NoEffectProven, ReasonAddressRefused)
}
