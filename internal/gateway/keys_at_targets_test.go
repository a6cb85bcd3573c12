package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

const keysCharge = `{"amount":700,"customer":"cus_7"}`

// keysRelease is the seed's example of a target that takes keys.
const keysRelease = `
tool: deploy_release
description: Create a release.
input:
  type: object
  required: [service, version]
  properties:
    service: {type: string}
    version: {type: string}
    region: {type: string, default: us-east-1}
http:
  method: POST
  url: PROXY/v1/releases
  credential: provider
  private: [127.0.0.0/8]
  json: {service: "${args.service}", version: "${args.version}", region: "${args.region}"}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  evidence: the provider of these tests
done_when: ${status == 201}
no_effect_when: ${status in [400, 404, 422]}
timeout: TIMEOUT
keep_result: 30d
`

func keysOf(q provider.Request) string { return strings.Join(q.Values("Idempotency-Key"), "|") }

// IK-01, IK-02, IK-07, FP-15: every attempt of an action carries the action's own identifier as key, whatever made the
// attempt necessary; two actions never share one; and no key is a digest of what was asked.
func TestAttemptsOfOneActionShareOneKeyAndActionsShareNone(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, Times: 1},
		unknownTimes(provider.DropAfterRead, 1), unknownTimes(provider.CommitThenDrop, 1))
	first := r.Call("charge", keysCharge).Do()
	if first.Action.State != action.Completed || first.Action.Attempt != 4 || r.Effects() != 1 {
		t.Fatalf("state %s, attempts %d, effects %d; want completed, 4, 1", first.Action.State, first.Action.Attempt, r.Effects())
	}
	second := r.Call("charge", `{"amount":700,"customer":"cus_7","repeat_of":"`+first.RepeatOf+`"}`).Do()
	if second.Action.ID == first.Action.ID || r.Effects() != 2 {
		t.Fatalf("the deliberate repeat is %s, effects %d", second.Action.ID, r.Effects())
	}
	stored := []action.Action{r.Stored(first.Action.ID), r.Stored(second.Action.ID)}
	if stored[0].Digests.Fingerprint != stored[1].Digests.Fingerprint {
		t.Errorf("two equal actions have fingerprints %s and %s", stored[0].Digests.Fingerprint, stored[1].Digests.Fingerprint)
	}
	for i, q := range r.Provider.Requests() {
		want := string(first.Action.ID)
		if i == 4 {
			want = string(second.Action.ID)
		}
		if got := keysOf(q); got != want {
			t.Errorf("request %d carries key %q, want %q", i+1, got, want)
		}
		for _, d := range []string{stored[0].Digests.Fingerprint, stored[0].Digests.Effect, stored[0].Digests.Args} {
			if _, hash, _ := strings.Cut(d, ":"); strings.Contains(keysOf(q)+q.Body, hash) {
				t.Errorf("request %d carries a digest of what was asked", i+1)
			}
		}
	}
}

// IK-03: the key exists before the send, stands in the header that the contract names, and the rest of the request is the
// seed's, byte for byte.
func TestReleaseRequestIsTheSeedsByteForByte(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"Idempotency-Key", "X-Request-Token"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(keysRelease, "Idempotency-Key", header)})
			r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 201, Body: `{}`})
			a := r.Call("deploy_release", `{"version":"2026.07.22","service":"catalog"}`).Do()
			if a.Action.State != action.Completed || r.Requests() != 1 {
				t.Fatalf("state %s (%s), requests %d", a.Action.State, a.Action.Reason, r.Requests())
			}
			q := r.Provider.Requests()[0]
			if q.Method != "POST" || q.URI != "/v1/releases" || q.Body != `{"region":"us-east-1","service":"catalog","version":"2026.07.22"}` {
				t.Errorf("sent %s %s %s", q.Method, q.URI, q.Body)
			}
			if got := q.Values(header); !slices.Equal(got, []string{string(a.Action.ID)}) {
				t.Errorf("%s is %v, want %s alone", header, got, a.Action.ID)
			}
			if got := q.Values("Content-Type"); !slices.Equal(got, []string{"application/json"}) {
				t.Errorf("Content-Type is %v", got)
			}
			kinds := rig.Kinds(r.EventsOf(a.Action.ID))
			if accepted := slices.Index(kinds, "action.accepted"); accepted < 0 || accepted > slices.Index(kinds, "action.dispatched") {
				t.Errorf("the identity is not on record before the send: %v", kinds)
			}
		})
	}
}

