package gateway_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// Words of an askable tool: how sure its look-up is, and how long deed looks.
const (
	askSure    = "authoritative: true, settle: 150ms"
	askUnsure  = "authoritative: false"
	askCharge  = `{"amount":700,"customer":"cus_ask"}`
	askForeign = `{"amount":700,"currency":"usd","customer":"cus_ask","metadata":{"idem_key":"somebody-else"}}`
)

// askable is a tool that is charged through the proxy, and asked about at the provider itself. lost is its
// on_lost_response beside the usual, lookup what its look-up says beside the request.
func askable(lost, lookup string) string {
	return strings.NewReplacer("LOST", lost, "LOOKUP", lookup).Replace(`
tool: pay
description: A charge at a target that can be asked afterwards.
input:
  type: object
  required: [amount, customer]
  properties:
    amount: {type: integer}
    customer: {type: string}
http:
  method: POST
  url: PROXY/v1/charges
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, customer: "${args.customer}", metadata: {}}
metadata: {json: /metadata/idem_key}
resource: customer/${args.customer}
on_lost_response: {class: status_queryable, attach_for: 15m, evidence: the provider of these tests, LOST}
lookup: {request: {method: GET, url: "PROVIDER/v1/charges?metadata%5Bidem_key%5D={deed.idem_key}"}, LOOKUP, result: "${body.data[0]}"}
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
attempts: 3
timeout: TIMEOUT
keep_result: 30d
`)
}

const askFound = `found: "${size(body.data) > 0}"`

// onPost and onGet are faults of requests that do, and of those that ask.
func onPost(kind provider.Kind) provider.Fault {
	return provider.Fault{Kind: kind, Times: 1, Method: "POST"}
}

func onGet(f provider.Fault) provider.Fault { f.Method = "GET"; return f }

// sent counts the requests of a method that the provider saw.
func sent(r *rig.Rig, method string) (n int) {
	for _, q := range r.Provider.Requests() {
		if q.Method == method {
			n++
		}
	}
	return n
}

// eventually waits until the record of an action is as wanted.
func eventually(t *testing.T, r *rig.Rig, id action.ID, until func(action.Action) bool) action.Action {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		a, err := r.Store.Action(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if until(a) {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still %s (%s %s) after %d questions", id, a.State, a.Recovery, a.Reason, a.Observations)
		}
	}
}

func inState(s action.State) func(action.Action) bool {
	return func(a action.Action) bool { return a.State == s }
}

// scheduled runs what a daemon runs beside its doors, until the test ends or the rig is to be stopped.
func scheduled(t *testing.T, r *rig.Rig) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	g := r.Gateway
	go func() { defer close(done); g.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// findings lists what was learned of an action, with the reason where there is one.
func findings(t *testing.T, r *rig.Rig, id action.ID) (list []string) {
	t.Helper()
	all, err := r.Store.Observations(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if !o.Ended.IsZero() {
			list = append(list, strings.TrimSpace(string(o.Kind)+" "+string(o.Finding)+" "+o.Reason))
		}
	}
	return list
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// UN-09, UN-10, UN-11: a lost response is never decided about: it is unknown, the target is asked, and what it has is the
// result. What was asked, the answer and the time are kept.
func TestWhatTheLookUpFindsIsTheResult(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: askable("review_after: 1h", askFound+", "+askSure)})
	r.Break(onPost(provider.CommitThenDrop))
	a := r.Call("pay", askCharge).Do()
	if a.Action.State != action.Completed || a.SettledBy != action.SettledByLookUp {
		t.Fatalf("it is %s (%s), settled by %q", a.Action.State, a.Action.Reason, a.SettledBy)
	}
	if r.Effects() != 1 || sent(r, "POST") != 1 || !sameJSON(t, a.Result, r.Provider.Effects()[0].Body) {
		t.Errorf("%d effects of %d sends, result %s; want the one effect's %s", r.Effects(), sent(r, "POST"), a.Result, r.Provider.Effects()[0].Body)
	}
	kinds := rig.Kinds(r.EventsOf(a.Action.ID))
	want := []string{"action.dispatched", "action.unknown", "action.reconcile_started", "action.observed", "action.completed"}
	if i := slices.Index(kinds, want[0]); i < 0 || len(kinds) < i+len(want) || !slices.Equal(kinds[i:i+len(want)], want) {
		t.Errorf("the journal has %v, want %v in it", kinds, want)
	}
	all, err := r.Store.Observations(t.Context(), a.Action.ID)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d observations (%v), want 1", len(all), err)
	}
	o := all[0]
	if o.Kind != action.ByLookup || o.Finding != action.Found || o.Status != 200 || o.Evidence == "" || o.Remote == "" ||
		o.Started.IsZero() || o.Ended.Before(o.Started) || o.About != a.Attempts[0].ID || o.SpanID == a.Attempts[0].SpanID {
		t.Errorf("the observation is %+v", o)
	}
	evidence, err := r.Store.Payload(t.Context(), store.Evidence, string(o.ID))
	if err != nil || !strings.Contains(string(evidence), r.Provider.Effects()[0].ID) {
		t.Errorf("the evidence is %q (%v), want the target's whole answer", evidence, err)
	}
	again := r.Call("pay", askCharge).Do()
	if again.Action.ID != a.Action.ID || string(again.Result) != string(a.Result) || !again.Status().Replayed || r.Requests() != 2 {
		t.Errorf("a repeat is %s with %s after %d requests", again.Action.ID, again.Result, r.Requests())
	}
}

