package eventlog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
	"pgregory.net/rapid"
)

// TestEventsSurviveTheJournal draws events of every kind with every field set at random. The generator walks the types,
// so a new field that nobody encodes fails here.
func TestEventsSurviveTheJournal(t *testing.T) {
	for kind, draw := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ev, err := eventlog.Normal(draw(t))
				if err != nil {
					t.Fatalf("the generator made a bad event: %v", err)
				}
				body := sealed(t, ev)
				got, err := eventlog.Decode(body)
				if err != nil {
					t.Fatalf("decode %s: %v", body, err)
				}
				if a := ev.AcceptedBody; a != nil { // the tool stands in the intent only
					if strings.Contains(string(body), a.Tool) {
						t.Fatalf("an action's event names the tool %s: %s", a.Tool, body)
					}
					a.Tool = ""
				}
				if !reflect.DeepEqual(got.Event, ev) {
					t.Fatalf("got  %s\nwant %s\nfrom %s", show(got.Event), show(ev), body)
				}
				if again := sealed(t, got.Event); string(again) != string(body) {
					t.Fatalf("encoded again: %s\nwant %s", again, body)
				}
			})
		})
	}
}

func sealed(t *rapid.T, ev action.Event) []byte {
	fields, err := eventlog.Body(ev, about, after)
	if err != nil {
		t.Fatalf("encode %s: %v", show(ev), err)
	}
	fields["prev"], fields["seq"], fields["v"] = journal.Hash{}, 7, journal.Version
	body, err := journal.Encode(fields)
	if err != nil {
		t.Fatalf("encode %s: %v", show(ev), err)
	}
	return body
}

const after = "00000000000000000000000000000000000000000000000000000000000000ff"

var about = action.Action{ID: "act_1", Actor: "token:ci", Channel: "http", Method: "POST", Template: "/v1/x",
	Target: action.Target{Scheme: "https", Host: "deploy.example", Port: 443}, Credential: "c"}

// kinds draws an event of each kind.
var kinds = func() map[action.EventKind]func(*rapid.T) action.Event {
	all := map[action.EventKind]func(*rapid.T) action.Event{
		action.RunStarted: func(t *rapid.T) action.Event {
			ev := drawn(t, action.RunStarted)
			ev.RunBody = fill(t, "run", new(action.Run))
			ev.RunBody.ID = ev.Run
			return ev
		},
		action.IntentLogged: func(t *rapid.T) action.Event {
			ev := drawn(t, action.IntentLogged)
			ev.IntentBody = fill(t, "intent", new(action.Intent))
			ev.IntentBody.ID, ev.IntentBody.Run = ev.Intent, ev.Run
			return ev
		},
		action.ActionAccepted: drawAccepted,
		action.ActionDelivery: func(t *rapid.T) action.Event {
			ev := drawn(t, action.ActionDelivery)
			ev.DeliveryBody = fill(t, "delivery", new(action.DeliveryMoved))
			return ev
		},
	}
	for _, kind := range []action.EventKind{action.CallAccepted, action.CallAttached, action.CallHeld, action.CallRefused} {
		all[kind] = func(t *rapid.T) action.Event {
			ev := drawn(t, kind)
			ev.CallBody = fill(t, "call", new(action.CallSeen))
			ev.CallBody.Actor, ev.CallBody.Verdict = "token:ci", ""
			return ev
		}
	}
	for _, kind := range []action.EventKind{action.ReconcileStarted, action.ActionObserved} {
		all[kind] = func(t *rapid.T) action.Event {
			ev := drawn(t, kind)
			ev.ObservedBody = fill(t, "observed", new(action.Observed))
			ev.ObservedBody.Action = ev.Action
			if kind == action.ReconcileStarted {
				ev.ObservedBody.Finding, ev.ObservedBody.Evidence = "", ""
			}
			return ev
		}
	}
	all[action.ActionPurged] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ActionPurged)
		ev.PurgedBody = fill(t, "purged", new(action.Purged))
		return ev
	}
	all[action.ContentReadKind] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ContentReadKind)
		ev.ReadBody = fill(t, "read", new(action.ContentRead))
		ev.ReadBody.Reader, ev.ReadBody.Why = "process:uid=0", "because "+ev.ReadBody.Why
		ev.ReadBody.Kinds = append(slices.DeleteFunc(ev.ReadBody.Kinds, func(k string) bool { return k == "" }), "answer")
		return ev
	}
	all[action.ApprovalRequested] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ApprovalRequested)
		p := fill(t, "approval", new(action.Approval))
		p.Action, p.Run, p.Why, p.Decisions = ev.Action, ev.Run, "", nil
		p.Rule = rapid.SampledFrom([]string{action.AsksEachUse, action.AsksRun}).Draw(t, "rule")
		ev.ApprovalBody = p
		return ev
	}
	all[action.ApprovalDecided] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ApprovalDecided)
		ev.DecidedBody = fill(t, "decided", new(action.Decided))
		ev.DecidedBody.Action = ev.Action
		return ev
	}
	all[action.ApprovalVoided] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ApprovalVoided)
		ev.VoidedBody = fill(t, "voided", new(action.Voided))
		ev.VoidedBody.Action = ev.Action
		return ev
	}
	all[action.RunRevoked] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.RunRevoked)
		ev.RevokedBody, ev.Action = fill(t, "revoked", new(action.Revocation)), ""
		return ev
	}
	all[action.ActionWithdrawn] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ActionWithdrawn)
		ev.RevokedBody = fill(t, "revoked", new(action.Revocation))
		return ev
	}
	all[action.ActionDelegated] = func(t *rapid.T) action.Event {
		ev := drawn(t, action.ActionDelegated)
		ev.DelegatedBody = fill(t, "delegated", new(action.Delegated))
		ev.DelegatedBody.Ended.Action = ev.Action
		return ev
	}
	for _, m := range action.Moves {
		if m.Name != action.T1 {
			all[action.EventKind(m.Name)] = func(t *rapid.T) action.Event { return drawMove(t, m.Name) }
		}
	}
	return all
}()

