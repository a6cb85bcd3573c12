package httpexec

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/executortest"
	"deed.dev/deed/lab/provider"
)

// mustHide looks for the canary in everything that an outcome can tell, and in what the judge saw.
func mustHide(t *testing.T, what string, out action.Outcome, seen ...action.Response) {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%+v %#v %s %+v %s", out, out, out.Result.Body, seen, base64.StdEncoding.EncodeToString(out.Result.Body))
	for _, r := range seen {
		text.Write(r.Body)
	}
	_ = json.NewEncoder(&text).Encode(out)
	_ = json.NewEncoder(&text).Encode(seen)
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "out", out)
	for form, s := range executortest.Spellings(canary) {
		if i := strings.Index(text.String(), s); i >= 0 {
			t.Errorf("%s: the credential is visible (%s): …%q", what, form, text.String()[max(0, i-80):i+len(s)])
		}
	}
}

// HT-07, HT-22, case 121: a target that echoes the credential in body, header, cookie and location, for each kind of it.
func TestEchoedCredentialStaysInside(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, kind := range []provider.Kind{provider.EchoHeaders, provider.GzipEcho} {
			for _, credential := range []string{"bearer", "header", "basic", "query"} {
				r := newRig(t, scheme)
				r.fault(provider.Fault{Kind: kind})
				d := r.dispatch()
				d.Operation.Credential = credential
				var seen action.Response
				d.Judge = func(resp action.Response) action.Verdict { seen = resp; return judge(resp) }
				out := r.perform(d)
				want(t, out, action.AttemptCompleted, action.EffectProven, "")
				mustHide(t, fmt.Sprintf("%s %s %s", scheme, kind, credential), out, seen)
				if withheld := kind == provider.GzipEcho; out.Result.Withheld != withheld || (len(out.Result.Body) == 0) != withheld {
					t.Errorf("%s: withheld is %t, body has %d bytes", kind, out.Result.Withheld, len(out.Result.Body))
				}
				for _, name := range []string{"Set-Cookie", "Www-Authenticate"} {
					if seen.Header[name] != nil {
						t.Errorf("the judge saw %s", name)
					}
				}
				r.wantRequests(1, 1)
				if sent := fmt.Sprint(r.provider.Requests()[0]); !strings.Contains(sent, "canary") && credential != "basic" {
					t.Errorf("%s: the target did not get the credential, so the test shows nothing", credential)
				}
			}
		}
	}
}

// Case 121: what the target makes of the secret before it sends it back: escaped, encoded, chunked, cut, over the limit.
func TestEchoInEveryShape(t *testing.T) {
	quoted, _ := json.Marshal(canary)
	shapes := map[string]string{"json": string(quoted), "page": "<html><pre>Authorization: Bearer " + canary + "</pre>"}
	for form, s := range executortest.Spellings(canary) {
		shapes[form] = "before " + s + " after"
	}
	shapes["inside base64"] = base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer " + canary + "\n"))
	for name, body := range shapes {
		for _, how := range []string{"length", "chunked", "close", "cut", "limit", "500"} {
			s := newRawServer(t, false, func(c *rawConn) {
				if c.request() == nil {
					return
				}
				switch how {
				case "length":
					c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Request-Id: %s\r\n\r\n%s", len(body), strings.TrimSpace(canary), body))
				case "chunked":
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: " + canary + "\r\n\r\n")
					for i := range len(body) {
						c.say(fmt.Sprintf("1\r\n%s\r\n", body[i:i+1]))
					}
					c.say("0\r\n\r\n")
				case "close":
					c.say("HTTP/1.1 200 " + canary + "\r\nContent-Type: text/" + canary + "\r\n\r\n" + body)
				case "cut":
					c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n%s", body[:len(body)-8]))
				case "limit":
					c.say("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + strings.Repeat("x", 100-len(body)/2) + body + strings.Repeat("y", 9000))
				case "500":
					c.say(fmt.Sprintf("HTTP/1.1 500 OK\r\nLocation: https://%s.example/%s\r\nContent-Length: %d\r\n\r\n%s", "a", canary, len(body), body))
				}
			})
			executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
			d := dispatchTo(t, s.base)
			d.Operation.MaxResult = 100 + int64(len(body))/4
			var seen action.Response
			d.Judge = func(resp action.Response) action.Verdict { seen = resp; return judge(resp) }
			out := executor.Perform(t.Context(), d)
			if out.Status == 0 {
				t.Fatalf("%s %s: no answer: %+v", name, how, out)
			}
			mustHide(t, name+" "+how, out, seen)
			if how == "cut" || how == "limit" { // the beginning of the secret is a part of it
				for form, s := range executortest.Spellings(canary) {
					if half := s[:len(s)/2]; strings.Contains(string(out.Result.Body), half) {
						t.Errorf("%s %s: half of the secret is left (%s): %q", name, how, form, out.Result.Body)
					}
				}
			}
		}
	}
}

// Case 121: a body that cannot be searched is withheld, whatever it is called, and the status still counts.
func TestEncodedBodyIsWithheld(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(canary))
	_ = w.Close()
	for encoding, withheld := range map[string]bool{
		"": false, "identity": false, "Identity": false, "gzip": true, "GZIP": true, "x-gzip": true, "br": true, "identity, gzip": true, "zstd": true, "made-up": true,
	} {
		s := newRawServer(t, false, func(c *rawConn) {
			if c.request() != nil {
				c.say(fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", encoding, packed.Len(), packed.String()))
			}
		})
		executor := newExecutor(t, Options{Vault: newVault(t, s.base)})
		d := dispatchTo(t, s.base)
		d.Judge = func(resp action.Response) action.Verdict {
			if resp.Truncated != withheld || (len(resp.Body) == 0) != withheld {
				t.Errorf("%q: the judge saw %d bytes, truncated is %t", encoding, len(resp.Body), resp.Truncated)
			}
			return judge(resp)
		}
		out := executor.Perform(t.Context(), d)
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if out.Result.Complete == withheld || out.Result.Withheld != withheld || (len(out.Result.Body) == 0) != withheld || out.Result.Size != int64(packed.Len()) {
			t.Errorf("%q: withheld is %t, %d bytes kept of %d", encoding, out.Result.Withheld, len(out.Result.Body), out.Result.Size)
		}
	}
}

// Case 121: a text in another encoding cannot be searched by its bytes.
func TestOtherCharsetIsWithheld(t *testing.T) {
	for contentType, withheld := range map[string]bool{
		"": false, "text/plain": false, "text/plain; charset=UTF-8": false, "text/html; charset=iso-8859-1": false,
		"text/html; charset=utf-16": true, "text/html; charset=utf-7": true, "text/plain; charset=\"UTF-16LE\"": true,
	} {
		s := newRawServer(t, false, func(c *rawConn) {
			if c.request() != nil {
				c.say("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		out := newExecutor(t, Options{Vault: newVault(t, s.base)}).Perform(t.Context(), dispatchTo(t, s.base))
		if out.Result.Withheld != withheld || out.Status != 200 {
			t.Errorf("%q: withheld is %t", contentType, out.Result.Withheld)
		}
	}
}
