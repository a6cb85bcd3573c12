package gateway_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// httpTools are tools of several methods at a target that takes keys.
const httpTools = `
tool: METHOD_object
description: An effect by this method.
input:
  type: object
  required: [name]
  properties:
    name: {type: string}
    environment: {type: string, default: prod}
    region: {type: string}
http:
  method: METHOD
  url: PROXY/v1/objects/{name}{?environment}
  credential: provider
  private: [127.0.0.0/8]
  headers: {X-Region: "${args.?region}"}
BODY
on_lost_response:
  class: CLASS
  attach_for: 15m
  evidence: the provider of these tests
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 401, 404, 422]}
attempts: 5
timeout: TIMEOUT
keep_result: 30d
`

const httpKeyed = "repeatable_with_key\n  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}"

func httpTool(method, class, body string) string {
	return strings.NewReplacer("METHOD", method, "CLASS", class, "BODY", body).Replace(httpTools)
}

// HT-01, AU-15: the executor is one boundary: without trace context, without identity, without a decision or with another
// operation than the one decided on, it refuses and nothing leaves.
func TestExecutorRefusesWhatIsNotBound(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	port := 0
	if _, err := fmt.Sscanf(r.URL, "http://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	whole := action.Dispatch{
		Action: "act_1", Attempt: "att_1", Number: 1, Token: "act_1", Allowed: "sha256:aa", Binding: "sha256:aa",
		Operation: action.Operation{
			Channel: "http", Method: "POST", Path: "/v1/objects/a", Template: "/v1/objects/{name}", Timeout: 2000,
			Target: action.Target{Scheme: "http", Host: "127.0.0.1", Port: port, Private: []string{"127.0.0.0/8"}},
		},
		Trace: action.Trace{TraceID: strings.Repeat("1", 32), SpanID: strings.Repeat("2", 16), ParentSpanID: strings.Repeat("3", 16)},
	}
	e := httpexec.New(httpexec.Options{Vault: r.Vault})
	t.Cleanup(e.Close)
	for name, spoil := range map[string]func(*action.Dispatch){
		"no trace context":   func(d *action.Dispatch) { d.Trace = action.Trace{} },
		"no action":          func(d *action.Dispatch) { d.Action = "" },
		"no attempt":         func(d *action.Dispatch) { d.Attempt = "" },
		"no decision":        func(d *action.Dispatch) { d.Allowed, d.Binding = "", "" },
		"other operation":    func(d *action.Dispatch) { d.Binding = "sha256:bb" },
		"other channel":      func(d *action.Dispatch) { d.Operation.Channel = "ssh" },
		"no such credential": func(d *action.Dispatch) { d.Operation.Credential = "nobody" },
	} {
		d := whole
		spoil(&d)
		out := e.Perform(t.Context(), d)
		if out.State != action.AttemptNotSent || out.BytesSent != 0 || out.Certainty != action.NoEffectProven || out.Reason == "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if r.Requests() != 0 {
		t.Fatalf("%d requests left", r.Requests())
	}
	e.Perform(t.Context(), whole)
	if r.Requests() != 1 {
		t.Errorf("the whole dispatch made %d requests, so the refusals show nothing", r.Requests())
	}
}

// HT-02, HT-03, HT-06: the record of an action holds host, port, protocol, method, path template and credential reference,
// all equal to what the provider saw; the path itself is in no event.
func TestRecordedTargetIsWhatTheProviderSaw(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: httpTool("PUT", "blocked_after_unknown", `  json: {name: "${args.name}"}`)})
	a := r.Call("PUT_object", `{"name":"tenant-4711","region":"eu"}`).Do()
	q := r.Provider.Requests()[0]
	if q.URI != "/v1/objects/tenant-4711?environment=prod" || a.Action.State != action.Completed {
		t.Fatalf("sent %s, state %s", q.URI, a.Action.State)
	}
	seen, err := url.Parse("http://" + q.Values("Host")[0] + q.URI)
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Text("edge_type") != "external_action" || e.Kind() == "action.delivery" {
			continue
		}
		events++
		for name, want := range map[string]string{
			"action.host": seen.Hostname(), "action.port": seen.Port(), "action.protocol": "http", "action.method": q.Method,
			"action.path_template": "/v1/objects/{name}", "action.credential_ref": "provider",
		} {
			if got := e.Text(name); got != want {
				t.Errorf("%s has %s %q, and the provider saw %q", e.Kind(), name, got, want)
			}
		}
	}
	if events < 4 {
		t.Errorf("%d events of the action, want accepted, authorized, dispatched, completed", events)
	}
	if strings.Contains(r.Export(), "tenant-4711") {
		t.Error("the journal holds the path")
	}
	if got := r.Stored(a.Action.ID).Target.String(); got != "http://"+seen.Host {
		t.Errorf("the row has the target %s, want http://%s", got, seen.Host)
	}
}