// UN-12, UN-17: the request was lost on its way. Absence is proved once the time to settle is over, and then one more send is
// made, whoever resumes it and however many.
func TestProvedAbsenceAllowsOneMoreSend(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: askable("review_after: 1h", askFound+", "+askSure)})
	r.Cut(chaos.Plan{Mode: chaos.CutRequest, Bytes: 20, Connections: 1})
	for _, a := range r.Call("pay", askCharge).Key("S", 1, "toolu_1").Parallel(20) {
		if a.Action.State != action.Completed || a.Action.Attempt != 2 {
			t.Errorf("a caller is told %s (%s) after %d attempts", a.Action.State, a.Action.Reason, a.Action.Attempt)
		}
	}
	a := r.Only()
	if r.Effects() != 1 || sent(r, "POST") != 1 {
		t.Errorf("%d effects of %d requests that arrived, want 1 of 1", r.Effects(), sent(r, "POST"))
	}
	if got, want := findings(t, r, a.ID), []string{"lookup absent not_settled", "lookup absent_settled"}; !slices.Equal(got, want) {
		t.Errorf("learned %q, want %q", got, want)
	}
	attempts := r.AttemptsOf(a.ID)
	if len(attempts) != 2 || attempts[0].Certainty != action.Indeterminate || attempts[0].BytesSent <= 0 || attempts[1].RetryOf != attempts[0].ID {
		t.Errorf("the attempts are %+v", attempts)
	}
}

// UN-13, case 017: one look-up that finds nothing settles no lost create. What is visible later is found later.
func TestCase017AnEarlyAbsenceIsNoProof(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lookup, early string }{
		"proves absence after a time": {"authoritative: true, settle: 3s", "lookup absent not_settled"},
		"never proves absence":        {askUnsure, "lookup absent not_authoritative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Wait: 300 * time.Millisecond, Contracts: askable("review_after: 1h", askFound+", "+c.lookup)})
			r.Switch(provider.Switches{LookupLag: 500 * time.Millisecond, Faults: []provider.Fault{onPost(provider.CommitThenDrop)}})
			early := r.Call("pay", askCharge).Do()
			if early.Action.State != action.Unknown || early.Code != action.CodeOutcomeUnknown {
				t.Errorf("after an early look-up it is %s, want unknown", early.Action.State)
			}
			a := eventually(t, r, early.Action.ID, inState(action.Completed))
			if got, want := findings(t, r, a.ID), []string{c.early, "lookup found"}; !slices.Equal(got, want) {
				t.Errorf("learned %q, want %q", got, want)
			}
			if r.Effects() != 1 || sent(r, "POST") != 1 || a.Attempt != 1 {
				t.Errorf("%d effects of %d sends, want 1 of 1", r.Effects(), sent(r, "POST"))
			}
		})
	}
}

// UN-13, UN-20: an absence that proves nothing never becomes a proof by being said often. When the time to look is over a
// person is asked, and nothing is sent again.
func TestAbsenceWithoutAuthorityEndsWithAPerson(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: askable("review_after: 1s", askFound+", "+askUnsure)})
	r.Break(onPost(provider.DropAfterRead))
	a := r.Call("pay", askCharge).Do()
	s := a.Status()
	if a.Action.State != action.Unknown || a.Action.Recovery != action.ReviewRequired || s.ErrorType != action.NeedsHumanApproval {
		t.Errorf("it is %s, %s, %q; want a person to be asked", a.Action.State, a.Action.Recovery, s.ErrorType)
	}
	for _, f := range findings(t, r, a.Action.ID) {
		if f != "lookup absent not_authoritative" {
			t.Errorf("learned %q", f)
		}
	}
	asked := sent(r, "GET")
	if b := r.Call("pay", askCharge).Do(); b.Action.ID != a.Action.ID || sent(r, "POST") != 1 || sent(r, "GET") != asked || r.Effects() != 0 {
		t.Errorf("a repeat is %s, after %d sends and %d questions (%d before)", b.Action.ID, sent(r, "POST"), sent(r, "GET"), asked)
	}
}

