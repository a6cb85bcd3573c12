package executortest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deed.dev/deed/internal/action"
)

// expected is what an outcome has to be, by what the target did.
var expected = map[Behaviour]struct {
	states    []action.AttemptState
	certainty action.Certainty
	retry     bool
	arrives   int // requests
}{
	Answers:   {[]action.AttemptState{action.AttemptCompleted}, action.EffectProven, false, 1},
	Refuses:   {[]action.AttemptState{action.AttemptRefused}, action.NoEffectProven, false, 1},
	ComeLater: {[]action.AttemptState{action.AttemptRefused}, action.NoEffectProven, true, 1},
	Fails:     {[]action.AttemptState{action.AttemptCompleted}, action.Indeterminate, false, 1},
	Overload:  {[]action.AttemptState{action.AttemptCompleted}, action.Indeterminate, false, 1},
	Breaks:    {[]action.AttemptState{action.AttemptTransportError}, action.Indeterminate, false, 1},
	Hangs:     {[]action.AttemptState{action.AttemptTimeout}, action.Indeterminate, false, 1},
	CutsShort: {[]action.AttemptState{action.AttemptTransportError}, action.Indeterminate, false, 1},
	Absent:    {[]action.AttemptState{action.AttemptNotSent}, action.NoEffectProven, false, 0},
}

// short bounds an attempt at a target that does not answer.
const short = 300 // milliseconds

// oneRequestPerAttempt: whatever the target does, on a new connection and on a kept one, one attempt is one request.
// HT-12, UN-01, UN-03, ST-18, case 033.
func (h Harness) oneRequestPerAttempt(t *testing.T) {
	for _, b := range h.Behaviours {
		for _, warm := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/warm=%t", b, warm), func(t *testing.T) {
				target, executor := h.Target(t), h.Executor(t)
				if warm {
					h.check(t, executor.Perform(t.Context(), target.Dispatch("warm-up")), Answers)
				}
				target.Become(b)
				d := target.Dispatch("the-one")
				d.Operation.Timeout = timeoutFor(b)
				out := executor.Perform(t.Context(), d)
				h.check(t, out, b)
				if got, want := target.Seen("the-one"), expected[b].arrives; got != want {
					t.Errorf("the target saw %d requests, want %d", got, want)
				}
			})
		}
	}
}

func timeoutFor(b Behaviour) int64 {
	if b == Hangs {
		return short
	}
	return 10_000
}

// check compares an outcome with what the target did.
func (h Harness) check(t *testing.T, out action.Outcome, b Behaviour) {
	t.Helper()
	want := expected[b]
	if out.Certainty != want.certainty || out.State != want.states[0] || out.Retry != want.retry {
		t.Errorf("a target that %s: got %s, %s, retry %t (%s); want %s, %s, retry %t",
			b, out.State, out.Certainty, out.Retry, out.Reason, want.states[0], want.certainty, want.retry)
	}
	if sent := out.BytesSent > 0; sent != (want.arrives > 0) { // HT-10, HT-11
		t.Errorf("a target that %s: %d bytes are said to be sent", b, out.BytesSent)
	}
	if out.Certainty != action.EffectProven && out.Reason == "" {
		t.Errorf("a target that %s: the outcome has no reason", b)
	}
	if out.Started.IsZero() || out.Ended.Before(out.Started) {
		t.Errorf("a target that %s: the attempt took place from %s to %s", b, out.Started, out.Ended)
	}
	h.checkSecret(t, out)
}

// checkSecret: HT-07, HT-22.
func (h Harness) checkSecret(t *testing.T, out action.Outcome) {
	t.Helper()
	text := fmt.Sprintf("%+v %s", out, out.Result.Body)
	for form, s := range Spellings(h.Canary) {
		if bytes.Contains([]byte(text), []byte(s)) {
			t.Errorf("the outcome shows the credential (%s): %s", form, text)
		}
	}
}

// silenceIsNoFailure: a timeout proves nothing. UN-02, UN-04, ST-18.
func (h Harness) silenceIsNoFailure(t *testing.T) {
	target, executor := h.Target(t), h.Executor(t)
	target.Become(Hangs)
	d := target.Dispatch("silent")
	d.Operation.Timeout = short
	out := executor.Perform(t.Context(), d)
	h.check(t, out, Hangs)
	if took := out.Ended.Sub(out.Started); took < short*time.Millisecond/2 || took > 10*time.Second {
		t.Errorf("the attempt took %s, its limit is %d ms", took, short)
	}
}

func (h Harness) cancelledBeforeSending(t *testing.T) {
	target, executor := h.Target(t), h.Executor(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := executor.Perform(ctx, target.Dispatch("never"))
	if out.State != action.AttemptNotSent || out.Certainty != action.NoEffectProven || out.BytesSent != 0 {
		t.Errorf("got %s, %s, %d bytes; want not_sent", out.State, out.Certainty, out.BytesSent)
	}
	if target.Arrived() != 0 {
		t.Errorf("the target saw %d requests, want none", target.Arrived())
	}
}

// cancelledWhileWaiting: who stops waiting does not undo what was sent.
func (h Harness) cancelledWhileWaiting(t *testing.T) {
	target, executor := h.Target(t), h.Executor(t)
	target.Become(Hangs)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan action.Outcome, 1)
	go func() { done <- executor.Perform(ctx, target.Dispatch("waiting")) }()
	for target.Seen("waiting") == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	out := <-done
	if out.State != action.AttemptTransportError || out.Certainty != action.Indeterminate || out.BytesSent == 0 {
		t.Errorf("got %s, %s, %d bytes; want an open end", out.State, out.Certainty, out.BytesSent)
	}
}