// HT-04: what was asked is kept beside what was resolved from it.
func TestRequestedAndResolvedAreBothKept(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: httpTool("PUT", "blocked_after_unknown", "")})
	r.Call("PUT_object", `{"name":"asked-without-default"}`).Do()
	r.Call("PUT_object", `{"name":"asked-with-value","environment":"prod"}`).Do()
	kept := httpFiles(r)
	for _, requested := range []string{`{"name":"asked-without-default"}`, `{"environment":"prod","name":"asked-with-value"}`} {
		if !strings.Contains(kept, requested) {
			t.Errorf("nothing on record shows that %s was asked", requested)
		}
	}
	for _, resolved := range []string{"/v1/objects/asked-without-default", "environment=prod"} {
		if !strings.Contains(kept, resolved) {
			t.Errorf("nothing on record shows that %s was resolved", resolved)
		}
	}
}

// HT-05: defaults, templates and the choice of the credential are on record as steps, in order.
func TestResolutionStepsAreOnRecord(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: httpTool("PUT", httpKeyed, `  json: {name: "${args.name}"}`)})
	r.Call("PUT_object", `{"name":"a","region":"eu"}`).Do()
	kept := httpFiles(r)
	last := -1
	for _, step := range []string{"default", "template", "header", "body", "credential", "key"} {
		at := regexp.MustCompile(`"[Kk]ind":"` + step + `"`).FindStringIndex(kept)
		if at == nil {
			t.Errorf("no step %q is on record", step)
		} else if at[0] < last {
			t.Errorf("the step %q is out of order", step)
		} else {
			last = at[0]
		}
	}
}

// HT-08: instead of headers and bodies the record has the credential's reference, the header names, a body digest and
// whether something was redacted.
func TestRecordDescribesTheRequestWithoutItsContent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: httpTool("PUT", "blocked_after_unknown", `  json: {name: "${args.name}"}`)})
	r.Call("PUT_object", `{"name":"a","region":"eu-canary"}`).Do()
	export := r.Export()
	for _, member := range []string{`"credential_ref":"provider"`, `"header_names":`, `"body_digest":`, `"redaction_status":`} {
		if !strings.Contains(export, member) {
			t.Errorf("the journal has no %s", member)
		}
	}
	if strings.Contains(export, "eu-canary") {
		t.Error("the journal holds a header's value")
	}
}

// HT-12, cases 021 and 033: on a connection that was used before, a request that the server reads and drops is sent once
// for each attempt on record, with and without a key, with and without a body.
func TestOneRequestForEachAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, class, body string
		fault               provider.Kind
		requests            int
	}{
		{"POST", "blocked_after_unknown", "  json: {name: \"${args.name}\"}", provider.DropAfterRead, 1},
		{"POST", "blocked_after_unknown", "", provider.CommitThenDrop, 1},
		{"PUT", "blocked_after_unknown", "", provider.CommitThenDrop, 1},
		{"POST", httpKeyed, "  json: {name: \"${args.name}\"}", provider.CommitThenDrop, 2},
		{"DELETE", httpKeyed, "", provider.DropAfterRead, 2},
		{"PATCH", httpKeyed, "", provider.ResetBeforeRead, 2},
		{"DELETE", "blocked_after_unknown", "", provider.ResetBeforeRead, 1},
	} {
		keyed := strings.HasPrefix(c.class, "repeatable")
		t.Run(fmt.Sprintf("%s keyed %v %s", c.method, keyed, c.fault), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: httpTool(c.method, c.class, c.body)})
			r.Call(c.method+"_object", `{"name":"warm"}`).Do() // a connection that is kept alive
			r.Break(unknownTimes(c.fault, 1))
			a := r.Call(c.method+"_object", `{"name":"a"}`).Do()
			attempts := r.AttemptsOf(a.Action.ID)
			if got := r.Requests() - 1; got != c.requests || len(attempts) != got {
				t.Errorf("requests %d, attempts on record %d, want %d each", got, len(attempts), c.requests)
			}
			want := action.Unknown
			if keyed {
				want = action.Completed
			}
			if a.Action.State != want || r.Effects() > 2 {
				t.Errorf("state %s (%s), effects %d", a.Action.State, a.Action.Reason, r.Effects())
			}
			spans := unknownHeader(r, "Traceparent")
			if len(spans) != r.Requests() || len(slices.Compact(slices.Sorted(slices.Values(spans)))) != len(spans) {
				t.Errorf("spans on the wire %v: want one for each attempt", spans)
			}
		})
	}
}

