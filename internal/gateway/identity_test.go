package gateway_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

const identityCharge = `{"amount":25000,"customer":"cus_42"}`

// EX-01, ST-04, ST-19, RM-29: when the first byte arrives, another process already reads the action and its planned attempt.
func TestIdentityAndPlanAreDurableBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Hold})
	call := r.Call("charge", identityCharge).Go()
	r.AwaitBytes(1)

	act := r.Only()
	if !action.ValidID(action.Prefix, string(act.ID)) || act.State != action.Dispatched {
		t.Errorf("at the first byte the record is %q in %s, want an action in dispatched", act.ID, act.State)
	}
	events := r.EventsOf(act.ID)
	last := events[len(events)-1]
	if last.Kind() != "action.dispatched" || last.Text("action.channel") != "http" || last.Text("attempt.number") != "1" || last.Text("attempt_id") == "" {
		t.Errorf("at the first byte the journal ends with %v, want the dispatched event of attempt 1 over http", last)
	}
	if n := r.Requests(); n != 0 {
		t.Errorf("the provider saw %d requests while its connection was held", n)
	}
	first := r.Proxy.Connections()[0].FirstByte
	if planned := r.AttemptsOf(act.ID)[0].Started; planned.After(first) {
		t.Errorf("attempt 1 was planned at %s, after its first byte at %s", planned, first)
	}

	r.Cut(chaos.Plan{})
	if got := call.Answer().Action; got.ID != act.ID || got.State != action.Completed || r.Effects() != 1 {
		t.Errorf("%s is %s with %d effects, want %s completed with 1", got.ID, got.State, r.Effects(), act.ID)
	}
}

// EX-02, EX-08: the fingerprint finds the earlier action, and its record decides. Neither alone does.
func TestAnEqualCallAttachesWhileOpenAndIsNewOnceDelivered(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	first := r.Call("charge", identityCharge).Go()
	r.AwaitEffects(1)
	second := r.Call("charge", identityCharge).Go()
	other := r.Call("charge", `{"amount":1,"customer":"cus_7"}`).Do()
	r.Break()
	a, b := first.Answer(), second.Answer()
	if a.Action.ID != b.Action.ID || other.Action.ID == a.Action.ID || r.Effects() != 2 {
		t.Errorf("equal calls have %s and %s, another has %s, %d effects; want two actions and 2 effects", a.Action.ID, b.Action.ID, other.Action.ID, r.Effects())
	}

	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	r.Settled()
	c := r.Call("charge", identityCharge).Do()
	if c.Action.ID == a.Action.ID || c.Attached || r.Effects() != 3 {
		t.Errorf("after delivery an equal call is %s (attached %t) with %d effects, want a new action and 3", c.Action.ID, c.Attached, r.Effects())
	}
	if got := r.Stored(c.Action.ID).Similar; got != a.Action.ID {
		t.Errorf("the new action is similar to %q, want %s", got, a.Action.ID)
	}
}

// EX-03, EX-04: correlation, execution and fingerprint stand apart, and the correlation names the caller and "no session".
func TestThreeIdentifiersStandApart(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	calls := []*rig.Call{
		r.Call("send_email", `{"to":"a"}`).ID("41", action.NoSession),
		r.Call("send_email", `{"to":"a"}`).ID("42", "session-2"),
	}
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a, b := calls[0].Do(), calls[1].Do()
	if a.Action.ID != b.Action.ID || a.Action.Digests != b.Action.Digests {
		t.Fatalf("equal calls are %s and %s", a.Action.ID, b.Action.ID)
	}
	r.From(rig.Agent("other", 12), "send_email", `{"to":"b"}`).ID("41", action.NoSession).Do()

	var seen []string
	for _, e := range r.Events() {
		if strings.HasPrefix(e.Kind(), "call.") {
			seen = append(seen, e.Text("call.request_id")+" "+e.Text("call.session")+" "+e.Text("actor.identity"))
		}
	}
	want := []string{
		"41 no session uid=1000 exe=/usr/bin/agent", "42 session-2 uid=1000 exe=/usr/bin/agent", "41 no session uid=1000 exe=/usr/bin/other",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("correlations are %q, want %q", seen, want)
	}
	accepted := r.EventsOf(a.Action.ID)[1]
	if accepted.Text("digests.fingerprint") == "" || accepted.Text("call") != "" || strings.Contains(accepted.Text("digests.fingerprint"), string(a.Action.ID)) {
		t.Errorf("the accepted event mixes its identifiers: %v", accepted)
	}
}

