package httpexec

import (
	"context"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

// protocols are the ways on which an answer may come late.
var protocols = []string{"HTTP/1.1", "TLS", "HTTP/2"}

// lateRig is an executor, a slow server, and what came late.
type lateRig struct {
	*testing.T
	server   *slowServer
	executor *Executor
	dispatch action.Dispatch
	late     chan action.Outcome
	link     *link // of the last attempt
}

func newLateRig(t *testing.T, protocol string, reads time.Duration) *lateRig {
	t.Helper()
	s := newSlowServer(t, protocol)
	r := &lateRig{t, s, newExecutor(t, Options{Vault: newVault(t, s.base), LateFor: reads}), dispatchTo(t, s.base), make(chan action.Outcome, 10), nil}
	r.executor.testOnlyBeforeSend = func(l *link) { r.link = l }
	r.dispatch.Operation.Timeout = 300
	r.dispatch.Late = func(out action.Outcome) { r.late <- out }
	return r
}

// timeOut makes the attempt, which nobody answers in time.
func (r *lateRig) timeOut(ctx context.Context) action.Outcome {
	r.Helper()
	out := r.executor.Perform(ctx, r.dispatch)
	want(r, out, action.AttemptTimeout, action.Indeterminate, ReasonTimeout)
	if out.BytesSent == 0 || out.Remote == "" {
		r.Errorf("%d bytes are said to be sent to %q", out.BytesSent, out.Remote)
	}
	return out
}

func (r *lateRig) places() int {
	r.executor.late.mu.Lock()
	defer r.executor.late.mu.Unlock()
	return r.executor.late.free
}

// ended waits until nobody reads late, and looks at what is left: one request, no connection, and the expected calls.
func (r *lateRig) ended(calls int) {
	r.Helper()
	await(r, "the late reader has left", func() bool { return r.places() == maxLate })
	r.executor.Close()
	if got := len(r.late); got != calls {
		r.Errorf("Late was called %d times more, want %d", got, calls)
	}
	if got := r.server.requests(); got != 1 || r.server.connections() != 1 {
		r.Errorf("the server saw %d requests on %d connections, want 1 on 1", got, r.server.connections())
	}
	r.notKept()
	if r.link.meter.SetDeadline(time.Time{}) == nil {
		r.Error("the connection is open")
	}
}

func (r *lateRig) notKept() {
	r.Helper()
	r.executor.pool.mu.Lock()
	defer r.executor.pool.mu.Unlock()
	if len(r.executor.pool.links) != 0 {
		r.Error("the connection is kept after a timeout")
	}
}

// UN-19: the answer comes after the attempt was given up on. It is read, judged and redacted like any other.
func TestLateAnswerIsHandedOver(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			first := r.timeOut(t.Context())
			if took := first.Ended.Sub(first.Started); took < 200*time.Millisecond || took > 5*time.Second || first.Status != 0 {
				t.Errorf("the attempt took %s, status %d; its limit is 300 ms", took, first.Status)
			}
			r.server.say("201", firstHalf, secondHalf)
			out := <-r.late
			want(t, out, action.AttemptCompleted, action.EffectProven, "")
			if out.Status != 201 || !out.Result.Complete || !strings.Contains(string(out.Result.Body), `"id":"ch_1"`) {
				t.Errorf("got status %d, complete %t, body %q", out.Status, out.Result.Complete, out.Result.Body)
			}
			if out.Remote != first.Remote || !out.Started.Equal(first.Started) || out.Ended.Before(first.Ended) || out.BytesSent < first.BytesSent {
				t.Errorf("got %+v, after %+v", out, first)
			}
			mustHide(t, protocol, out) // HT-07: the answer echoes the credential
			r.notKept()
			r.ended(0)
		})
	}
}

// UN-19: each kind of answer proves late what it would have proved in time.
func TestLateAnswerIsJudged(t *testing.T) {
	for status, w := range map[string]struct {
		state     action.AttemptState
		certainty action.Certainty
		reason    string
	}{
		"422": {action.AttemptRefused, action.NoEffectProven, ReasonRefused},
		"429": {action.AttemptRefused, action.NoEffectProven, ReasonAskedToComeLater},
		"500": {action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous},
	} {
		r := newLateRig(t, "HTTP/1.1", 0)
		r.timeOut(t.Context())
		r.server.say(status, firstHalf, secondHalf)
		want(t, <-r.late, w.state, w.certainty, w.reason)
		r.ended(0)
	}
}