// IK-03: a target that takes its key in the body gets it there, and in no header.
func TestKeyGoesIntoTheBodyWhereTheContractSaysSo(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: strings.Replace(keysRelease, "header: Idempotency-Key", "json: /request_id", 1)})
	r.Break(unknownTimes(provider.DropAfterRead, 1), provider.Fault{Kind: provider.AnswerStatus, Status: 201, Body: `{}`})
	a := r.Call("deploy_release", `{"version":"2026.07.22","service":"catalog"}`).Do()
	if a.Action.State != action.Completed || r.Requests() != 2 {
		t.Fatalf("state %s (%s), requests %d", a.Action.State, a.Action.Reason, r.Requests())
	}
	for i, q := range r.Provider.Requests() {
		var body map[string]string
		if err := json.Unmarshal([]byte(q.Body), &body); err != nil || body["request_id"] != string(a.Action.ID) {
			t.Errorf("request %d has body %s, want request_id %s", i+1, q.Body, a.Action.ID)
		}
		if keysOf(q) != "" {
			t.Errorf("request %d has a key in its header too", i+1)
		}
	}
}

// IK-04: when the agent has its answer, another process can read the target's status and the whole answer already.
func TestAnswerOfTheTargetIsStoredBeforeTheAgentHasIt(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", keysCharge).Do()
	reader := r.Reader()
	stored, err := reader.Action(t.Context(), a.Action.ID)
	if err != nil || stored.State != action.Completed || stored.TargetStatus != 201 {
		t.Fatalf("stored: %s, status %d, %v", stored.State, stored.TargetStatus, err)
	}
	result, body, err := reader.Result(t.Context(), stored.Result)
	if err != nil || string(body) != string(r.Provider.Effects()[0].Body) || !result.Complete || result.MediaType != "application/json" {
		t.Errorf("stored answer %s (%+v), %v; the ledger has %s", body, result, err, r.Provider.Effects()[0].Body)
	}
}

// IK-04, IK-21: the headers that tell a first answer from one out of the target's memory are kept with it.
func TestChosenHeadersOfTheAnswerAreStored(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	r.Call("charge", keysCharge).Do()
	if !strings.Contains(strings.ToLower(httpFiles(r)), "idempotent-replayed") {
		t.Error("nothing on record shows that the target answered from its memory")
	}
}

// IK-05, IK-06, IK-12: a contract says what the target does when a key comes again, and only a target that gives the
// first result back can be resent to.
func TestOnlyTargetsThatReturnTheOriginalAreResentTo(t *testing.T) {
	t.Parallel()
	for repeat, loads := range map[string]bool{
		"returns_original_and_refuses_changed": true, "returns_original_only": true,
		"unspecified": false, "ignored": false, "whatever": false,
	} {
		text := strings.NewReplacer("PROXY", "https://api.example", "TIMEOUT", "5s", "private: [127.0.0.0/8]\n", "\n",
			"returns_original_and_refuses_changed", repeat).Replace(keysRelease)
		if _, err := contract.Parse("test.yaml", []byte(text)); (err == nil) != loads {
			t.Errorf("repeat: %s loads: %v (%v), want %v", repeat, err == nil, err, loads)
		}
	}
	text := strings.NewReplacer("PROXY", "https://api.example", "TIMEOUT", "5s", "private: [127.0.0.0/8]\n", "\n",
		"  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}\n", "").Replace(keysRelease)
	if _, err := contract.Parse("test.yaml", []byte(text)); err == nil {
		t.Error("repeatable_with_key without a key loads")
	}
}

// UN-06: a tool with effects that names no class does not load, so it cannot be called.
func TestToolWithoutAClassDoesNotLoad(t *testing.T) {
	t.Parallel()
	whole := strings.NewReplacer("PROXY", "https://api.example", "TIMEOUT", "5s", "private: [127.0.0.0/8]\n", "\n").Replace(keysRelease)
	if _, err := contract.Parse("test.yaml", []byte(whole)); err != nil {
		t.Fatalf("the whole contract does not load: %v", err)
	}
	for _, without := range []string{"  class: repeatable_with_key\n", "  evidence: the provider of these tests\n"} {
		if _, err := contract.Parse("test.yaml", []byte(strings.Replace(whole, without, "", 1))); err == nil {
			t.Errorf("it loads without %q", without)
		}
	}
	for _, class := range []string{"", "safe", "POST"} {
		text := strings.Replace(whole, "class: repeatable_with_key", "class: \""+class+"\"", 1)
		if _, err := contract.Parse("test.yaml", []byte(text)); err == nil {
			t.Errorf("it loads with the class %q", class)
		}
	}
}