// EX-05: one JSON-RPC id with two sets of arguments is two actions.
func TestARequestIDNeverMakesADuplicate(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", `{"amount":1,"customer":"cus_1"}`).ID("41", "s").Do()
	b := r.Call("charge", `{"amount":2,"customer":"cus_2"}`).ID("41", "s").Do()
	if a.Action.ID == b.Action.ID || r.Effects() != 2 || a.Action.Attempt != 1 || b.Action.Attempt != 1 {
		t.Errorf("got %s and %s with %d effects, want two actions, each dispatched", a.Action.ID, b.Action.ID, r.Effects())
	}
}

// EX-06, case 042, API-16: two agents that number from 1, and even use the same key, are never merged.
func TestTwoAgentsAreNeverMerged(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]bool{"without a key": false, "with the same key": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			call := func(agent string, pid int) action.Answer {
				c := r.From(rig.Agent(agent, pid), "charge", identityCharge).ID("1", action.NoSession)
				if key {
					c.Key("run-1", 1, "1")
				}
				return c.Do()
			}
			a, b := call("alpha", 10), call("beta", 11)
			if a.Action.ID == b.Action.ID || a.Action.Run == b.Action.Run || b.Attached || b.Held || r.Effects() != 2 {
				t.Errorf("got %s and %s with %d effects, want two actions and 2 effects", a.Action.ID, b.Action.ID, r.Effects())
			}
			for _, part := range []string{string(a.Action.ID), string(a.Action.Result), a.RepeatOf} {
				if strings.Contains(string(b.Result)+b.Sentence(), part) {
					t.Errorf("the other agent was told %s", part)
				}
			}
		})
	}
}

// EX-07, RM-01, RM-08, RM-28: a new id on an equal call of the same run, while the first is unresolved, is a retry.
func TestANewRequestIDOnAnUnresolvedCallIsARetry(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("send_email", `{"to":"a"}`).ID("41", "s").Do()
	b := r.Call("send_email", `{"to":"a"}`).ID("42", "t").Do()
	if a.Action.State != action.Unknown || b.Action.ID != a.Action.ID || !b.Attached || b.Match != action.MatchFingerprint {
		t.Errorf("got %s %s, then %s (attached %t by %q); want the same unknown action, attached by fingerprint", a.Action.ID, a.Action.State, b.Action.ID, b.Attached, b.Match)
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
	}
}

// EX-09: what a client calls its execution is evidence at most.
func TestTheClientNamesNoAction(t *testing.T) {
	t.Parallel()
	const own = "act_0123456789abcdefghjkmnpqrs"
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", identityCharge).Key("run_0123456789abcdefghjkmnpqrs", 0, own).ID(own, own).Do()
	if a.Action.ID == own || !action.ValidID(action.Prefix, string(a.Action.ID)) || a.Action.Run == "run_0123456789abcdefghjkmnpqrs" {
		t.Errorf("the action is %s in %s, want identifiers of the gateway's own", a.Action.ID, a.Action.Run)
	}
	intent, err := r.Reader().Intent(context.Background(), a.Action.Intent)
	if err != nil || intent.ToolCallID != own {
		t.Errorf("the intent holds %q (%v), want the client's name as evidence", intent.ToolCallID, err)
	}
	if got := r.Tokens(); !slices.Equal(got, []string{string(a.Action.ID)}) {
		t.Errorf("the target was given %q, want %s", got, a.Action.ID)
	}
	_, err = r.Call("charge", `{"amount":1,"customer":"c","action_id":"`+own+`"}`).Try()
	if err == nil || r.Effects() != 1 {
		t.Errorf("an action_id among the arguments: %v, %d effects; want a refusal", err, r.Effects())
	}
}

