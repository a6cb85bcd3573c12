package httpexec

import (
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

// A target claimed a body of more bytes than a record holds as an exact integer, and broke off: the outcome could not be
// recorded. What is only claimed is cut to what can be.
func TestALengthThatIsOnlyClaimedCanBeRecorded(t *testing.T) {
	for _, length := range []string{"9007199254740993", "9223372036854775807"} {
		s := newRawServer(t, false, func(c *rawConn) {
			if c.request() != nil {
				c.say("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\nok")
			}
		})
		out := newExecutor(t, Options{}).Perform(t.Context(), resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x")))
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if out.Result.Size != 1<<53-1 || out.Result.Complete || string(out.Result.Body) != "ok" {
			t.Errorf("length %s: got size %d, complete %t, body %q; want the largest exact integer, incomplete, \"ok\"",
				length, out.Result.Size, out.Result.Complete, out.Result.Body)
		}
	}
}