// IK-08, FP-18: the operation key is SHA-256 of run, step and tool-call id. Arguments are no part of it, so rewording a
// field without meaning keeps the key and the action.
func TestOperationKeyComesFromRunStepAndCallAlone(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	first := r.Call("charge", `{"amount":700,"customer":"cus_7","client_ts":"10:00"}`).Key("run-a", 3, "toolu_1").Do()
	r.Restart("")
	again := r.Call("charge", `{"amount":700,"customer":"cus_7","client_ts":"10:09"}`).Key("run-a", 3, "toolu_1").Do()
	if again.Action.ID != first.Action.ID || again.Match != action.MatchKey || r.Effects() != 1 {
		t.Errorf("the reworded call is %s by %q, effects %d", again.Action.ID, again.Match, r.Effects())
	}
	sum := sha256.Sum256([]byte(string(first.Action.Run) + ":3:toolu_1"))
	want := hex.EncodeToString(sum[:])
	var keys []string
	for _, e := range r.Events() {
		if e.Kind() == "intent.logged" {
			keys = append(keys, e.Text("intent.idem_key"))
		}
	}
	if !slices.Equal(keys, []string{want}) {
		t.Errorf("keys on record %v, want %s once", keys, want)
	}
	if strings.Contains(string(first.Action.Run), "run-a") {
		t.Errorf("the run %s is the caller's own word", first.Action.Run)
	}
	for i, c := range []*rig.Call{ // each part changed alone is another intent
		r.Call("charge", `{"amount":1,"customer":"a"}`).Key("run-a", 4, "toolu_1"),
		r.Call("charge", `{"amount":1,"customer":"b"}`).Key("run-a", 3, "toolu_2"),
		r.Call("charge", `{"amount":1,"customer":"c"}`).Key("run-b", 3, "toolu_1"),
		r.From(rig.Agent("other", 99), "charge", `{"amount":1,"customer":"d"}`).Key("run-a", 3, "toolu_1"),
	} {
		if a := c.Do(); a.Attached || a.Action.ID == first.Action.ID || r.Effects() != i+2 {
			t.Errorf("call %d: attached %v, effects %d", i, a.Attached, r.Effects())
		}
	}
}

// FP-17, IK-18: the same key with other arguments is refused by name, nothing leaves and nothing changes; with the same
// arguments it is the same answer.
func TestSameKeyWithOtherArgumentsIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	first := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	before := r.Stored(first.Action.ID)
	bytes := r.BytesToProvider()
	for _, c := range []*rig.Call{
		r.Call("charge", `{"amount":701,"customer":"cus_7"}`).Key("run", 1, "a"),
		r.Call("charge", `{"amount":700,"customer":"cus_7","memo":"x"}`).Key("run", 1, "a"),
		r.Call("send_email", unknownMail).Key("run", 1, "a"),
	} {
		a, err := c.Try()
		known, ok := err.(*action.Error)
		if !ok || known.Code != action.CodeKeyReused {
			t.Errorf("got %v and state %q, want %s", err, a.Action.State, action.CodeKeyReused)
		}
	}
	if r.BytesToProvider() != bytes || r.Requests() != 1 || r.Effects() != 1 || len(r.Actions()) != 1 {
		t.Errorf("requests %d, effects %d, actions %d after refusals", r.Requests(), r.Effects(), len(r.Actions()))
	}
	if after := r.Stored(first.Action.ID); after.State != before.State || !after.UpdatedAt.Equal(before.UpdatedAt) {
		t.Errorf("the action moved from %s to %s", before.State, after.State)
	}
	if n := strings.Count(r.Export(), `"code":"IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_ARGS"`); n != 3 {
		t.Errorf("%d refusals in the journal, want 3", n)
	}
	again := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	if string(again.Result) != string(first.Result) || again.EffectMode != action.Replay || r.Requests() != 1 {
		t.Errorf("the same call again: %s, effect mode %s, requests %d", again.Result, again.EffectMode, r.Requests())
	}
}

// IK-10: the operation key goes to the target as metadata too, and finds the effect after the answer was lost.
func TestEffectIsFoundByItsKeyAtTheTarget(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: unknownQueryable})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	a := r.Call("pay_invoice", `{"amount":5}`).Key("run", 1, "toolu_1").Do()
	if a.Action.State != action.Completed || a.Action.Attempt != 1 || r.Requests() != 2 {
		t.Fatalf("state %s, attempts %d, requests %d; want completed by one attempt and a look-up", a.Action.State, a.Action.Attempt, r.Requests())
	}
	sum := sha256.Sum256([]byte(string(a.Action.Run) + ":1:toolu_1"))
	resp, err := http.Get(r.URL + "/v1/charges?" + url.Values{"metadata[idem_key]": {hex.EncodeToString(sum[:])}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	found, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(found), r.Provider.Effects()[0].ID) {
		t.Errorf("the look-up gives %s, %v; want the charge %s", found, err, r.Provider.Effects()[0].ID)
	}
}