// UN-19, HT-20: the time is over in the middle of the body, and only the whole body proves anything.
func TestLateEndOfAnAnswer(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			r.dispatch.Judge = func(resp action.Response) action.Verdict {
				if resp.Truncated {
					return action.Verdict{}
				}
				return judge(resp)
			}
			r.dispatch.Operation.Timeout = 1000
			r.server.say("201", firstHalf)
			out := r.timeOut(t.Context())
			if out.Status != 201 || out.Result.Complete {
				t.Errorf("the attempt has status %d, complete %t", out.Status, out.Result.Complete)
			}
			mustHide(t, "half of "+protocol, out)
			r.server.say(secondHalf)
			out = <-r.late
			want(t, out, action.AttemptCompleted, action.EffectProven, "")
			if body := string(out.Result.Body); !strings.HasPrefix(body, `{"got":`) || !strings.HasSuffix(body, `"id":"ch_1"}`) {
				t.Errorf("the body is %q", body)
			}
			mustHide(t, protocol, out)
			r.ended(0)
		})
	}
}

// Where the status alone proves the effect, an attempt that times out in the body is no open end, and nothing is read late.
func TestProvedByTheStatusIsNotLate(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			r.dispatch.Operation.Timeout = 1000
			r.server.say("201", firstHalf)
			want(t, r.executor.Perform(t.Context(), r.dispatch), action.AttemptCompleted, action.EffectProven, "")
			r.server.say(secondHalf)
			r.ended(0)
		})
	}
}

// UN-19: what ends the wait, and that nothing is handed over then, whatever comes afterwards.
func TestLateWaitEnds(t *testing.T) {
	for name, end := range map[string]func(r *lateRig, cancel func()){
		"answer cut in its header":   func(r *lateRig, _ func()) { r.server.say(cutOff) },
		"answer cut in its body":     func(r *lateRig, _ func()) { r.server.say("201", firstHalf, cutOff) },
		"no HTTP answer":             func(r *lateRig, _ func()) { r.server.say("x", cutOff) },
		"Close":                      func(r *lateRig, _ func()) { r.executor.Close() },
		"Close in the body":          func(r *lateRig, _ func()) { r.server.say("201", firstHalf); r.executor.Close() },
		"the caller's ctx":           func(_ *lateRig, cancel func()) { cancel() },
		"the caller's ctx in a body": func(r *lateRig, cancel func()) { r.server.say("201", firstHalf); cancel() },
		"time":                       func(*lateRig, func()) {},
	} {
		for _, protocol := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				reads := time.Hour
				if name == "time" {
					reads = 50 * time.Millisecond
				}
				r := newLateRig(t, protocol, reads)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r.timeOut(ctx)
				if name != "time" && r.places() != maxLate-1 {
					t.Fatal("nobody reads late, so the test shows nothing")
				}
				end(r, cancel)
				await(t, "the late reader has left", func() bool { return r.places() == maxLate })
				r.server.say("201", firstHalf, secondHalf)
				r.ended(0)
			})
		}
	}
}

// Late answers are waited for only where it was asked for, and an attempt that was answered in time has none.
func TestNothingIsLate(t *testing.T) {
	for _, protocol := range protocols {
		t.Run("off/"+protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, -1)
			r.timeOut(t.Context())
			r.server.say("201", firstHalf, secondHalf)
			r.ended(0)
		})
		t.Run("nobody takes it/"+protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			r.dispatch.Late = nil
			r.timeOut(t.Context())
			r.ended(0)
		})
		t.Run("the caller's own time is over/"+protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			r.dispatch.Operation.Timeout = 10_000
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			r.timeOut(ctx)
			r.ended(0)
		})
		t.Run("in time/"+protocol, func(t *testing.T) {
			t.Parallel()
			r := newLateRig(t, protocol, 0)
			r.dispatch.Operation.Timeout = 10_000
			for range 3 {
				r.server.say("201", firstHalf, secondHalf)
				want(t, r.executor.Perform(t.Context(), r.dispatch), action.AttemptCompleted, action.EffectProven, "")
			}
			if r.server.requests() != 3 || r.server.connections() != 1 || len(r.late) != 0 {
				t.Errorf("%d requests on %d connections, %d late; want 3 on 1 and none", r.server.requests(), r.server.connections(), len(r.late))
			}
		})
	}
}

