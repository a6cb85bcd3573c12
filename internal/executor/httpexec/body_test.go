package httpexec

import (
	"bytes"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/provider"
)

// HT-20, case 026 (b): 201 and a body cut half way. The contract takes the status for proof, so the effect is known.
func TestCutBody(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		r := newRig(t, scheme)
		r.fault(provider.Fault{Kind: provider.TruncateBody})
		out := r.perform(r.dispatch())
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if out.Result.Complete || out.Status != 201 || len(out.Result.Body) == 0 && scheme == "http" { // HTTP/2 may drop what came
			t.Errorf("complete is %t, status %d, body %q", out.Result.Complete, out.Status, out.Result.Body)
		}
		r.wantRequests(1, 1)

		d := r.dispatch() // a contract that wants to see the body
		d.Judge = func(resp action.Response) action.Verdict {
			if resp.Truncated || len(resp.Body) == 0 {
				return action.Verdict{}
			}
			return action.Verdict{Certainty: action.EffectProven}
		}
		out = r.perform(d)
		want(t, out, action.AttemptTransportError, action.Indeterminate, ReasonTruncated)
		if out.Status != 201 {
			t.Errorf("status is %d", out.Status)
		}
	}
}

// Case 026 (a): a server that refuses a large body early may lose its answer on the way. Whatever arrives, the attempt is
// refused or open, and it is one.
func TestEarlyAnswerToLargeBody(t *testing.T) {
	r := newRig(t, "http")
	r.fault(provider.Fault{Kind: provider.Early413})
	d := r.dispatch()
	d.Operation.Body = bytes.Repeat([]byte("x"), 8<<20)
	refused := 0
	for range 200 {
		out := r.perform(d)
		switch {
		case out.State == action.AttemptRefused && out.Certainty == action.NoEffectProven && out.Status == 413:
			refused++
		case out.State == action.AttemptTransportError && out.Certainty == action.Indeterminate:
		default:
			t.Fatalf("got %s, %s, status %d, reason %q", out.State, out.Certainty, out.Status, out.Reason)
		}
	}
	t.Logf("413 was seen in %d of 200 runs", refused)
	r.wantRequests(200, 0)
}

// HT-20: reading is bounded by the contract, in bytes and in time.
func TestAnswerLongerThanIsKept(t *testing.T) {
	stopped := make(chan int, 10)
	s := newRawServer(t, false, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
		chunk, sent := bytes.Repeat([]byte("x"), 64<<10), 0
		for {
			n, err := c.Write(chunk)
			sent += n
			if err != nil {
				stopped <- sent
				return
			}
		}
	})
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, s.base, "GET", "", nil)
	d.Operation.MaxResult = 1000
	out := executor.Perform(t.Context(), d)
	want(t, out, action.AttemptCompleted, action.EffectProven, "")
	if res := out.Result; len(res.Body) != 1000 || res.Complete || res.Size != 10_000_000_000 {
		t.Errorf("%d bytes kept of %d, complete is %t", len(res.Body), res.Size, res.Complete)
	}
	if sent := <-stopped; sent > 64<<20 {
		t.Errorf("the server could send %d bytes", sent)
	}
}

// A body that never ends, or comes byte by byte, ends with the attempt's time.
func TestSlowBody(t *testing.T) {
	for name, judge := range map[string]action.Judge{"proof": judge, "none": nil} {
		s := newRawServer(t, false, func(c *rawConn) {
			if c.request() == nil {
				return
			}
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			c.request() // waits for the client to leave
		})
		executor := newExecutor(t, Options{})
		d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
		d.Operation.Timeout, d.Judge = 200, judge
		out := executor.Perform(t.Context(), d)
		if name == "proof" {
			want(t, out, action.AttemptCompleted, action.EffectProven, "")
		} else {
			want(t, out, action.AttemptTimeout, action.Indeterminate, ReasonTimeout)
		}
		if string(out.Result.Body) != "half" || out.Result.Complete || out.Result.Size != 100 {
			t.Errorf("%s: %q of %d bytes, complete is %t", name, out.Result.Body, out.Result.Size, out.Result.Complete)
		}
	}
}