// IK-14: a contract whose results would be gone while calls still attach to them does not load.
func TestResultsAreKeptLongerThanCallsAttach(t *testing.T) {
	t.Parallel()
	for keep, loads := range map[string]bool{"10m": false, "15m": false, "16m": true} {
		text := strings.NewReplacer("PROXY", "https://api.example", "TIMEOUT", "5s", "private: [127.0.0.0/8]\n", "\n",
			"keep_result: 30d", "keep_result: "+keep).Replace(keysRelease)
		if _, err := contract.Parse("test.yaml", []byte(text)); (err == nil) != loads {
			t.Errorf("keep_result %s with attach_for 15m loads: %v (%v), want %v", keep, err == nil, err, loads)
		}
	}
}

// IK-16: the caller's key is optional; deed's own is not: every action has one, and every send to a target that takes
// keys carries one.
func TestCallWithoutAKeyGetsOneOfDeeds(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", keysCharge).Do()
	b := r.Call("send_email", unknownMail).Do()
	if got := r.Tokens(); !slices.Equal(got, []string{string(a.Action.ID)}) {
		t.Errorf("keys at the target %v, want %s at the one that takes them", got, a.Action.ID)
	}
	seen := map[string]bool{}
	for _, e := range r.Events() {
		if e.Kind() != "intent.logged" {
			continue
		}
		key := e.Text("intent.idem_key")
		if len(key) != 64 || seen[key] || e.Text("intent.key_source") != "deed" {
			t.Errorf("key %q from %q", key, e.Text("intent.key_source"))
		}
		seen[key] = true
	}
	if len(seen) != 2 || a.Action.ID == b.Action.ID {
		t.Errorf("%d keys on record, want 2", len(seen))
	}
}

// IK-21: an error that the target stored and gives again under the key is no new try: the action goes to a person and is
// not sent a third time.
func TestStoredErrorOfTheTargetIsNotLoopedOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
	}{{"500", 500}, {"504", 504}, {"202", 202}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			r.Break(provider.Fault{Kind: provider.CommitThenStatus, Status: c.status, Times: 1})
			a := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
			for range 3 {
				r.Call("charge", keysCharge).Key("run", 1, "a").Do()
			}
			r.Restart("")
			r.Call("charge", keysCharge).Key("run", 1, "a").Do()
			s := r.Stored(a.Action.ID)
			if s.State != action.Unknown || s.Recovery != action.ReviewRequired {
				t.Errorf("state %s, recovery %s (%s); want unknown and a review", s.State, s.Recovery, s.Reason)
			}
			if r.Requests() != 2 || r.Effects() != 1 {
				t.Errorf("requests %d, effects %d; want 2 and 1", r.Requests(), r.Effects())
			}
		})
	}
}

// case 025: a proxy that delivers each request twice makes one effect at a target that honours the key, and one attempt
// on record.
func TestRequestThatAProxyRepeatsHasOneEffect(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Twice, Delay: 50 * time.Millisecond})
	a := r.Call("charge", keysCharge).Do()
	if a.Action.State != action.Completed || a.Action.Attempt != 1 || len(r.AttemptsOf(a.Action.ID)) != 1 {
		t.Errorf("state %s, attempts %d", a.Action.State, a.Action.Attempt)
	}
	if got := r.Tokens(); r.Effects() != 1 || len(got) != 2 || got[0] != got[1] || got[0] != string(a.Action.ID) {
		t.Errorf("effects %d, keys %v", r.Effects(), got)
	}
}

// case 041: keys of any accepted length count as a whole: two that differ in their last byte are two.
func TestLongKeysAreNotCut(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	long := strings.Repeat("k", 299)
	a := r.Call("charge", `{"amount":1,"customer":"a"}`).Key("run", 1, long+"1").Do()
	b := r.Call("charge", `{"amount":1,"customer":"b"}`).Key("run", 1, long+"2").Do()
	if a.Action.ID == b.Action.ID || r.Effects() != 2 {
		t.Errorf("two keys gave %s and %s, effects %d", a.Action.ID, b.Action.ID, r.Effects())
	}
	again := r.Call("charge", `{"amount":1,"customer":"a"}`).Key("run", 1, long+"1").Do()
	if again.Action.ID != a.Action.ID || r.Effects() != 2 {
		t.Errorf("the first key again gave %s, effects %d", again.Action.ID, r.Effects())
	}
	// One that no record could hold is refused or kept whole, and harms nobody else.
	huge, err := r.Call("charge", `{"amount":2,"customer":"c"}`).Key("run", 1, strings.Repeat("k", 64<<10)).Try()
	if err == nil && (huge.Attached || r.Effects() != 3) || err != nil && r.Effects() != 2 {
		t.Errorf("a key of 64 KiB: %v, attached %v, effects %d", err, huge.Attached, r.Effects())
	}
	effects := r.Effects()
	if a := r.Call("charge", `{"amount":3,"customer":"d"}`).Do(); a.Action.State != action.Completed || r.Effects() != effects+1 {
		t.Errorf("after it: state %s, effects %d", a.Action.State, r.Effects())
	}
}
