package eventlog

import (
	"fmt"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// InvalidError says why an event cannot be recorded. It means a bug in the code that made the event.
type InvalidError struct {
	Kind   action.EventKind
	Reason string
}

func (e *InvalidError) Error() string { return fmt.Sprintf("event %s: %s", e.Kind, e.Reason) }

func invalid(ev action.Event, format string, args ...any) error {
	return &InvalidError{Kind: ev.Kind, Reason: fmt.Sprintf(format, args...)}
}

// Normal gives the event as the journal will give it back: times in UTC and cut to microseconds, and facts that stand in
// two places made equal. An event that contradicts itself is refused. What ev points to is copied, never changed.
func Normal(ev action.Event) (action.Event, error) {
	if ev.ID == "" || ev.Time.IsZero() {
		return ev, invalid(ev, "without an id or a time")
	}
	if n := bodies(ev); n != 1 {
		return ev, invalid(ev, "has %d bodies, not one", n)
	}
	if ev.Request != nil && ev.AcceptedBody == nil {
		return ev, invalid(ev, "describes a request, which only a new action does")
	}
	ev.Time = Micro(ev.Time)
	switch {
	case ev.RunBody != nil:
		return normalRun(ev)
	case ev.CallBody != nil:
		return normalCall(ev)
	case ev.IntentBody != nil:
		return normalIntent(ev)
	case ev.AcceptedBody != nil:
		return normalAccepted(ev)
	case ev.MoveBody != nil:
		return normalMove(ev)
	case ev.ObservedBody != nil:
		return normalObserved(ev)
	case ev.DelegatedBody != nil:
		return normalDelegated(ev)
	case ev.PurgedBody != nil:
		return normalPurged(ev)
	case ev.ReadBody != nil:
		return normalRead(ev)
	case ev.ApprovalBody != nil:
		return normalApproval(ev)
	case ev.DecidedBody != nil:
		return normalDecided(ev)
	case ev.VoidedBody != nil:
		return normalVoided(ev)
	case ev.RevokedBody != nil:
		return normalRevoked(ev)
	default:
		return normalDelivery(ev)
	}
}

// Micro cuts a time to what the journal keeps. The zero time stays the zero time.
func Micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

func bodies(ev action.Event) (n int) {
	for _, set := range []bool{ev.RunBody != nil, ev.CallBody != nil, ev.IntentBody != nil,
		ev.AcceptedBody != nil, ev.MoveBody != nil, ev.DeliveryBody != nil, ev.ObservedBody != nil, ev.DelegatedBody != nil, ev.PurgedBody != nil,
		ev.ReadBody != nil, ev.ApprovalBody != nil, ev.DecidedBody != nil, ev.VoidedBody != nil, ev.RevokedBody != nil} {
		if set {
			n++
		}
	}
	return n
}

// agree makes two places of one fact equal when one is empty, and refuses them when they differ.
func agree[T ~string](ev action.Event, what string, a, b *T) error {
	switch {
	case *a == "":
		*a = *b
	case *b == "":
		*b = *a
	case *a != *b:
		return invalid(ev, "names two %ss, %s and %s", what, *a, *b)
	}
	if *a == "" {
		return invalid(ev, "names no %s", what)
	}
	return nil
}

func normalRun(ev action.Event) (action.Event, error) {
	run := *ev.RunBody
	ev.RunBody = &run
	if err := agree(ev, "run", &ev.Run, &run.ID); err != nil {
		return ev, err
	}
	if ev.Kind != action.RunStarted {
		return ev, invalid(ev, "carries the start of a run")
	}
	if err := splits(ev, run.Actor.String()); err != nil {
		return ev, err
	}
	if run.Started.IsZero() {
		run.Started = ev.Time
	}
	run.Started = Micro(run.Started)
	return ev, nil
}

// verdicts says which verdict each kind of call event records.
var verdicts = map[action.EventKind]action.VerdictKind{
	action.CallAccepted: action.Open,
	action.CallAttached: action.Attach,
	action.CallHeld:     action.Hold,
	action.CallRefused:  action.Refuse,
	action.CallLeft:     action.Refuse, // the caller's wish; the call's own verdict stands in an earlier event
}

func normalCall(ev action.Event) (action.Event, error) {
	seen := *ev.CallBody
	ev.CallBody = &seen
	verdict, ok := verdicts[ev.Kind]
	switch {
	case !ok:
		return ev, invalid(ev, "carries a call")
	case ev.Call == "":
		return ev, invalid(ev, "names no call")
	case seen.Verdict == "":
		seen.Verdict = verdict
	case seen.Verdict != verdict:
		return ev, invalid(ev, "has the verdict %q", seen.Verdict)
	}
	if seen.Actor == "" {
		return ev, nil
	}
	return ev, splits(ev, seen.Actor)
}

func normalIntent(ev action.Event) (action.Event, error) {
	intent := *ev.IntentBody
	ev.IntentBody = &intent
	if ev.Kind != action.IntentLogged {
		return ev, invalid(ev, "carries an intent")
	}
	if err := agree(ev, "intent", &ev.Intent, &intent.ID); err != nil {
		return ev, err
	}
	if err := agree(ev, "run", &ev.Run, &intent.Run); err != nil {
		return ev, err
	}
	if intent.IdemKey == "" || intent.Tool == "" {
		return ev, invalid(ev, "names no idem_key or no tool")
	}
	if intent.At.IsZero() {
		intent.At = ev.Time
	}
	intent.At = Micro(intent.At)
	return ev, nil
}

// splits makes sure that an actor can be told apart into kind and identity, and put together again.
func splits(ev action.Event, actor string) error {
	if kind, _, ok := strings.Cut(actor, ":"); !ok || kind == "" {
		return invalid(ev, "the actor %q is not kind:identity", actor)
	}
	return nil
}