// UN-04: a target that did not get the whole request has nothing to answer. The connection is cut, so that it gets no more.
func TestHalfARequestIsNotWaitedFor(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		stopped := make(chan bool, 1)
		s := newRawServer(t, withTLS, func(c *rawConn) {
			_, _ = c.r.Peek(1)
			<-stopped
			_, _ = c.r.WriteTo(discard{})
			stopped <- true
		})
		executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
		d := dispatchTo(t, s.base)
		d.Operation.Timeout, d.Operation.Body = 300, make([]byte, 32<<20)
		d.Late = func(action.Outcome) { t.Error("Late was called") }
		out := executor.Perform(t.Context(), d)
		want(t, out, action.AttemptTimeout, action.Indeterminate, ReasonTimeout)
		if free := executor.late.free; free != maxLate {
			t.Errorf("%d places are taken", maxLate-free)
		}
		stopped <- true
		<-stopped
		if got := int64(s.received()); got >= 32<<20 || out.BytesSent >= 32<<20 {
			t.Errorf("%d bytes arrived, %d are recorded; want less than the request", got, out.BytesSent)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Late readers are bounded. Who finds no place is cut off as without them.
func TestLateReadersAreBounded(t *testing.T) {
	release, broken := make(chan bool), make(chan bool, 3)
	s := newRawServer(t, false, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		<-release
		_, err := c.r.Peek(1) // a client that waits says nothing; one that has left has closed
		broken <- err != nil
	})
	executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
	executor.late.free = 1
	d := dispatchTo(t, s.base)
	d.Operation.Timeout = 200
	d.Late = func(action.Outcome) { t.Error("Late was called") }
	for range 3 {
		want(t, executor.Perform(t.Context(), d), action.AttemptTimeout, action.Indeterminate, ReasonTimeout)
	}
	close(release)
	for range 2 {
		if !<-broken {
			t.Error("the connection sent more")
		}
	}
	select {
	case <-broken:
		t.Error("nobody waits for a late answer, want one")
	case <-time.After(50 * time.Millisecond):
	}
	executor.Close()
	<-broken
	if executor.late.free != 1 {
		t.Errorf("%d places are free after Close, want 1", executor.late.free)
	}
}

// Close waits for a Late that runs, so that nobody is called after it.
func TestCloseWaitsForLate(t *testing.T) {
	r := newLateRig(t, "HTTP/1.1", 0)
	begun, release, ended := make(chan bool), make(chan bool), make(chan bool, 1)
	r.dispatch.Late = func(action.Outcome) { begun <- true; <-release; ended <- true }
	r.timeOut(t.Context())
	r.server.say("201", firstHalf, secondHalf)
	<-begun
	closed := make(chan bool)
	go func() { r.executor.Close(); close(closed) }()
	<-r.executor.late.over
	select {
	case <-closed:
		t.Error("Close returned while Late ran")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	<-closed
	if len(ended) != 1 {
		t.Error("Late did not end before Close")
	}
}

// A target that takes the work on and finishes it later gives its id; nothing is proved by that.
func TestAcceptedWorkKeepsItsID(t *testing.T) {
	r := newRig(t, "http")
	d := r.dispatch()
	d.Judge = func(action.Response) action.Verdict { return action.Verdict{Rule: "accepted_when", Job: "job-7"} }
	out := r.perform(d)
	want(t, out, action.AttemptCompleted, action.Indeterminate, ReasonAccepted)
	if out.Job != "job-7" {
		t.Errorf("the job is %q", out.Job)
	}
	r.wantRequests(1, 1)
}
