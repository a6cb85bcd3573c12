package eventlog

import (
	"time"

	"deed.dev/deed/internal/action"
)

func normalAccepted(ev action.Event) (action.Event, error) {
	a := *ev.AcceptedBody
	ev.AcceptedBody = &a
	if ev.Kind != action.ActionAccepted {
		return ev, invalid(ev, "carries a new action")
	}
	if err := agree(ev, "action", &ev.Action, &a.ID); err != nil {
		return ev, err
	}
	if err := agree(ev, "intent", &ev.Intent, &a.Intent); err != nil {
		return ev, err
	}
	if err := agree(ev, "run", &ev.Run, &a.Run); err != nil {
		return ev, err
	}
	if a.Trace != (action.Trace{}) && a.Trace != ev.Trace {
		return ev, invalid(ev, "names two traces")
	}
	if err := splits(ev, a.Actor); err != nil {
		return ev, err
	}
	if err := fresh(ev, a); err != nil {
		return ev, err
	}
	a.Trace = ev.Trace
	a.State, a.Delivery = action.Accepted, action.DeliveryNone
	a.KeyLife, a.AttachFor = a.KeyLife.Truncate(time.Microsecond), a.AttachFor.Truncate(time.Microsecond)
	a.ReviewAfter, a.KeepResult = a.ReviewAfter.Truncate(time.Microsecond), a.KeepResult.Truncate(time.Microsecond)
	if len(a.Target.Private) == 0 {
		a.Target.Private = nil
	}
	a.AcceptedAt, a.UpdatedAt = ev.Time, ev.Time
	if ev.Request != nil { // an empty list is not written, and read back as none
		q := *ev.Request
		if len(q.HeaderNames) == 0 {
			q.HeaderNames = nil
		}
		if len(q.Steps) == 0 {
			q.Steps = nil
		}
		ev.Request = &q
	}
	return ev, resolved(ev, a)
}

// fresh refuses an action that claims to have lived already: what is not in the body of an accepted event would be lost.
func fresh(ev action.Event, a action.Action) error {
	switch {
	case a.State != "" && a.State != action.Accepted:
		return invalid(ev, "starts in the state %s", a.State)
	case a.Delivery != "" && a.Delivery != action.DeliveryNone:
		return invalid(ev, "starts with the delivery %s", a.Delivery)
	case a.FailureClass != "" || a.RejectReason != "" || a.Recovery != "" || a.Doubted || a.Reason != "":
		return invalid(ev, "starts with a reason")
	case a.Attempt != 0 || a.TargetStatus != 0 || a.Result != "" || a.RepeatToken != "":
		return invalid(ev, "starts with an attempt or a result")
	case a.Owner != "" || a.Epoch != 0 || a.Job != "" || a.Observations != 0 || a.Finding != "" || a.Hinted || a.Abandoned || a.Withdrawn || a.Purged:
		return invalid(ev, "starts with an owner or with something learned")
	case a.Binding != (action.Binding{}) || a.Approval != "":
		return invalid(ev, "starts with a decision")
	case !a.NotBefore.IsZero() || !a.ResendBefore.IsZero() || !a.AuthorizedAt.IsZero() || !a.DispatchedAt.IsZero() || !a.UnknownAt.IsZero() || !a.FinishedAt.IsZero():
		return invalid(ev, "starts with a time of a later state")
	}
	return nil
}

// resolved refuses an event about an action whose place is not known exactly.
func resolved(ev action.Event, a action.Action) error {
	if a.Target.Host == "" || a.Target.Port <= 0 || a.Target.Scheme == "" {
		return invalid(ev, "without the resolved host, port and protocol of %s", a.ID)
	}
	return nil
}

func normalMove(ev action.Event) (action.Event, error) {
	m := *ev.MoveBody
	ev.MoveBody = &m
	if ev.Action == "" {
		return ev, invalid(ev, "names no action")
	}
	if want := kindOf(m.Transition); ev.Kind != want {
		return ev, invalid(ev, "carries %s, which is recorded as %s", m.Transition, want)
	}
	m.ResendBefore, m.NotBefore = Micro(m.ResendBefore), Micro(m.NotBefore)
	if m.Binding != nil {
		binding := *m.Binding
		binding.Until = Micro(binding.Until)
		m.Binding = &binding
	}
	if m.Approval != "" && m.Transition.To() != action.AwaitingApproval {
		return ev, invalid(ev, "waits for a person by %s", m.Transition)
	}
	if m.Started != nil {
		if m.Transition != action.T11 && m.Transition != action.T18 {
			return ev, invalid(ev, "starts an attempt by %s", m.Transition)
		}
		started, err := normalAttempt(ev, *m.Started)
		if err != nil {
			return ev, err
		}
		if started.State == "" {
			started.State = action.AttemptPrepared
		}
		if started.Started.IsZero() {
			started.Started = ev.Time
		}
		if ev.Attempt == "" {
			ev.Attempt = started.ID
		}
		m.Started = &started
	}
	if m.Ended != nil {
		ended, err := normalAttempt(ev, *m.Ended)
		if err != nil {
			return ev, err
		}
		if ev.Attempt == "" {
			ev.Attempt = ended.ID
		}
		m.Ended = &ended
	}
	if m.Result != nil && m.Result.ID == "" {
		return ev, invalid(ev, "has a result without an id")
	}
	if m.Review != nil && m.Review.Decision.Transition() != m.Transition {
		return ev, invalid(ev, "carries the decision %q for %s", m.Review.Decision, m.Transition)
	}
	return ev, nil
}

// kindOf is the kind of event that records a transition: the state reached, but for T19, which reaches none.
func kindOf(t action.Transition) action.EventKind {
	if t == action.T19 {
		return action.ActionRecovered
	}
	return action.MovedTo(t.To())
}

func normalAttempt(ev action.Event, a action.Attempt) (action.Attempt, error) {
	if a.ID == "" {
		return a, invalid(ev, "has an attempt without an id")
	}
	id := ev.Action
	if err := agree(ev, "action", &id, &a.Action); err != nil {
		return a, err
	}
	a.Started, a.Ended = Micro(a.Started), Micro(a.Ended)
	return a, nil
}

func normalDelivery(ev action.Event) (action.Event, error) {
	d := *ev.DeliveryBody
	ev.DeliveryBody = &d
	switch {
	case ev.Kind != action.ActionDelivery:
		return ev, invalid(ev, "carries a delivery")
	case ev.Action == "":
		return ev, invalid(ev, "names no action")
	}
	return ev, nil
}
