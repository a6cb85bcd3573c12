package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

const secretTools = `tool: set_password
description: Set a password.
input:
  type: object
  required: [user, password]
  properties:
    user: {type: string}
    password: {type: string, secret: true, description: the new password}
    hint: {type: string}
    extra: {type: string, secret: true}
http:
  method: POST
  url: PROXY/v1/charges
  private: [127.0.0.0/8]
  json: {customer: "${args.user}", amount: 1, currency: usd, password: "${args.password}", hint: "${args.?hint}", more: {extra: "${args.?extra}"}}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  scope: run
  evidence: lab/provider
resource: user/${args.user}
impact: Sets the password of ${args.user}.
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
attempts: 6
timeout: TIMEOUT
keep_result: 30d
---
tool: post_password
description: The same, as a form.
input:
  type: object
  required: [user, password]
  properties:
    user: {type: string}
    password: {type: string, secret: true}
http:
  method: POST
  url: PROXY/v1/objects/{user}
  private: [127.0.0.0/8]
  form: {user: "${args.user}", password: "${args.password}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m, scope: run}
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 422]}
attempts: 3
timeout: TIMEOUT
keep_result: 30d
`

func secretArgs(user, password string) string {
	return fmt.Sprintf(`{"user":%s,"password":%s}`, httpQuoted(user), httpQuoted(password))
}

// VA-11, VA-08, AU-25, HT-07: a secret argument reaches the target as it was given, and is in no answer, no error, no
// record, no log and no file, whatever goes wrong and even when the target sends it back.
func TestSecretArgumentIsNowhereButAtTheTarget(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]provider.Fault{
		"works":       nil,
		"echoed":      {{Kind: provider.AnswerStatus, Status: 201, Body: `{"password":` + httpQuoted(httpCanary) + `}`}},
		"refused":     {{Kind: provider.AnswerStatus, Status: 400, Body: "bad password " + httpCanary}},
		"error page":  {{Kind: provider.AnswerStatus, Status: 500, Body: "oops " + httpCanary}},
		"lost":        {{Kind: provider.CommitThenDrop, Times: 1}},
		"gone":        {{Kind: provider.DropAfterRead}},
		"not reached": {{Kind: provider.ResetBeforeRead}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log httpLog
			r := rig.New(t, rig.Options{Contracts: secretTools, Timeout: "500ms", Log: log.handler()})
			r.Break(faults...)
			args := secretArgs("ann", httpCanary)
			for _, call := range []*rig.Call{
				r.Call("set_password", args).Key("run", 1, "a"),
				r.Call("set_password", args).Key("run", 1, "a"),
				r.Call("set_password", args).Key("run2", 1, "b"),
				r.Call("post_password", args).Key("run", 2, "c"),
				r.Call("set_password", `{"password":`+httpQuoted(httpCanary)+`}`),
				r.Call("set_password", `{"user":1,"password":`+httpQuoted(httpCanary)+`}`),
				r.Call("set_password", `{"user":"x","password":[`+httpQuoted(httpCanary)+`]}`),
				r.Call("set_password", `{"user":`+httpQuoted(httpCanary)+`,"password":`+httpQuoted(httpCanary)+`}`),
				r.Call("set_password", `{"user":"ann","password":`+httpQuoted(httpCanary)+`,"surplus":`+httpQuoted("x"+httpCanary)+`}`),
			} {
				httpSweep(t, "the answer", httpSaid(call.Try()), httpCanary)
			}
			r.Idle()
			httpSweep(t, "the journal", r.Export(), httpCanary)
			httpSweep(t, "the data directory", httpFiles(r), httpCanary)
			httpSweep(t, "the log", log.String(), httpCanary)
			for _, a := range r.Actions() {
				httpSweep(t, "the row", fmt.Sprintf("%+v", a), httpCanary)
			}
			if name == "not reached" {
				return
			}
			var seen struct{ Password string }
			requests := r.Provider.Requests()
			if len(requests) == 0 || json.Unmarshal([]byte(requests[0].Body), &seen) != nil || seen.Password != httpCanary {
				t.Errorf("the secret did not arrive as it was given: %+v", requests)
			}
		})
	}
}