func drawn(t *rapid.T, kind action.EventKind) action.Event {
	var ev action.Event
	fillValue(t, "event", reflect.ValueOf(&ev).Elem())
	ev.Kind = kind
	ev.RunBody, ev.CallBody, ev.IntentBody, ev.AcceptedBody, ev.MoveBody, ev.DeliveryBody = nil, nil, nil, nil, nil, nil
	ev.ObservedBody, ev.DelegatedBody, ev.PurgedBody, ev.ReadBody = nil, nil, nil, nil
	ev.ApprovalBody, ev.DecidedBody, ev.VoidedBody, ev.RevokedBody = nil, nil, nil, nil
	if kind != action.ActionAccepted {
		ev.Request = nil
	}
	return ev
}

func drawAccepted(t *rapid.T) action.Event {
	ev := drawn(t, action.ActionAccepted)
	a := fill(t, "action", new(action.Action))
	a.ID, a.Intent, a.Run, a.Trace = ev.Action, ev.Intent, ev.Run, ev.Trace
	a.Actor = "token:" + a.Actor
	a.State, a.Delivery = action.Accepted, action.DeliveryNone
	a.FailureClass, a.RejectReason, a.Recovery, a.Doubted, a.Reason = "", "", "", false, ""
	a.Attempt, a.TargetStatus, a.Result, a.RepeatToken, a.Binding = 0, 0, "", "", action.Binding{}
	a.NotBefore, a.ResendBefore, a.AuthorizedAt, a.DispatchedAt, a.FinishedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	a.Approval, a.Owner, a.Epoch, a.Job, a.Observations, a.Finding, a.Hinted, a.Abandoned, a.Withdrawn, a.Purged, a.UnknownAt = "", "", 0, "", 0, "", false, false, false, false, time.Time{}
	ev.AcceptedBody = a
	return ev
}

func drawMove(t *rapid.T, name action.Transition) action.Event {
	ev := drawn(t, action.MovedTo(name.To()))
	if name == action.T19 {
		ev.Kind = action.ActionRecovered
	}
	m := fill(t, "move", new(action.Moved))
	m.Transition = name
	if name == action.T11 || name == action.T18 {
		m.Started.Action = ev.Action
	} else {
		m.Started = nil
	}
	m.Ended.Action = ev.Action
	ev.MoveBody = m
	if name.To() != action.AwaitingApproval {
		m.Approval = ""
	}
	m.Review.Decision = ""
	for _, d := range action.ReviewDecisions {
		if d.Transition() == name {
			m.Review.Decision = d
		}
	}
	if rapid.Bool().Draw(t, "bare") {
		m.Binding, m.Ended, m.Result, m.Revocation = nil, nil, nil, nil
	}
	if m.Review.Decision == "" || rapid.Bool().Draw(t, "by itself") {
		m.Review = nil
	}
	return ev
}

func fill[T any](t *rapid.T, name string, v *T) *T {
	fillValue(t, name, reflect.ValueOf(v).Elem())
	return v
}

// fillValue sets everything below v, pointers included.
func fillValue(t *rapid.T, name string, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		micros := rapid.Int64Range(0, 4e15).Draw(t, name)
		v.Set(reflect.ValueOf(time.UnixMicro(micros).UTC()))
		return
	case time.Duration:
		v.SetInt(1000 * rapid.Int64Range(0, 1<<50).Draw(t, name))
		return
	case action.Certainty:
		v.SetString(string(rapid.SampledFrom([]action.Certainty{"", action.EffectProven, action.NoEffectProven}).Draw(t, name)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, name, v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, name))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 3).Draw(t, name), 3))
		for i := range v.Len() {
			fillValue(t, name, v.Index(i))
		}
	case reflect.String: // not empty, unlike any member name, and with all that JSON escapes
		v.SetString("⟨" + name + "⟩" + rapid.StringOf(rapid.RuneFrom([]rune("aß\"\\\n\x00\u2028🙂<&"))).Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, 1<<31-1).Draw(t, name))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		t.Fatalf("no generator for %s of type %s", name, v.Type())
	}
}
