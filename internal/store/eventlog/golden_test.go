package eventlog_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
)

var update = flag.Bool("update", false, "rewrite the golden bodies of this version")

// TestGoldenBodies holds the bytes of one event of each kind. They are what others read, and what later versions must
// still read: a file is added for a new version, and none is changed. (EX-25)
func TestGoldenBodies(t *testing.T) {
	for name, ev := range goldenEvents() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "v1", name+".json")
			ev, err := eventlog.Normal(ev)
			if err != nil {
				t.Fatal(err)
			}
			fields, err := eventlog.Body(ev, goldenAction(), strings.Repeat("ab", 32))
			if err != nil {
				t.Fatal(err)
			}
			fields["prev"], fields["seq"], fields["v"] = journal.Hash{1}, 92840, journal.Version
			got, err := journal.Encode(fields)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			read, err := eventlog.Decode(want)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if ev.AcceptedBody != nil {
				ev.AcceptedBody.Tool = ""
			}
			if !reflect.DeepEqual(read.Event, ev) || read.Seq != 92840 {
				t.Errorf("decoded record %d\n%s\nwant\n%s", read.Seq, show(read.Event), show(ev))
			}
			if strings.HasPrefix(string(ev.Kind), "action.") && read.After != strings.Repeat("ab", 32) {
				t.Errorf("after is %q", read.After)
			}
		})
	}
}

