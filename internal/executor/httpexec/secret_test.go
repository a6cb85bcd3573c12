package httpexec

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/executortest"
	"deed.dev/deed/internal/vault"
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
		out := executor.Perform(t.Context(), dispatchTo(t, s.base))
		want(t, out, action.AttemptCompleted, action.EffectProven, "")
		if out.Result.Withheld != withheld || (len(out.Result.Body) == 0) != withheld || out.Result.Size != int64(packed.Len()) {
			t.Errorf("%q: withheld is %t, %d bytes kept of %d", encoding, out.Result.Withheld, len(out.Result.Body), out.Result.Size)
		}
	}
}

// Case 085, HT-07: whatever goes wrong, neither the outcome nor a log shows the secret, the path or the query.
func TestFailuresTellNoSecret(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	closed := newRawServer(t, false, func(*rawConn) {})
	plain := newRawServer(t, false, func(c *rawConn) { c.say("HTTP/1.1 400 Bad\r\n\r\n") })
	silent := newRawServer(t, false, func(c *rawConn) { c.request(); c.request() })
	garbage := newRawServer(t, false, func(c *rawConn) { c.say(c.request().Header.Get("Authorization")) })
	failures := map[string]struct {
		base   string
		change func(*action.Dispatch)
	}{
		"dial":           {closed.base, func(d *action.Dispatch) { d.Operation.Target.Private = []string{"127.0.0.2/32"} }},
		"name":           {closed.base, func(d *action.Dispatch) { d.Operation.Target.Host = "target.invalid" }},
		"TLS":            {plain.base, func(d *action.Dispatch) { d.Operation.Target.Scheme = "https" }},
		"parse":          {closed.base, func(d *action.Dispatch) { d.Operation.Path = "/%zz" + canary }},
		"timeout":        {silent.base, func(d *action.Dispatch) { d.Operation.Timeout = 200 }},
		"nonsense":       {garbage.base, func(*action.Dispatch) {}},
		"no answer":      {closed.base, func(*action.Dispatch) {}},
		"unbound":        {closed.base, func(d *action.Dispatch) { d.Operation.Credential = canary }},
		"bad host":       {closed.base, func(d *action.Dispatch) { d.Operation.Target.Host = canary }},
		"bad header":     {closed.base, func(d *action.Dispatch) { d.Operation.Headers = []action.Header{{Name: canary, Value: canary + "\n"}} }},
		"several faults": {closed.base, func(d *action.Dispatch) { d.Operation.Query = "key=" + canary }},
	}
	for name, f := range failures {
		for _, credential := range []string{"bearer", "query", "header"} {
			executor := newExecutor(t, Options{Vault: anyHost{newVault(t, "http://127.0.0.1:1")}, DialTimeout: time.Second})
			d := dispatchTo(t, f.base)
			d.Operation.Credential = credential
			d.Operation.Path, d.Operation.Query = "/v1/hidden-path", "q=hidden-query"
			f.change(&d)
			out := executor.Perform(t.Context(), d)
			if out.Certainty == action.EffectProven || out.Reason == "" {
				t.Errorf("%s: %+v", name, out)
			}
			mustHide(t, name, out)
			if text := fmt.Sprintf("%+v", out); strings.Contains(text, "hidden") {
				t.Errorf("%s: the outcome tells the URL: %s", name, text)
			}
		}
	}
	if logged.Len() > 0 {
		t.Errorf("the log says %q", logged.String())
	}
}

// VA-03, VA-10, VA-13, HT-13: no value, no connection.
func TestCredentialThatMayNotBeUsed(t *testing.T) {
	r, other := newRig(t, "http"), newRig(t, "http")
	v := newVault(t, r.base)
	r.executor = newExecutor(t, Options{Vault: v})
	refused := func(d action.Dispatch, reason string) {
		t.Helper()
		out := r.perform(d)
		want(t, out, action.AttemptNotSent, action.NoEffectProven, reason)
		if out.Remote != "" {
			t.Errorf("%s: %s was dialled", reason, out.Remote)
		}
	}
	refused(other.dispatch(), ReasonCredentialNotBound)
	d := r.dispatch()
	d.Operation.Credential = "nobody"
	refused(d, ReasonCredentialUnknown)
	v.Lock()
	refused(r.dispatch(), ReasonVaultLocked)
	v.Unlock()
	d = r.dispatch()
	d.Operation.Credential = "header"
	d.Operation.Headers = []action.Header{{Name: "X-Api-Key", Value: "mine"}}
	out := r.perform(d)
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonRequestRefused)
	d = r.dispatch()
	d.Operation.Credential, d.Operation.Query = "query", "a=b&api_key=mine"
	want(t, r.perform(d), action.AttemptNotSent, action.NoEffectProven, ReasonRequestRefused)

	r.executor = newExecutor(t, Options{})
	refused(r.dispatch(), ReasonCredentialUnknown)
	empty, err := vault.Parse([]byte("credentials:\n- {ref: bearer, kind: bearer, hosts: ['"+
		strings.TrimPrefix(r.base, "http://")+"'], insecure_loopback: true, file: absent}\n"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.executor = newExecutor(t, Options{Vault: empty})
	refused(r.dispatch(), ReasonCredentialUnusable)
	r.wantRequests(0, 0)
	other.wantRequests(0, 0)
}

// VA-10: the vault is locked while the connection is made. That is after the first look into it and before the send.
func TestVaultLockedWhileDialling(t *testing.T) {
	r := newRig(t, "https")
	v := newVault(t, r.base)
	r.executor = newExecutor(t, Options{Vault: lockAfter{v}})
	want(t, r.perform(r.dispatch()), action.AttemptNotSent, action.NoEffectProven, ReasonVaultLocked)
	r.wantRequests(0, 0)
}

// lockAfter locks the vault after each use.
type lockAfter struct{ *vault.Vault }

func (v lockAfter) Open(ref string, to action.Target) (*vault.Opened, error) {
	defer v.Lock()
	return v.Vault.Open(ref, to)
}

// VA-13: a rotated credential counts from the next attempt on, also on a kept connection.
func TestRotatedCredential(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "http")
	v, err := vault.Parse([]byte("credentials:\n- {ref: bearer, kind: bearer, hosts: ['"+
		strings.TrimPrefix(r.base, "http://")+"'], insecure_loopback: true, file: key}\n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	r.executor = newExecutor(t, Options{Vault: v})
	for i, value := range []string{"first-value", "second-value"} {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, r.perform(r.dispatch()), action.AttemptCompleted, action.EffectProven, "")
		req := r.provider.Requests()[i]
		if got := req.Values("Authorization"); len(got) != 1 || got[0] != "Bearer "+value || req.Connection != 1 {
			t.Errorf("attempt %d sent %v on connection %d", i+1, got, req.Connection)
		}
	}
}