// HT-12: the same for reads: what is repeated is repeated by deed, on record.
func TestReadsAreRepeatedOnRecordOnly(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("get_echo", `{"customer":"warm"}`).Do()
	r.Break(unknownTimes(provider.DropAfterRead, 1))
	a := r.Call("get_echo", `{}`).Do()
	if got := len(r.AttemptsOf(a.Action.ID)); a.Action.State != action.Completed || got != 2 || r.Requests() != 3 {
		t.Errorf("state %s, attempts %d, requests %d; want completed, 2, 3", a.Action.State, got, r.Requests())
	}
}

// HT-13, HT-14, VA-13, case 023: a redirect is an outcome. The other host gets no request, no credential and no key; the
// action stays the one that it was.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"kind: bearer", "kind: header\nheader: X-Api-Key"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprintf("%d %s", status, as[:12]), func(t *testing.T) {
				t.Parallel()
				other, err := provider.Open(filepath.Join(t.TempDir(), "ledger"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = other.Close() })
				there, err := other.Listen("127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				r := rig.New(t, rig.Options{SecretAs: as})
				r.Break(provider.Fault{Kind: provider.Redirect, Status: status, Location: there + "/v1/charges?token=token-in-the-place"})
				a := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
				if n := len(other.Requests()); n != 0 {
					t.Errorf("%d requests went to the other host", n)
				}
				if n := len(r.AttemptsOf(a.Action.ID)); n != r.Requests() || n == 0 {
					t.Errorf("%d attempts on record, %d requests", n, r.Requests())
				}
				s := r.Stored(a.Action.ID)
				if s.TargetStatus != status || s.State == action.Completed || len(r.Actions()) != 1 {
					t.Errorf("state %s, status %d, actions %d", s.State, s.TargetStatus, len(r.Actions()))
				}
				failed := s.State == action.Failed && s.Reason == "redirect_refused"
				if status >= 307 && !failed || status < 307 && s.State != action.Unknown {
					t.Errorf("state %s (%s)", s.State, s.Reason)
				}
				if strings.Contains(r.Export(), "token-in-the-place") {
					t.Error("the journal holds the query of the redirect's place")
				}
			})
		}
	}
}

// VA-13, VA-09: a credential goes only to the hosts that it is bound to, and an argument cannot choose another one.
func TestCredentialGoesToItsHostsOnly(t *testing.T) {
	t.Parallel()
	other, err := provider.Open(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	there, err := other.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tool := httpTool("PUT", "blocked_after_unknown", "")
	r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(tool, "PROXY", there)})
	a := r.Call("PUT_object", `{"name":"a"}`).Do()
	if len(other.Requests()) != 0 || a.Action.State != action.Failed || a.Action.FailureClass != action.NotSent || a.Action.Reason != "credential_not_bound" {
		t.Errorf("requests %d, state %s, %s (%s)", len(other.Requests()), a.Action.State, a.Action.FailureClass, a.Action.Reason)
	}
	r.Restart(tool)
	for _, args := range []string{`{"name":"b","credential":"admin"}`, `{"name":"b","credential_ref":"admin"}`, `{"name":"b","http":{"credential":"admin"}}`} {
		if _, err := r.Call("PUT_object", args).Try(); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
	if r.Requests() != 0 || len(other.Requests()) != 0 {
		t.Errorf("requests %d and %d, want none", r.Requests(), len(other.Requests()))
	}
}