// VA-11: whatever a secret holds, it stays one value of the body, as JSON and as a form.
func TestSecretArgumentStaysOneValue(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: secretTools})
	for i, secret := range []string{`","amount":999,"x":"`, "&amount=999&x=1=2", "line\nline \u2028\x00é", `\"\\u0000`, "%26%3D+ ++ +", "$1${args.user}"} {
		a := r.Call("set_password", secretArgs("ann", secret)).Key("run", int64(i), "a").Do()
		b := r.Call("post_password", secretArgs("bob", secret)).Key("run", int64(i), "b").Do()
		if a.Action.State != action.Completed || b.Action.State != action.Completed {
			t.Fatalf("%q: %s, %s (%s, %s)", secret, a.Action.State, b.Action.State, a.Action.Reason, b.Action.Reason)
		}
		requests := r.Provider.Requests()
		var body map[string]any
		if err := json.Unmarshal([]byte(requests[len(requests)-2].Body), &body); err != nil || body["password"] != secret || body["amount"] != 1.0 || len(body) != 5 {
			t.Errorf("%q: sent %s", secret, requests[len(requests)-2].Body)
		}
		form := requests[len(requests)-1].Body
		if got, err := parseForm(form); err != nil || len(got) != 2 || got["password"][0] != secret {
			t.Errorf("%q: sent %s", secret, form)
		}
	}
}

// VA-11, FP-12: the same secret is the same call and another secret is another one, by the key and without one; a retry
// after a crash sends the recorded one.
func TestSecretArgumentTellsCallsApart(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: secretTools})
	first := r.Call("set_password", secretArgs("ann", httpCanary)).Key("run", 1, "a").Do()
	again := r.Call("set_password", secretArgs("ann", httpCanary)).Key("run", 1, "a").Do()
	if again.Action.ID != first.Action.ID || r.Effects() != 1 {
		t.Errorf("the same call is %s and %s, with %d effects", first.Action.ID, again.Action.ID, r.Effects())
	}
	_, err := r.Call("set_password", secretArgs("ann", httpCanary+"x")).Key("run", 1, "a").Try()
	var refused *action.Error
	if !errors.As(err, &refused) || refused.Code != action.CodeKeyReused {
		t.Errorf("another secret under the same key: %v", err)
	}
	r.Break(provider.Fault{Kind: provider.CommitThenDrop})
	r.Call("set_password", secretArgs("bob", httpCanary)).Key("run", 2, "b").Go()
	r.AwaitEffects(2)
	r.CrashWith(func() { r.Break() })
	third := r.Call("set_password", secretArgs("bob", httpCanary)).Key("run", 2, "b").Do()
	if third.Action.State != action.Completed || r.Effects() != 2 {
		t.Fatalf("it is %s, %d effects", third.Action.State, r.Effects())
	}
	bodies := map[string]bool{}
	for _, q := range r.Provider.Requests() {
		bodies[q.Body] = true
	}
	if len(bodies) != 2 {
		t.Errorf("%d different bodies were sent, want one for each action", len(bodies))
	}
}

// VA-11: no argument can pass for a reference, be it as a value, as a name or within other text.
func TestNoArgumentPassesForAReference(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: secretTools})
	for _, args := range []string{
		`{"user":"deed-secret:password","password":"` + "0123456789" + `"}`,
		`{"user":"ann","password":"deed-secret:extra","extra":"deed-secret:password"}`,
		`{"user":"ann","password":"0123456789","hint":"x deed-secret:extra"}`,
		`{"user":"ann","password":"0123456789","deed-secret:x":1}`,
		`{"user":"ann","password":"short"}`,
		`{"user":"ann","password":null}`,
	} {
		if a, err := r.Call("set_password", args).Try(); err == nil {
			t.Errorf("%s is %s", args, a.Action.State)
		}
	}
	if r.Requests() != 0 {
		t.Errorf("%d requests", r.Requests())
	}
}

// VA-11: a gateway that cannot keep a secret argument does nothing, and one that cannot open it sends nothing.
func TestSecretArgumentThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, sealer := range map[string]gateway.Sealer{"none": nil, "broken": brokenSealer{}} {
		r := rig.New(t, rig.Options{Contracts: secretTools})
		g := r.Another(func(o *gateway.Options) { o.Secrets = sealer })
		a, err := r.Call("set_password", secretArgs("ann", httpCanary)).At(g).Try()
		if err == nil && a.Action.State == action.Completed || r.Requests() != 0 {
			t.Errorf("%s: %s, %v, %d requests", name, a.Action.State, err, r.Requests())
		}
		httpSweep(t, name, httpSaid(a, err), httpCanary)
	}
}

type brokenSealer struct{}

func (brokenSealer) Seal(action.ID, string, string) ([]byte, error) { return []byte("x"), nil }
func (brokenSealer) Open(action.ID, string, []byte) (string, error) {
	return "", errors.New("the key is gone")
}

func parseForm(s string) (map[string][]string, error) { return url.ParseQuery(s) }