// lateIsCalledOnceAtMost: only after Perform has returned an outcome that proves nothing, and never after Close. An
// executor need not call it at all. UN-19.
func (h Harness) lateIsCalledOnceAtMost(t *testing.T) {
	for _, b := range h.Behaviours {
		t.Run(string(b), func(t *testing.T) {
			target, executor := h.Target(t), h.Executor(t)
			target.Become(b)
			var returned, closed atomic.Bool
			late := make(chan action.Outcome, 10)
			d := target.Dispatch("late")
			d.Operation.Timeout = timeoutFor(b)
			d.Late = func(out action.Outcome) {
				if !returned.Load() || closed.Load() {
					t.Errorf("Late was called; Perform had returned: %t, the executor was closed: %t", returned.Load(), closed.Load())
				}
				late <- out
			}
			out := executor.Perform(t.Context(), d)
			returned.Store(true)
			h.check(t, out, b)
			if b == Hangs {
				target.Become(Answers) // which lets go of the answer that was held
				if h.ReadsLate {
					h.check(t, <-late, Answers)
				}
			}
			executor.Close()
			closed.Store(true)
			if more := len(late); more > 0 && (h.ReadsLate || more > 1) {
				t.Errorf("Late was called %d times more than once", more)
			}
			if got, want := target.Seen("late"), expected[b].arrives; got != want {
				t.Errorf("the target saw %d requests, want %d", got, want)
			}
		})
	}
}

// unboundDispatchSendsNothing: HT-01, AP-08.
func (h Harness) unboundDispatchSendsNothing(t *testing.T) {
	target, executor := h.Target(t), h.Executor(t)
	changes := map[string]func(*action.Dispatch){
		"no action":             func(d *action.Dispatch) { d.Action = "" },
		"no attempt":            func(d *action.Dispatch) { d.Attempt = "" },
		"no trace":              func(d *action.Dispatch) { d.Trace = action.Trace{} },
		"no span":               func(d *action.Dispatch) { d.Trace.SpanID = "" },
		"a trace that is none":  func(d *action.Dispatch) { d.Trace.TraceID = "00000000000000000000000000000000" },
		"not allowed":           func(d *action.Dispatch) { d.Allowed = "" },
		"nothing bound":         func(d *action.Dispatch) { d.Allowed, d.Binding = "", "" },
		"something else":        func(d *action.Dispatch) { d.Binding += "0" },
		"another channel":       func(d *action.Dispatch) { d.Operation.Channel = "pigeon" },
		"nothing at all":        func(d *action.Dispatch) { *d = action.Dispatch{} },
		"an unknown credential": func(d *action.Dispatch) { d.Operation.Credential = "nobody" },
	}
	for name, change := range changes {
		d := target.Dispatch("unbound")
		change(&d)
		out := executor.Perform(t.Context(), d)
		if out.State != action.AttemptNotSent || out.Certainty != action.NoEffectProven || out.BytesSent != 0 || out.Reason == "" {
			t.Errorf("%s: got %s, %s, %d bytes, reason %q; want not_sent", name, out.State, out.Certainty, out.BytesSent, out.Reason)
		}
	}
	if got := target.Arrived(); got != 0 {
		t.Errorf("the target saw %d requests, want none", got)
	}
}

// parallelAttemptsKeepTheirAnswers: 64 at a time, none gets another's answer.
func (h Harness) parallelAttemptsKeepTheirAnswers(t *testing.T) {
	target, executor := h.Target(t), h.Executor(t)
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for round := range 4 {
				token := fmt.Sprintf("w%02d-r%d.", worker, round)
				out := executor.Perform(t.Context(), target.Dispatch(token))
				h.check(t, out, Answers)
				if !bytes.Contains(out.Result.Body, []byte(token)) {
					t.Errorf("%s got the answer %q", token, out.Result.Body)
				}
				if got := target.Seen(token); got != 1 {
					t.Errorf("%s arrived %d times", token, got)
				}
			}
		})
	}
	all.Wait()
}

func (h Harness) nothingRunsAfterClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("attempts", func(t *testing.T) {
		for _, b := range h.Behaviours {
			target, executor := h.Target(t), h.Executor(t)
			target.Become(b)
			d := target.Dispatch("leak")
			d.Operation.Timeout = timeoutFor(b)
			d.Late = func(action.Outcome) {} // what waits for it must not outlive Close either
			executor.Perform(t.Context(), d)
			executor.Close()
			if out := executor.Perform(t.Context(), d); out.State != action.AttemptNotSent {
				t.Errorf("an attempt after Close is %s", out.State)
			}
		}
	})
	goleak.VerifyNone(t, before) // the targets are closed by now
}