// HT-15: the target's status is stored as it came; an accepted order is not completed unless the contract says so.
func TestStatusOfTheTargetIsStored(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]action.State{
		200: action.Completed, 201: action.Completed, 202: action.Unknown, 204: action.Unknown, 400: action.Failed, 409: action.Unknown, 500: action.Unknown,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: status})
			a := r.Call("send_email", unknownMail).Do()
			s := r.Stored(a.Action.ID)
			if s.TargetStatus != status || s.State != want {
				t.Errorf("status %d, state %s (%s); want %s", s.TargetStatus, s.State, s.Reason, want)
			}
			events := r.EventsOf(a.Action.ID)
			if got := events[len(events)-1].Text("outcome.http_status"); got != fmt.Sprint(status) {
				t.Errorf("the journal has status %q", got)
			}
			if got := a.Status().TargetStatus; got != status {
				t.Errorf("the caller is told %d", got)
			}
		})
	}
}

// HT-16: 400 is not worth a retry; 503 is, when the target says, and under the same action.
func TestRetryAdviceFollowsTheTarget(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "7", Times: 1})
	a := r.Call("charge", keysCharge).Do()
	s := a.Status()
	if !s.Retryable || s.RetryAfter == nil || *s.RetryAfter < 6 || *s.RetryAfter > 7 || s.State.Effect() != action.EffectNo {
		t.Errorf("after 503: state %s, retryable %v, after %v seconds", s.State, s.Retryable, s.RetryAfter)
	}
	again := r.Call("charge", keysCharge).Do()
	if again.Action.ID != a.Action.ID || r.Requests() != 1 {
		t.Errorf("before its time: action %s, requests %d; want %s and 1", again.Action.ID, r.Requests(), a.Action.ID)
	}
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 400})
	b := r.Call("charge", `{"amount":1,"customer":"cus_8"}`).Do()
	if s := b.Status(); s.Retryable || s.RetryAfter != nil {
		t.Errorf("after 400: retryable %v, after %v", s.Retryable, s.RetryAfter)
	}
	for _, act := range r.Actions() {
		if act.ID == a.Action.ID && !act.NotBefore.After(time.Now().Add(4*time.Second)) {
			t.Errorf("the time that the target asked for is not on record: %s", act.NotBefore)
		}
	}
}

// HT-18: the target gets W3C trace context whose parent is the attempt's own span; what the caller sent is never used.
func TestTargetGetsTheAttemptsSpan(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	theirs := strings.Repeat("a", 32)
	a := r.Call("charge", keysCharge).Trace(action.Upstream{
		Source: action.UpstreamUnverified, Traceparent: "00-" + theirs + "-" + strings.Repeat("b", 16) + "-01", Tracestate: "x=1",
	}).Do()
	attempts := r.AttemptsOf(a.Action.ID)
	if len(attempts) != 2 || r.Requests() != 2 {
		t.Fatalf("attempts %d, requests %d", len(attempts), r.Requests())
	}
	for i, q := range r.Provider.Requests() {
		want := "00-" + a.Action.Trace.TraceID + "-" + attempts[i].SpanID + "-01"
		if got := q.Values("Traceparent"); !slices.Equal(got, []string{want}) {
			t.Errorf("attempt %d carried %v, want %s", i+1, got, want)
		}
		if strings.Contains(fmt.Sprint(q.Headers), theirs) || len(q.Values("Tracestate")) > 0 {
			t.Errorf("attempt %d carried the caller's own context", i+1)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(a.Action.Trace.TraceID) || a.Action.Trace.TraceID == strings.Repeat("0", 32) {
		t.Errorf("trace id %q", a.Action.Trace.TraceID)
	}
}

// HT-20, case 026: a status that proves the effect does so even when the body broke off: completed with a part of the
// result, and no second request.
func TestCutAnswerIsCompletedWithAPartOfTheResult(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.TruncateBody})
	a := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	again := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	for _, x := range []action.Answer{a, again} {
		if x.Action.State != action.Completed || x.Complete || x.Status().Complete || !strings.Contains(x.Sentence(), "part") {
			t.Errorf("state %s, complete %v, said %q", x.Action.State, x.Complete, x.Sentence())
		}
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("effects %d, requests %d, want 1 and 1", r.Effects(), r.Requests())
	}
	if !strings.HasPrefix(string(r.Provider.Effects()[0].Body), string(a.Result)) || len(a.Result) == 0 {
		t.Errorf("the part is %s", a.Result)
	}
}