// UN-13: look-ups that contradict each other, or themselves, settle nothing, also not where "absent" would be a proof. All
// that was seen is kept.
func TestContradictoryLookUpsSettleNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lookup string
		want   []string
	}{
		"one after the other": {askFound + ", " + askSure, []string{"lookup look_alike", "lookup contradictory something_was_seen_before"}},
		"in one answer": {`found: "${size(body.data) > 0}", absent: '${body.object == "list"}', ` + askSure,
			[]string{"lookup contradictory", "lookup contradictory something_was_seen_before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Wait: 300 * time.Millisecond, Contracts: askable("review_after: 1h", c.lookup)})
			plant(t, r, askForeign)
			r.Switch(provider.Switches{Lookup: provider.LookupUnfiltered, Faults: []provider.Fault{onPost(provider.DropAfterRead)}})
			id := r.Call("pay", askCharge).Do().Action.ID
			eventually(t, r, id, func(a action.Action) bool { return a.Finding != "" })
			r.Break() // now the target finds nothing of the kind
			eventually(t, r, id, func(a action.Action) bool { return len(findings(t, r, id)) == 2 })
			if got := findings(t, r, id); !slices.Equal(got, c.want) {
				t.Errorf("learned %q, want %q", got, c.want)
			}
			if a := r.Stored(id); a.State != action.Unknown || a.Attempt != 1 || sent(r, "POST") != 2 || r.Effects() != 1 {
				t.Errorf("it is %s after %d attempts; %d sends and %d effects, one each being somebody else's", a.State, a.Attempt, sent(r, "POST"), r.Effects())
			}
		})
	}
}

// plant makes a charge at the provider that is none of deed's.
func plant(t *testing.T, r *rig.Rig, body string) {
	t.Helper()
	plain(t, "POST", r.URL+"/v1/charges", body)
}

// case 019: a charge that looks the same was there before. The call was lost before it reached the target: what is found is
// somebody else's, and adopted by nobody.
func TestCase019ALookAlikeIsNotAdopted(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: askable("review_after: 1s", askFound+", "+askSure)})
	plant(t, r, askForeign)
	r.Switch(provider.Switches{Lookup: provider.LookupUnfiltered})
	r.Cut(chaos.Plan{Mode: chaos.CutRequest, Bytes: 20, Connections: 1})
	a := r.Call("pay", askCharge).Do()
	if a.Action.State != action.Unknown || a.Action.Recovery != action.ReviewRequired || len(a.Result) != 0 {
		t.Errorf("it is %s, %s with result %s; want unknown, for a person, without one", a.Action.State, a.Action.Recovery, a.Result)
	}
	for _, f := range findings(t, r, a.Action.ID) {
		if f != "lookup look_alike" {
			t.Errorf("learned %q", f)
		}
	}
	if own := r.Effects() - 1; own != 0 || a.Action.Attempt != 1 {
		t.Errorf("%d effects of its own in %d attempts, want 0 in 1", own, a.Action.Attempt)
	}
	all, err := r.Store.Observations(t.Context(), a.Action.ID)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	if seen, err := r.Store.Payload(t.Context(), store.Evidence, string(all[0].ID)); err != nil || !strings.Contains(string(seen), "somebody-else") {
		t.Errorf("a reviewer is shown %q (%v), want the look-alike", seen, err)
	}
}

