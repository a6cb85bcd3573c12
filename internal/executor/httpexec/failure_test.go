package httpexec

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

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