// case 032: a refused credential is read anew once, on record and under the same action; a second refusal is final.
func TestRefusedCredentialIsReadAnewOnce(t *testing.T) {
	t.Parallel()
	contracts := strings.Replace(rig.Usual, "no_effect_when: ${status in [400, 401, 403, 404, 422]}\nretry_when: ${status in [429, 503]}",
		"no_effect_when: ${status in [400, 403, 404, 422]}\nretry_when: ${status in [401, 429, 503]}", 1)
	refused := provider.Fault{Kind: provider.AnswerStatus, Status: 401, Times: 1}
	busy := provider.Fault{Kind: provider.AnswerStatus, Status: 503, Times: 1}
	for _, c := range []struct {
		name     string
		faults   []provider.Fault
		state    action.State
		requests int
	}{
		{"once", []provider.Fault{refused}, action.Completed, 2},
		{"twice", []provider.Fault{refused, refused}, action.Failed, 2},
		{"twice, with a pause between", []provider.Fault{refused, busy, refused}, action.Failed, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: contracts})
			r.Break(c.faults...)
			a := r.Call("charge", keysCharge).Do()
			if a.Action.State != c.state || r.Requests() != c.requests || len(r.AttemptsOf(a.Action.ID)) != c.requests {
				t.Errorf("state %s (%s), requests %d; want %s, %d", a.Action.State, a.Action.Reason, r.Requests(), c.state, c.requests)
			}
			effects := 0
			if c.state == action.Completed {
				effects = 1
			}
			if r.Effects() != effects {
				t.Errorf("effects %d, want %d", r.Effects(), effects)
			}
			if n := strings.Count(r.Export(), `"reason":"credential_refreshed","state":"authorized"`); n != 1 {
				t.Errorf("the journal has %d refreshes, want 1", n)
			}
			if c.state == action.Failed && a.Action.FailureClass != action.RejectedByTarget {
				t.Errorf("failure class %s", a.Action.FailureClass)
			}
		})
	}
}

// case 119: values with line ends or NUL do not become headers: refused as arguments, by the field's name alone.
func TestHeaderValuesCannotBringHeaders(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: httpTool("PUT", "blocked_after_unknown", "")})
	for _, value := range []string{`v\r\nX-Evil: 1`, `v\nX: 1`, `v\u0000`, `v\rX`} {
		for _, args := range []string{`{"name":"a","region":"` + value + `"}`, `{"name":"` + value + `"}`} {
			_, err := r.Call("PUT_object", args).Try()
			known, ok := err.(*action.Error)
			if !ok || known.Code != action.CodeInvalidArguments {
				t.Errorf("%s: got %v", args, err)
				continue
			}
			if strings.Contains(known.Error(), "Evil") || !strings.Contains(strings.ToLower(known.Message), "region") && !strings.Contains(known.Message, "name") {
				t.Errorf("%s: the refusal says %q", args, known.Error())
			}
		}
	}
	a := r.Call("PUT_object", `{"name":"ok","environment":"x\r\nX-Evil: 1"}`)
	if ans, err := a.Try(); err == nil && ans.Action.State == action.Completed {
		if q := r.Provider.Requests()[0]; len(q.Values("X-Evil")) > 0 || !strings.Contains(q.URI, "%0D%0A") {
			t.Errorf("sent %s with %v", q.URI, q.Headers)
		}
	} else if r.Requests() != 0 {
		t.Errorf("refused, and %d requests left", r.Requests())
	}
	if strings.Contains(r.Export(), "Evil") {
		t.Error("the journal holds a refused value")
	}
}
