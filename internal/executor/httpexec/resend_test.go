package httpexec

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"deed.dev/deed/internal/action"
)

// resendable are requests that net/http sends again by itself when a kept connection dies.
var resendable = []struct {
	name, method, key string
	body              []byte
}{
	{"GET", "GET", "", nil},
	{"POST with Idempotency-Key", "POST", "Idempotency-Key", []byte(`{"a":1}`)},
	{"POST with X-Idempotency-Key", "POST", "X-Idempotency-Key", []byte(`{"a":1}`)},
	{"POST with a large body", "POST", "Idempotency-Key", bytes.Repeat([]byte("x"), 100_000)},
	{"POST with key and no body", "POST", "Idempotency-Key", nil},
	{"DELETE with key and no body", "DELETE", "Idempotency-Key", nil},
	{"PUT", "PUT", "Idempotency-Key", []byte("x")},
}

// endings are the ways in which a server leaves a request that it has read without an answer.
var endings = map[string]struct {
	end    func(*rawConn)
	reason string
}{
	"reset":           {(*rawConn).reset, ReasonReset},
	"close":           {func(c *rawConn) { _ = c.tcp.Close() }, ReasonResponseLost},
	"half an answer":  {func(c *rawConn) { c.say("HTTP/1.1 20") }, ReasonResponseLost},
	"an interim word": {func(c *rawConn) { c.say("HTTP/1.1 103 Early Hints\r\n\r\n") }, ReasonResponseLost},
}

// HT-12, case 021, case 003 (b): a server answers one request on a connection, reads the next and ends the connection. The
// attempt is one request, and its outcome is open.
func TestKeptConnectionThatDiesIsNotTriedAgain(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		for ending, e := range endings {
			for _, req := range resendable {
				t.Run(fmt.Sprintf("tls=%t/%s/%s", withTLS, ending, req.name), func(t *testing.T) {
					s := newRawServer(t, withTLS, func(c *rawConn) {
						if c.request() == nil {
							return
						}
						c.say(okAnswer)
						if c.request() != nil {
							e.end(c)
						}
					})
					executor := newExecutor(t, Options{})
					first := executor.Perform(t.Context(), resendDispatch(t, s.base, "GET", "", nil))
					want(t, first, action.AttemptCompleted, action.EffectProven, "")
					out := executor.Perform(t.Context(), resendDispatch(t, s.base, req.method, req.key, req.body))
					want(t, out, action.AttemptTransportError, action.Indeterminate, e.reason)
					if got := len(s.seen()); got != 2 || s.connections() != 1 {
						t.Errorf("the server saw %d requests on %d connections, want 2 on 1", got, s.connections())
					}
					if out.BytesSent < int64(len(req.body)) || out.BytesSent == 0 {
						t.Errorf("%d bytes sent", out.BytesSent)
					}
				})
			}
		}
	}
}

func resendDispatch(t testing.TB, base, method, key string, body []byte) action.Dispatch {
	d := dispatchTo(t, base)
	d.Operation.Method, d.Operation.Key.Header, d.Operation.Body, d.Operation.Credential = method, key, body, ""
	if body == nil {
		d.Operation.MediaType = ""
	}
	return d
}

// The control for HT-12: the same server sees two requests when http.Client is asked once. If this test fails, the ones
// above prove nothing.
func TestTheStandardClientDoesTryAgain(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.say(okAnswer)
		if c.request() != nil && c.number == 1 {
			c.reset()
			return
		}
		c.say(okAnswer)
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequest("POST", s.base, bytes.NewReader([]byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if got := len(s.seen()); got != 3 {
		t.Errorf("the server saw %d requests for two calls; net/http used to make it 3", got)
	}
}
