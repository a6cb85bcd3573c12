package httpexec

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/provider"
)

// HT-15, UN-15, case 031: each status is stored, and proves what the contract says and no more.
func TestStatusProvesWhatTheContractSays(t *testing.T) {
	for _, c := range []struct {
		status    int
		state     action.AttemptState
		certainty action.Certainty
		reason    string
		retry     bool
	}{
		{200, action.AttemptCompleted, action.EffectProven, "", false},
		{201, action.AttemptCompleted, action.EffectProven, "", false},
		{202, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{204, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{400, action.AttemptRefused, action.NoEffectProven, ReasonRefused, false},
		{401, action.AttemptRefused, action.NoEffectProven, ReasonUnauthorized, true},
		{409, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{422, action.AttemptRefused, action.NoEffectProven, ReasonRefused, false},
		{429, action.AttemptRefused, action.NoEffectProven, ReasonAskedToComeLater, true},
		{500, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{502, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{503, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
		{504, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous, false},
	} {
		r := newRig(t, "http")
		r.fault(provider.Fault{Kind: provider.AnswerStatus, Status: c.status, RetryAfter: "7"})
		out := r.perform(r.dispatch())
		want(t, out, c.state, c.certainty, c.reason)
		if out.Status != c.status || out.Retry != c.retry || out.RetryAfter != 7*time.Second {
			t.Errorf("%d: status %d, retry %t after %s", c.status, out.Status, out.Retry, out.RetryAfter)
		}
		r.wantRequests(1, 0)
	}
}

// UN-15: without a contract that speaks, no status proves anything; 401 keeps its word.
func TestSilentContractProvesNothing(t *testing.T) {
	r := newRig(t, "http")
	for status, reason := range map[int]string{200: ReasonAmbiguous, 401: ReasonUnauthorized, 403: ReasonAmbiguous} {
		r.fault(provider.Fault{Kind: provider.AnswerStatus, Status: status})
		d := r.dispatch()
		d.Judge = nil
		want(t, r.perform(d), action.AttemptCompleted, action.Indeterminate, reason)
	}
}

// Case 031: the effect took place and the answer says 500 or 504.
func TestErrorAfterTheEffectIsOpen(t *testing.T) {
	for _, status := range []int{500, 504} {
		r := newRig(t, "http")
		r.fault(provider.Fault{Kind: provider.CommitThenStatus, Status: status})
		want(t, r.perform(r.dispatch()), action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous)
		r.wantRequests(1, 1)
	}
}

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

// What is no HTTP answer proves nothing, and stops nobody.
func TestNonsenseIsNoAnswer(t *testing.T) {
	for name, text := range map[string]string{
		"no HTTP":           "220 mail.example ESMTP\r\n",
		"binary":            "\x00\x01\x02\x03\r\n\r\n",
		"bad status":        "HTTP/1.1 9999999 x\r\n\r\n",
		"status 0":          "HTTP/1.1 000 x\r\n\r\n",
		"another version":   "HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"bad length":        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"another encoding":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"endless header":    "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 200_000) + "\r\n\r\n",
		"endless interim":   strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 10_000),
		"a protocol switch": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello",
		"bad chunks":        "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		s := newRawServer(t, false, func(c *rawConn) {
			if c.request() != nil {
				c.say(text)
				c.request()
			}
		})
		executor := newExecutor(t, Options{})
		out := executor.Perform(t.Context(), resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x")))
		if out.State != action.AttemptTransportError || out.Certainty != action.Indeterminate || out.BytesSent == 0 {
			t.Errorf("%s: got %s, %s, reason %q, status %d", name, out.State, out.Certainty, out.Reason, out.Status)
		}
		if len(s.seen()) != 1 {
			t.Errorf("%s: %d requests", name, len(s.seen()))
		}
	}
}

func TestInterimAnswersAreSkipped(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		for c.request() != nil {
			c.say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + okAnswer)
		}
	})
	executor := newExecutor(t, Options{})
	for range 2 {
		out := executor.Perform(t.Context(), resendDispatch(t, s.base, "POST", "", []byte("x")))
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
	}
	if s.connections() != 1 {
		t.Errorf("%d connections, want 1", s.connections())
	}
}

// Only the closed list of headers is kept, and the judge sees no cookie either.
func TestKeptHeaders(t *testing.T) {
	s := newRawServer(t, false, func(c *rawConn) {
		if c.request() != nil {
			c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Bearer x\r\n" +
				"X-Request-Id: req_1\r\nETag: \"e\"\r\nIdempotent-Replayed: true\r\nX-Other: o\r\nDate: " + strings.Repeat("d", 2000) +
				"\r\nContent-Length: 0\r\n\r\n")
		}
	})
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, s.base, "GET", "", nil)
	var judged http.Header
	d.Judge = func(r action.Response) action.Verdict {
		judged = r.Header
		return judge(r)
	}
	out := executor.Perform(t.Context(), d)
	want(t, out, action.AttemptCompleted, action.EffectProven, "")
	var names []string
	for _, h := range out.Result.Headers {
		names = append(names, h.Name)
		if len(h.Value) > maxKept {
			t.Errorf("%s has %d bytes", h.Name, len(h.Value))
		}
	}
	if wanted := []string{"content-type", "date", "etag", "idempotent-replayed", "x-request-id"}; !slices.Equal(names, wanted) {
		t.Errorf("kept %v, want %v", names, wanted)
	}
	if out.Result.MediaType != "application/json" || judged.Get("X-Other") != "o" || judged.Get("Set-Cookie") != "" {
		t.Errorf("media type %q, judged by %v", out.Result.MediaType, judged)
	}
}

// HT-16: seconds and dates, bounded.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	for value, wanted := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, " 120 ": 2 * time.Minute, "3600": time.Hour, "3601": time.Hour,
		"99999999999999999999": time.Hour, "-1": 0, "1.5": 0, "soon": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(24 * time.Hour).Format(http.TimeFormat):   time.Hour,
		"Sunday, 01-Mar-26 12:00:30 GMT":                  30 * time.Second,
	} {
		if got := retryAfter(value, now.Truncate(time.Second)); got != wanted {
			t.Errorf("%q is %s, want %s", value, got, wanted)
		}
	}
}