// UN-13: an answer about the question itself, a broken one and none prove nothing, also where "absent" would be a proof.
// Once the target answers again, it goes by what it says.
func TestALookUpThatGoesWrongProvesNothing(t *testing.T) {
	t.Parallel()
	status := func(n int) []provider.Fault {
		return []provider.Fault{{Kind: provider.AnswerStatus, Status: n, Body: `{"object":"list","data":[]}`}}
	}
	for name, c := range map[string]struct {
		faults []provider.Fault
		off    provider.Lookup
	}{
		"500 with an empty list":  {faults: status(500)},
		"401 with an empty list":  {faults: status(401)},
		"429 with an empty list":  {faults: status(429)},
		"202 without JSON":        {faults: []provider.Fault{{Kind: provider.AnswerStatus, Status: 202, Body: "soon"}}},
		"garbage":                 {faults: []provider.Fault{{Kind: provider.AnswerStatus, Status: 200, Body: `{"data":[`}}},
		"another shape":           {faults: []provider.Fault{{Kind: provider.AnswerStatus, Status: 200, Body: `{"data":7}`}}},
		"half an answer":          {faults: []provider.Fault{{Kind: provider.TruncateBody}}},
		"no answer":               {faults: []provider.Fault{{Kind: provider.HangAfterRead}}},
		"a dropped connection":    {faults: []provider.Fault{{Kind: provider.DropAfterRead}}},
		"a redirect":              {faults: []provider.Fault{{Kind: provider.Redirect, Status: 302, Location: "/v1/charges/none"}}},
		"the search switched off": {off: provider.LookupOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Wait: 700 * time.Millisecond, Timeout: "200ms", Contracts: askable("review_after: 1h", askFound+", authoritative: true, settle: 1ms")})
			for i := range c.faults {
				c.faults[i] = onGet(c.faults[i])
			}
			r.Switch(provider.Switches{Lookup: c.off, Faults: append(c.faults, onPost(provider.DropAfterRead))})
			a := r.Call("pay", askCharge).Do()
			if a.Action.State != action.Unknown || a.Action.Recovery != action.Reconciling || a.Action.Attempt != 1 || sent(r, "POST") != 1 {
				t.Fatalf("it is %s, %s (%s) after %d attempts", a.Action.State, a.Action.Recovery, a.Action.Reason, a.Action.Attempt)
			}
			all, err := r.Store.Observations(t.Context(), a.Action.ID)
			if err != nil || len(all) != 1 || all[0].Finding != action.Inconclusive || all[0].Ended.IsZero() {
				t.Errorf("observed %+v (%v), want one answer that says nothing", all, err)
			}
			r.Break()
			if got := eventually(t, r, a.Action.ID, inState(action.Completed)); got.Attempt != 2 || r.Effects() != 1 {
				t.Errorf("once it answers, %d attempts and %d effects; want 2 and 1", got.Attempt, r.Effects())
			}
		})
	}
}

// HT-07, UN-10: a question carries the credential by the rules of a send, no idempotency key, and no trace of either stays:
// the secret is nowhere, and what the target said only in the protected store.
func TestAQuestionCarriesTheCredentialAndNoKey(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]string{"bearer": "kind: bearer", "header": "kind: header\nheader: X-Api-Key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &httpLog{}
			r := rig.New(t, rig.Options{Contracts: askable("review_after: 1h", askFound+", "+askUnsure), Secret: httpCanary, SecretAs: as, Log: log.handler()})
			echoed, err := json.Marshal(map[string]any{"object": "list", "data": []any{}, "you_sent": httpCanary, "note": "private-note"})
			if err != nil {
				t.Fatal(err)
			}
			r.Break(onPost(provider.CommitThenDrop),
				provider.Fault{Kind: provider.AnswerStatus, Status: 200, Body: string(echoed), Method: "GET", Times: 1},
				onGet(provider.Fault{Kind: provider.EchoHeaders}))
			a, err := r.Call("pay", `{"amount":700,"customer":"cus_protected"}`).Try()
			if err != nil || a.Action.State != action.Completed || sent(r, "GET") != 2 {
				t.Fatalf("it is %s (%s), %v after %d questions", a.Action.State, a.Action.Reason, err, sent(r, "GET"))
			}
			for _, q := range r.Provider.Requests() {
				carries := len(q.Values("X-Api-Key")) == 1 || len(q.Values("Authorization")) == 1
				if !carries || len(q.Values("Idempotency-Key")) != 0 || len(q.Values("Traceparent")) != 1 {
					t.Errorf("%s %s has %d keys and %d spans, credential %t", q.Method, q.URI, len(q.Values("Idempotency-Key")), len(q.Values("Traceparent")), carries)
				}
				if q.Method == "GET" && q.Body != "" {
					t.Errorf("a question has a body: %q", q.Body)
				}
			}
			httpSweep(t, "what is kept", httpFiles(r), httpCanary)
			httpSweep(t, "the log", log.String(), httpCanary)
			httpSweep(t, "the answer", httpSaid(a, err), httpCanary)
			open := r.Export() + log.String()
			for _, protected := range []string{"private-note", "cus_protected", r.Provider.Effects()[0].ID} {
				if strings.Contains(open, protected) {
					t.Errorf("%q of the target's answer is in the journal or the log", protected)
				}
			}
			all, err := r.Store.Observations(t.Context(), a.Action.ID)
			if err != nil || len(all) != 2 {
				t.Fatalf("%d observations, %v", len(all), err)
			}
			if seen, err := r.Store.Payload(t.Context(), store.Evidence, string(all[0].ID)); err != nil || !strings.Contains(string(seen), "private-note") {
				t.Errorf("the evidence is %q (%v)", seen, err)
			}
		})
	}
}