// EX-10
func TestIdentifiersAreUniqueAndOpaque(t *testing.T) {
	t.Parallel()
	const makers, each = 8, 12500
	prefixes := []string{action.RunPrefix, action.IntentPrefix, action.Prefix, action.AttemptPrefix, action.EventPrefix, action.DecisionPrefix, action.ResultPrefix}
	lists := make([][]string, makers)
	var wg sync.WaitGroup
	for i := range lists {
		wg.Go(func() {
			for n := range each {
				lists[i] = append(lists[i], gateway.IdentityNewID(prefixes[n%len(prefixes)]))
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool, makers*each)
	for _, list := range lists {
		for n, id := range list {
			if prefix := prefixes[n%len(prefixes)]; !action.ValidID(prefix, id) {
				t.Fatalf("%q is no identifier with %q", id, prefix)
			}
			_, bare, _ := strings.Cut(id, "_")
			if seen[bare] {
				t.Fatalf("%q was made twice", id)
			}
			seen[bare] = true
		}
	}
	if len(seen) != makers*each {
		t.Errorf("%d identifiers, want %d", len(seen), makers*each)
	}
}

// EX-10: every identifier on record is of its documented kind, and none holds a secret or an argument.
func TestIdentifiersOnRecordAreSafeToShow(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("charge", `{"amount":313373133731337,"customer":"cus_private"}`).Key("run-private", 3, "toolu_private").Do()
	members := map[string]string{
		"root_run_id": action.RunPrefix, "intent_id": action.IntentPrefix, "action_id": action.Prefix, "attempt_id": action.AttemptPrefix,
		"event_id": action.EventPrefix, "call_id": action.CallPrefix, "binding.decision_id": action.DecisionPrefix, "result.result_id": action.ResultPrefix,
	}
	met := map[string]bool{}
	for _, e := range r.Events() {
		for member, prefix := range members {
			id := e.Text(member)
			if id == "" {
				continue
			}
			met[member] = true
			if !action.ValidID(prefix, id) {
				t.Errorf("%s of %s is %q, want the form %s…", member, e.Kind(), id, prefix)
			}
			for _, private := range []string{rig.Secret, "313373133731337", "cus_private", "private"} {
				if strings.Contains(id, private) {
					t.Errorf("%s of %s holds %q", member, e.Kind(), private)
				}
			}
		}
	}
	for member := range members {
		if !met[member] {
			t.Errorf("no event has %s", member)
		}
	}
}

// EX-11, EX-17, EX-18, ST-11, case 001: identity survives a crash, a restart and another session, and the intent names the
// call of the dead process.
func TestIdentitySurvivesACrash(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	r.Call("send_email", `{"to":"a","subject":"s"}`).Key("task-7", 3, "toolu_9").ID("41", "session-1").Go()
	r.AwaitEffects(1)
	before := r.Only()

	r.Crash()
	intent, err := r.Reader().Intent(context.Background(), before.Intent)
	if err != nil || intent.Tool != "send_email" || intent.Step != 3 || intent.ToolCallID != "toolu_9" || intent.Run != before.Run {
		t.Errorf("the intent is %+v (%v), want the tool, run, step and tool-call id of the dead process", intent, err)
	}
	args, err := r.Reader().Payload(context.Background(), store.Arguments, string(intent.ID))
	if err != nil || string(args) != `{"subject":"s","to":"a"}` {
		t.Errorf("the recorded arguments are %s (%v)", args, err)
	}
	after := r.Call("send_email", `{"to":"a","subject":"s"}`).Key("task-7", 3, "toolu_9").ID("1", "session-2").Do()
	if after.Action.ID != before.ID || after.Action.Intent != before.Intent || after.Action.State != action.Unknown {
		t.Errorf("after the crash %s is %s, want %s unknown", after.Action.ID, after.Action.State, before.ID)
	}
	if again := r.Call("send_email", `{"to":"a","subject":"s"}`).Run("task-7").Do(); again.Action.ID != before.ID {
		t.Errorf("without the key an equal call is %s, want %s", again.Action.ID, before.ID)
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
	}
}

// EX-13, EX-14, EX-16, EX-20, ST-23, RM-06: five attempts of one charge are one intent, one action and one effect, under one
// token and one trace, each with a span of its own.
func TestManyAttemptsAreOneActionWithOneEffect(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1}, provider.Fault{Kind: provider.DropAfterRead, Times: 3})
	a := r.Call("charge", identityCharge).Do()
	if a.Action.State != action.Completed || a.Action.Attempt != 5 || r.Effects() != 1 {
		t.Fatalf("%s after %d attempts with %d effects, want completed after 5 with 1", a.Action.State, a.Action.Attempt, r.Effects())
	}
	r.Only()
	want := slices.Repeat([]string{string(a.Action.ID)}, 5)
	if got := r.Tokens(); !slices.Equal(got, want) {
		t.Errorf("the target saw the keys %q, want %s five times", got, a.Action.ID)
	}
	intents, traces, attempts, spans := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range r.EventsOf(a.Action.ID) {
		if e.Kind() == "call.accepted" {
			continue
		}
		intents[e.Text("intent_id")], traces[e.Text("trace_id")] = true, true
		if id := e.Text("attempt_id"); id != "" {
			attempts[id], spans[e.Text("span_id")] = true, true
		}
		if strings.Contains(string(a.Action.ID), e.Text("span_id")) {
			t.Errorf("the action's identifier %s holds the span %s", a.Action.ID, e.Text("span_id"))
		}
	}
	if len(intents) != 1 || len(traces) != 1 || len(attempts) != 5 || len(spans) != 5 {
		t.Errorf("%d intents, %d traces, %d attempts, %d spans on record; want 1, 1, 5, 5", len(intents), len(traces), len(attempts), len(spans))
	}
}

// EX-15: an attempt belongs to one action for ever, and the record lists attempts in order.
func TestAttemptsStayWithTheirAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("charge", identityCharge).Do()
	b := r.Call("send_email", `{"to":"a"}`).Do()
	attempts := r.AttemptsOf(a.Action.ID)
	if len(attempts) != 2 || attempts[0].Number != 1 || attempts[1].Number != 2 || attempts[1].RetryOf != attempts[0].ID {
		t.Fatalf("attempts are %+v, want two in order", attempts)
	}
	r.Stop()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "deed.db")+"?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{
		`delete from attempts where id = ?`,
		`update attempts set action = '` + string(b.Action.ID) + `', number = 9 where id = ?`,
		`update attempts set action = 'act_none' where id = ?`,
		`insert into attempts select 'act_none', 1, ? || 'x', state, certainty, bytes_sent, status, reason, remote, span_id, retry_of, started_at, ended_at from attempts limit 1`,
	} {
		if _, err := db.Exec(s, string(attempts[0].ID)); err == nil {
			t.Errorf("the database allowed %s", s)
		}
	}
}

