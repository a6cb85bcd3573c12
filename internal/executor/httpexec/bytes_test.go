package httpexec

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/chaos"
)

// HT-10: what is recorded is what arrived, to the byte.
func TestBytesSentAreTheBytesOnTheWire(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		for c.request() != nil {
			c.say(okAnswer)
		}
	})
	executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
	for _, body := range []string{"", "x", strings.Repeat("x", 5000), strings.Repeat("x", 300_000)} {
		before := s.received()
		d := dispatchTo(t, s.base)
		d.Operation.Body = []byte(body)
		out := executor.Perform(t.Context(), d)
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if got := int64(s.received() - before); got != out.BytesSent {
			t.Errorf("a body of %d bytes: %d bytes arrived, %d are recorded", len(body), got, out.BytesSent)
		}
	}
}

// HT-10: under TLS the framing counts and the handshake does not. The proxy saw all of it.
func TestBytesSentUnderTLS(t *testing.T) {
	s := newSuiteTarget(t, "https")
	var total int64
	for range 3 {
		out := s.perform(s.dispatch())
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if out.BytesSent < int64(len(s.dispatch().Operation.Body)) {
			t.Errorf("%d bytes sent", out.BytesSent)
		}
		total += out.BytesSent
	}
	c := s.proxy.Connections()
	if len(c) != 1 || total >= c[0].FromClient || total < c[0].FromClient/10 {
		t.Errorf("%d bytes recorded, the proxy saw %+v", total, c)
	}
}

// HT-10, HT-11, UN-03, UN-04: the connection is cut after n bytes of the request, or the rest is swallowed.
func TestRequestCutOnItsWay(t *testing.T) {
	for _, mode := range []chaos.Mode{chaos.CutRequest, chaos.SwallowRequest} {
		for _, n := range []int64{0, 1, 200} {
			s := newSuiteTarget(t, "http")
			if err := s.proxy.Set(chaos.Plan{Mode: mode, Bytes: n}); err != nil {
				t.Fatal(err)
			}
			d := s.dispatch()
			d.Operation.Timeout = 300
			out := s.perform(d)
			state, reason := action.AttemptTransportError, ReasonReset
			if mode == chaos.SwallowRequest {
				state, reason = action.AttemptTimeout, ReasonTimeout
			}
			want(t, out, state, action.Indeterminate, reason)
			c := s.proxy.Connections()
			if len(c) != 1 || out.BytesSent == 0 || c[0].FromClient > out.BytesSent {
				t.Errorf("%s after %d: %d bytes recorded, the proxy saw %+v", mode, n, out.BytesSent, c)
			}
			if len(s.provider.Effects()) != 0 {
				t.Errorf("%s after %d: half a request had an effect", mode, n)
			}
		}
	}
}

// UN-03, case 012: nobody listens, so nothing was sent, and the same attempt may be made again.
func TestRefusedConnectionIsNotSent(t *testing.T) {
	s := newSuiteTarget(t, "http")
	if err := s.proxy.Set(chaos.Plan{Mode: chaos.Refuse}); err != nil {
		t.Fatal(err)
	}
	out := s.perform(s.dispatch())
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonDialFailed)
	if out.BytesSent != 0 {
		t.Errorf("%d bytes sent", out.BytesSent)
	}
	s.wantRequests(0, 0)
	if err := s.proxy.Set(chaos.Plan{}); err != nil {
		t.Fatal(err)
	}
	want(t, s.perform(s.dispatch()), action.AttemptCompleted, action.EffectProven, "")
	s.wantRequests(1, 1)
}

// UN-01: the effect took place and the answer was lost on its way.
func TestAnswerLostOnItsWay(t *testing.T) {
	for mode, end := range map[chaos.Mode]struct {
		state  action.AttemptState
		reason string
	}{
		chaos.CutResponse:     {action.AttemptTransportError, ReasonReset},
		chaos.SwallowResponse: {action.AttemptTimeout, ReasonTimeout},
	} {
		s := newSuiteTarget(t, "http")
		if err := s.proxy.Set(chaos.Plan{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		d := s.dispatch()
		d.Operation.Timeout = 500
		want(t, s.perform(d), end.state, action.Indeterminate, end.reason)
		s.wantRequests(1, 1)
	}
}

// Case 025: a proxy on the way delivers twice. The executor made one attempt, and both deliveries carry its token.
func TestProxyThatDeliversTwice(t *testing.T) {
	s := newSuiteTarget(t, "http")
	if err := s.proxy.Set(chaos.Plan{Mode: chaos.Twice}); err != nil {
		t.Fatal(err)
	}
	d := s.dispatch()
	want(t, s.perform(d), action.AttemptCompleted, action.EffectProven, "")
	s.wantRequests(2, 1)
	if s.Seen(d.Token) != 2 {
		t.Errorf("%d deliveries carry the token, want 2", s.Seen(d.Token))
	}
}