// TestActionEventsNeverNameTheTool reads the golden bodies as a stranger would.
func TestActionEventsNeverNameTheTool(t *testing.T) {
	files, err := filepath.Glob("testdata/v*/action.*.json")
	if err != nil || len(files) < len(action.Moves) {
		t.Fatalf("%d golden bodies of actions, %v", len(files), err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, banned := range []string{"deploy_release", "arguments", `"tool"`} {
			if strings.Contains(string(body), banned) {
				t.Errorf("%s contains %s", f, banned)
			}
		}
		for _, needed := range []string{`"host":"deploy.example"`, `"port":443`, `"protocol":"https"`, `"edge_type":"external_action"`} {
			if !strings.Contains(string(body), needed) {
				t.Errorf("%s lacks %s", f, needed)
			}
		}
	}
}

// TestUnknownRecordsAreNoEvents: what rows are not made from is told apart from what cannot be read.
func TestUnknownRecordsAreNoEvents(t *testing.T) {
	_, err := eventlog.Decode([]byte(`{"event":"journal.opened","seq":0}`))
	if !errors.Is(err, eventlog.ErrNoEvent) {
		t.Errorf("record 0: %v", err)
	}
	for _, body := range []string{``, `{`, `[]`, `{"event":"run.started"}`, `{"event":"run.started","surprise":1}`,
		`{"event":"action.completed","event_id":"evt_1","time":"2026-10-05T10:00:00.001371Z","action":{"transition":"T11"}}`,
		`{"event":"action.accepted","event_id":"evt_1","time":"2026-10-05T10:00:00.001371Z","action":{}}`,
		`{"event":"run.started","event_id":"evt_1","time":"yesterday","run":{}}`} {
		if _, err := eventlog.Decode([]byte(body)); err == nil || errors.Is(err, eventlog.ErrNoEvent) {
			t.Errorf("decode %s: %v", body, err)
		}
	}
}

var goldenTime = time.Date(2026, 10, 5, 10, 9, 57, 123456789, time.UTC)

func goldenAction() action.Action {
	return action.Action{
		ID: "act_0123456789abcdefghjkmnpqrs", Intent: "int_0123456789abcdefghjkmnpqrs", Run: "run_0123456789abcdefghjkmnpqrs",
		Actor: "process:uid=1000 exe=/usr/bin/agent", Tool: "deploy_release", Class: action.RepeatableWithKey,
		Contract: "sha256:c1", MaxAttempts: 5, KeyLife: 23 * time.Hour, AttachFor: 15 * time.Minute, Channel: "http",
		Target: action.Target{Scheme: "https", Host: "deploy.example", Port: 443, Private: []string{"10.0.0.0/8"}},
		Method: "POST", Template: "/v1/services/{service}/releases", Credential: "deploy-service",
		Digests:   action.Digests{KeyID: "k1", Fingerprint: "hmac-sha256:f", Effect: "hmac-sha256:e", Args: "hmac-sha256:a", Resource: "hmac-sha256:r"},
		Operation: "sha256-salted:00", Repeats: "act_0000000000000000000000000a", Similar: "act_0000000000000000000000000b",
	}
}

func goldenEvents() map[string]action.Event {
	a := goldenAction()
	base := action.Event{ID: "evt_0123456789abcdefghjkmnpqrs", Time: goldenTime, Run: a.Run, Intent: a.Intent, Action: a.ID,
		Trace: action.Trace{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", ParentSpanID: "b7ad6b7169203331"}}
	events := map[string]action.Event{}
	add := func(name string, kind action.EventKind, set func(*action.Event)) {
		ev := base
		ev.Kind = kind
		set(&ev)
		events[name] = ev
	}
	add("run.started", action.RunStarted, func(ev *action.Event) {
		ev.Intent, ev.Action, ev.Trace = "", "", action.Trace{}
		ev.RunBody = &action.Run{ID: a.Run, Key: "hmac-sha256:k", Actor: action.Actor{Kind: "process", Identity: "uid=1000 exe=/usr/bin/agent",
			Strength: action.StrengthPeerPIDFD, Evidence: action.Evidence{PID: 4242, StartTime: 18446744073709551615, BootID: "b",
				Executable: "/usr/bin/agent", Digest: "d", Via: "deed mcp"}}}
	})
	for _, kind := range []action.EventKind{action.CallAccepted, action.CallAttached, action.CallHeld, action.CallRefused} {
		add(string(kind), kind, func(ev *action.Event) {
			ev.Call = "call_0123456789abcdefghjkmnpqrs"
			ev.CallBody = &action.CallSeen{Actor: a.Actor, Strength: action.StrengthPeerPIDFD,
				Protocol: action.Correlation{Transport: "mcp-http", Era: "2025-11-25", RequestID: "41", Session: action.NoSession, Client: "agent/1"},
				Upstream: action.Upstream{Source: action.UpstreamUnverified, Traceparent: "00-…", Tracestate: "x=1"}}
		})
	}
	add("intent.logged", action.IntentLogged, func(ev *action.Event) {
		ev.IntentBody = &action.Intent{Tool: a.Tool, Contract: a.Contract, IdemKey: "5e88", Step: 3, ToolCallID: "toolu_1",
			KeySource: "dev.deed/tool_call_id", Arguments: "sha256-salted:01"}
	})
	add("action.accepted", action.ActionAccepted, func(ev *action.Event) { ev.AcceptedBody = &a })
	add("action.delivery", action.ActionDelivery, func(ev *action.Event) {
		ev.DeliveryBody = &action.DeliveryMoved{From: action.DeliveryPending, To: action.Delivered, Why: "acknowledged"}
	})
	add("action.reconcile_started", action.ReconcileStarted, func(ev *action.Event) {
		ev.ObservedBody = &action.Observed{FromEpoch: 2, Owner: "own_0123456789abcdefghjkmnpqrs", Observation: action.Observation{
			ID: "obs_0123456789abcdefghjkmnpqrs", Number: 3, Kind: action.ByLookup, About: "att_0123456789abcdefghjkmnpqrs", SpanID: "00f067aa0ba902b9"}}
	})
	add("action.observed", action.ActionObserved, func(ev *action.Event) {
		ev.ObservedBody = &action.Observed{FromEpoch: 3, NotBefore: goldenTime.Add(time.Minute), Observation: action.Observation{
			ID: "obs_0123456789abcdefghjkmnpqrs", Number: 3, Kind: action.ByLookup, About: "att_0123456789abcdefghjkmnpqrs",
			Finding: action.Absent, Status: 404, Reason: "not_settled", Remote: "192.0.2.1:443", SpanID: "00f067aa0ba902b9",
			Evidence: "sha256-salted:03", Started: goldenTime, Ended: goldenTime.Add(time.Second)}}
	})
	add("action.observed.stale", action.ActionObserved, func(ev *action.Event) {
		ev.ObservedBody = &action.Observed{FromEpoch: 1, Observation: action.Observation{
			ID: "obs_0123456789abcdefghjkmnpqrs", Number: 1, Kind: action.ByStale, About: "att_0123456789abcdefghjkmnpqrs",
			Certainty: action.EffectProven, Status: 201, Ended: goldenTime}}
	})
	add("action.purged", action.ActionPurged, func(ev *action.Event) { ev.PurgedBody = &action.Purged{Kept: 720 * time.Hour} })
	add("content.read", action.ContentReadKind, func(ev *action.Event) {
		ev.ReadBody = &action.ContentRead{Reader: "process:uid=1000 exe=/usr/bin/deed", Strength: action.StrengthPeerPIDFD,
			Why: "the customer asks what was sent", Kinds: []string{"arguments", "operation", "answer"}}
	})
	add("action.delegated", action.ActionDelegated, func(ev *action.Event) {
		ev.DelegatedBody = &action.Delegated{FromAttempt: 1, FromEpoch: 1, Job: "sha256-salted:04", NotBefore: goldenTime.Add(time.Second),
			Ended: &action.Attempt{ID: "att_0123456789abcdefghjkmnpqrs", Number: 1, State: action.AttemptCompleted, Status: 202, BytesSent: 418,
				Reason: "accepted_by_target", SpanID: "00f067aa0ba902b8", Started: goldenTime, Ended: goldenTime.Add(time.Second)}}
	})
	approvals(a, add)
	for _, d := range action.ReviewDecisions {
		kind := action.MovedTo(d.Transition().To())
		if d == action.Abandon {
			kind = action.ActionRecovered
		}
		add("review."+string(d), kind, func(ev *action.Event) {
			ev.MoveBody = &action.Moved{Transition: d.Transition(), FromAttempt: 1, FromEpoch: 2, Owner: "own_0123456789abcdefghjkmnpqrs",
				Reason: "reviewed", Review: &action.Review{ID: "apr_0123456789abcdefghjkmnpqrs", Decision: d,
					Reviewer: "process:uid=1000 exe=/usr/bin/deed", Strength: action.StrengthPeerPIDFD, Why: "asked the shop",
					Evidence: "order 7 in its books", SeenSeq: 41, SeenHash: "00ff"}}
			switch d.Transition().To() {
			case action.Dispatched:
				ev.MoveBody.Started = &action.Attempt{ID: "att_0123456789abcdefghjkmnpqrs", Number: 2, SpanID: "00f067aa0ba902b8"}
			case action.Failed:
				ev.MoveBody.FailureClass = action.NoEffectConfirmed
			case action.Unknown:
				ev.MoveBody.Recovery = action.ReviewRequired
			}
		})
	}
	for _, m := range action.Moves[1:] {
		kind := action.MovedTo(m.To)
		if m.Name == action.T19 {
			kind = action.ActionRecovered
		}
		add(string(kind)+"."+string(m.Name), kind, func(ev *action.Event) { ev.MoveBody = goldenMove(m) })
	}
	return events
}

func goldenMove(row action.Move) *action.Moved {
	sent := goldenTime.Add(time.Second)
	m := &action.Moved{Transition: row.Name, FromAttempt: 1, Reason: "timeout", NotBefore: sent}
	switch row.To {
	case action.Authorized:
		m.Binding = &action.Binding{Decision: "apr_0123456789abcdefghjkmnpqrs", Kind: "policy", Rule: "run", Digest: "sha256:b"}
	case action.Dispatched:
		m.Started = &action.Attempt{ID: "att_0123456789abcdefghjkmnpqrs", Number: 2, SpanID: "00f067aa0ba902b8", RetryOf: "att_0000000000000000000000000a"}
		m.ResendBefore = sent
	case action.Completed, action.Failed, action.Unknown:
		m.Ended = &action.Attempt{ID: "att_0123456789abcdefghjkmnpqrs", Number: 2, State: action.AttemptTimeout, BytesSent: 418, Status: 202,
			Reason: "timeout", Remote: "192.0.2.1:443", SpanID: "00f067aa0ba902b8", Started: goldenTime, Ended: sent}
		m.FailureClass, m.Recovery = action.NotSent, action.Reconciling
		m.Result = &action.StoredResult{ID: "result_0123456789abcdefghjkmnpqrs", Commitment: "sha256-salted:02", MediaType: "application/json",
			Size: 311, Complete: true, RepeatToken: "6e34"}
	case action.Rejected:
		m.RejectReason = action.Denied
	}
	return m
}