// EX-16, case 049: what a caller sends as trace context, and its request and session ids, move neither action nor token.
func TestSpansAndUpstreamContextAreNoIdentity(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 5})
	upstream := func(n string) action.Upstream {
		return action.Upstream{Source: action.UpstreamUnverified, Traceparent: "00-" + strings.Repeat(n, 32) + "-" + strings.Repeat(n, 16) + "-01"}
	}
	args := func(ts string) string { return `{"amount":5,"customer":"cus_1","client_ts":"` + ts + `"}` }
	a := r.Call("charge", args("10:00")).Trace(upstream("a")).ID("1", "s1").Do()
	b := r.Call("charge", args("10:01")).Trace(upstream("b")).ID("2", "s2").Do()
	if a.Action.ID != b.Action.ID || r.Effects() != 1 {
		t.Errorf("got %s and %s with %d effects, want one action with 1", a.Action.ID, b.Action.ID, r.Effects())
	}
	for i, token := range r.Tokens() {
		if token != string(a.Action.ID) {
			t.Errorf("request %d carried the key %q, want %s", i+1, token, a.Action.ID)
		}
	}
	for _, trace := range []string{a.Action.Trace.TraceID, b.Action.Trace.TraceID} {
		if trace == strings.Repeat("a", 32) || trace == strings.Repeat("b", 32) {
			t.Errorf("the action took its trace %s from its caller", trace)
		}
	}
	source, err := r.Reader().ContractText(context.Background(), a.Action.Contract)
	if err != nil || !strings.Contains(string(source), `"volatile":["client_ts"]`) {
		t.Errorf("the recorded contract does not list what is volatile (%v)", err)
	}
}

// EX-23: the record of an action answers by itself, whatever became of traces.
func TestTheActionRecordNeedsNoTrace(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", identityCharge).Do().Action.ID
	a := r.Stored(id)
	if a.Target.Address() != r.Proxy.Addr() || a.Credential != "provider" || a.Method != "POST" || a.Template != "/v1/charges" {
		t.Errorf("the record goes to %s %s %s with %q", a.Method, a.Target, a.Template, a.Credential)
	}
	if !action.ValidID(action.DecisionPrefix, string(a.Binding.Decision)) || a.Binding.Digest == "" || a.Binding.Rule == "" {
		t.Errorf("the record's decision is %+v", a.Binding)
	}
	if a.State != action.Completed || a.TargetStatus != 201 || a.Result == "" {
		t.Errorf("the record's outcome is %s %d %q", a.State, a.TargetStatus, a.Result)
	}
}

// EX-24: a call that is refused is recorded as a call, and makes no intent and no action.
func TestACallIsNoAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("get_echo", `{}`).Do()
	if _, err := r.Call("charge", `{"amount":"much"}`).Try(); err == nil {
		t.Error("bad arguments were accepted")
	}
	r.Settled()
	kinds := rig.Kinds(r.Events())
	count := func(kind string) (n int) {
		for _, k := range kinds {
			if k == kind {
				n++
			}
		}
		return n
	}
	if count("call.accepted") != 1 || count("call.refused") != 1 || count("intent.logged") != 1 || count("action.accepted") != 1 {
		t.Errorf("the journal has %q, want one accepted and one refused call, one intent, one action", kinds)
	}
	r.Only()
}

// EX-25: every record says in which version of the format it is written.
func TestRecordsCarryTheirVersion(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("charge", identityCharge).Do()
	for _, e := range r.Events() {
		if e.Text("v") != "1" {
			t.Errorf("the version of %s is %q, want 1", e.Kind(), e.Text("v"))
		}
	}
}
