package httpexec

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

// HT-18, EX-20: the request carries the attempt's span and the token it was given, and the bytes that were recorded.
func TestRequestGoesOutAsRecorded(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		r := newRig(t, scheme)
		d := r.dispatch()
		d.Operation.Method = "POST"
		d.Operation.Path, d.Operation.Query = "/v1/services/a%2Fb%20c%C3%A4~!$&'()*+,;=:@/releases", "x=1&y=%20+%2B&&z"
		d.Operation.Headers = []action.Header{{Name: "X-Tenant", Value: "t 1"}, {Name: "Accept", Value: "application/json"}}
		for i := range 3 { // the same action, attempted again
			d.Trace.SpanID = "00f067aa0ba902b" + string(rune('7'+i))
			want(t, r.perform(d), action.AttemptCompleted, action.EffectProven, "")
		}
		for i, req := range r.provider.Requests() {
			for name, value := range map[string]string{
				"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b" + string(rune('7'+i)) + "-01", "Idempotency-Key": d.Token,
				"X-Tenant": "t 1", "Content-Type": "application/json", "Authorization": "Bearer " + canary, "User-Agent": "deed",
				"Accept-Encoding": "identity", "Cookie": "", "Accept": "application/json",
			} {
				if got := strings.Join(req.Values(name), "|"); got != value {
					t.Errorf("%s: %s is %q, want %q", scheme, name, got, value)
				}
			}
			if req.URI != d.Operation.Path+"?"+d.Operation.Query || req.Body != string(d.Operation.Body) || req.Method != "POST" {
				t.Errorf("%s: %s %s arrived with %q", scheme, req.Method, req.URI, req.Body)
			}
			if scheme == "https" && req.Proto != "HTTP/2.0" {
				t.Errorf("the protocol is %s, want HTTP/2.0", req.Proto)
			}
		}
	}
}

// Case 119: header injection in every place. The target sees nothing.
func TestRequestThatWouldBeMendedIsRefused(t *testing.T) {
	header := func(name, value string) func(*action.Dispatch) {
		return func(d *action.Dispatch) { d.Operation.Headers = []action.Header{{Name: name, Value: value}} }
	}
	changes := map[string]func(*action.Dispatch){
		"CR LF in a value":    header("X-A", "v\r\nX-Evil: 1"),
		"LF in a value":       header("X-A", "v\nX-Evil: 1"),
		"CR in a value":       header("X-A", "v\rX-Evil: 1"),
		"NUL in a value":      header("X-A", "v\x00"),
		"space in a name":     header("X Y", "v"),
		"CR LF in a name":     header("X-A\r\nX-Evil", "v"),
		"colon in a name":     header("X-A:", "v"),
		"no name":             header("", "v"),
		"Host":                header("Host", "evil.example"),
		"content-length":      header("content-length", "1"),
		"Transfer-Encoding":   header("Transfer-Encoding", "chunked"),
		"Connection":          header("Connection", "X-A"),
		"Upgrade":             header("Upgrade", "websocket"),
		"Expect":              header("Expect", "100-continue"),
		"Proxy-Authorization": header("Proxy-Authorization", "x"),
		"a trace of its own":  header("traceparent", "00-0-0-0"),
		"a key of its own":    header("idempotency-key", "mine"),
		"the secret's place":  header("authorization", "Bearer mine"),
		"another media type":  header("Content-Type", "text/html"),
		"token":               func(d *action.Dispatch) { d.Token = "a\r\nX-Evil: 1" },
		"key header":          func(d *action.Dispatch) { d.Operation.Key.Header = "X-Evil: 1\r\nX" },
		"media type":          func(d *action.Dispatch) { d.Operation.MediaType = "a/b\r\nX-Evil: 1" },
		"method":              func(d *action.Dispatch) { d.Operation.Method = "GET / HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET" },
		"method in lower":     func(d *action.Dispatch) { d.Operation.Method = "get" },
		"no method":           func(d *action.Dispatch) { d.Operation.Method = "" },
		"CONNECT":             func(d *action.Dispatch) { d.Operation.Method = "CONNECT" },
		"path":                func(d *action.Dispatch) { d.Operation.Path = "/a HTTP/1.1\r\nX-Evil: 1\r\n\r\n" },
		"path with space":     func(d *action.Dispatch) { d.Operation.Path = "/a b" },
		"path with query":     func(d *action.Dispatch) { d.Operation.Path = "/a?b" },
		"path with fragment":  func(d *action.Dispatch) { d.Operation.Path = "/a#b" },
		"path not escaped":    func(d *action.Dispatch) { d.Operation.Path = "/ä" },
		"path with bad %":     func(d *action.Dispatch) { d.Operation.Path = "/%zz" },
		"path is an address":  func(d *action.Dispatch) { d.Operation.Path = "http://evil.example/" },
		"path is an asterisk": func(d *action.Dispatch) { d.Operation.Path = "*" },
		"query":               func(d *action.Dispatch) { d.Operation.Query = "a=b HTTP/1.1\r\nX-Evil: 1" },
		"query with fragment": func(d *action.Dispatch) { d.Operation.Query = "a=b#c" },
		"query with NUL":      func(d *action.Dispatch) { d.Operation.Query = "a=\x00" },
	}
	for _, scheme := range []string{"http", "https"} {
		r := newRig(t, scheme)
		for name, change := range changes {
			d := r.dispatch()
			change(&d)
			out := r.perform(d)
			if out.State != action.AttemptNotSent || out.Reason != ReasonRequestRefused || out.BytesSent != 0 {
				t.Errorf("%s: got %s, reason %q, %d bytes", name, out.State, out.Reason, out.BytesSent)
			}
		}
		r.wantRequests(0, 0)
	}
}

// The zero values: no body, no key, no credential, a path of nothing.
func TestSmallestRequest(t *testing.T) {
	var raw bytes.Buffer
	s := newRawServer(t, false, func(c *rawConn) {
		head := make([]byte, 4096)
		n, _ := io.ReadAtLeast(c.r, head, 16)
		raw.Write(head[:n])
		c.say(okAnswer)
	})
	executor := newExecutor(t, Options{UserAgent: "deed/1"})
	d := resendDispatch(t, s.base, "DELETE", "", nil)
	d.Operation.Path = ""
	want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
	wanted := "DELETE / HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.base, "http://") + "\r\nUser-Agent: deed/1\r\n" +
		"Accept-Encoding: identity\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n"
	if raw.String() != wanted {
		t.Errorf("sent\n%q, want\n%q", raw.String(), wanted)
	}
}

func TestPathsThatNetHTTPWouldChange(t *testing.T) {
	r := newRig(t, "http")
	for _, path := range []string{"//evil.example/x", "/a//b", "/a/../b", "/./", "/%2e%2e/", "/a%00", "/%41", "/a;b=c", "/[x]", "/a|b", `/a"b`, "/{x}"} {
		d := r.dispatch()
		d.Operation.Path = path
		before := len(r.provider.Requests())
		out := r.perform(d)
		got := r.provider.Requests()[before:]
		switch {
		case out.State == action.AttemptNotSent && len(got) == 0:
		case len(got) == 1 && got[0].URI == path:
		default:
			t.Errorf("%s: %s, arrived as %v", path, out.State, got)
		}
	}
}
