package eventlog

import (
	"slices"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

func normalObserved(ev action.Event) (action.Event, error) {
	o := *ev.ObservedBody
	ev.ObservedBody = &o
	switch {
	case ev.Kind != action.ReconcileStarted && ev.Kind != action.ActionObserved:
		return ev, invalid(ev, "carries an observation")
	case o.ID == "" || o.Number <= 0 || o.Kind == "":
		return ev, invalid(ev, "has an observation without an id, a number or a kind")
	case ev.Kind == action.ReconcileStarted && (o.Finding != "" || o.Evidence != ""):
		return ev, invalid(ev, "knows the answer before it asks")
	}
	if err := agree(ev, "action", &ev.Action, &o.Action); err != nil {
		return ev, err
	}
	o.Started, o.Ended, o.NotBefore = Micro(o.Started), Micro(o.Ended), Micro(o.NotBefore)
	if o.Started.IsZero() {
		o.Started = ev.Time
	}
	return ev, nil
}

func normalDelegated(ev action.Event) (action.Event, error) {
	d := *ev.DelegatedBody
	ev.DelegatedBody = &d
	switch {
	case ev.Kind != action.ActionDelegated:
		return ev, invalid(ev, "carries a job")
	case ev.Action == "" || d.Job == "":
		return ev, invalid(ev, "names no action or no job")
	}
	d.NotBefore = Micro(d.NotBefore)
	if d.Ended != nil {
		ended, err := normalAttempt(ev, *d.Ended)
		if err != nil {
			return ev, err
		}
		if ev.Attempt == "" {
			ev.Attempt = ended.ID
		}
		d.Ended = &ended
	}
	return ev, nil
}

func normalPurged(ev action.Event) (action.Event, error) {
	p := *ev.PurgedBody
	ev.PurgedBody = &p
	p.Kept = p.Kept.Truncate(time.Microsecond)
	if ev.Kind != action.ActionPurged || ev.Action == "" {
		return ev, invalid(ev, "carries an erasure, or names no action")
	}
	return ev, nil
}

// normalRead refuses a reading that says nothing of who, what or why: that is all it is for.
func normalRead(ev action.Event) (action.Event, error) {
	r := *ev.ReadBody
	ev.ReadBody = &r
	r.Kinds = slices.Clone(r.Kinds)
	switch {
	case ev.Kind != action.ContentReadKind || ev.Action == "":
		return ev, invalid(ev, "carries a reading, or names no action")
	case len(r.Kinds) == 0 || slices.Contains(r.Kinds, "") || strings.TrimSpace(r.Why) == "":
		return ev, invalid(ev, "does not say what was read, or why")
	}
	return ev, splits(ev, r.Reader)
}
