package action

import (
	"fmt"
	"time"
)

// Apply gives the action as it stands after the event, or refuses the event. It is the only way in which an action
// changes: the store calls it when an event is appended, and again when rows are rebuilt from the journal.
func (a Action) Apply(ev Event) (Action, error) {
	switch {
	case ev.MoveBody != nil:
		return a.move(ev)
	case ev.DeliveryBody != nil:
		return a.deliver(ev)
	case ev.ObservedBody != nil:
		return a.observe(ev)
	case ev.DelegatedBody != nil:
		return a.delegate(ev)
	case ev.PurgedBody != nil:
		return a.purge(ev)
	case ev.ApprovalBody != nil:
		return a.ask(ev)
	case ev.RevokedBody != nil:
		return a.withdraw(ev)
	case ev.DecidedBody != nil, ev.VoidedBody != nil:
		return a.answered(ev)
	default:
		return a, fmt.Errorf("%s does not change an action", ev.Kind)
	}
}

func (a Action) move(ev Event) (Action, error) {
	m := ev.MoveBody
	from := a.State
	if m.Review != nil {
		a.reviewed(*m.Review)
	}
	if err := a.Check(m.Transition); err != nil {
		return a, err
	}
	if m.FromAttempt != a.Attempt || m.FromEpoch != a.Epoch {
		return a, &IllegalMoveError{Action: a.ID, Transition: m.Transition, State: a.State}
	}
	if (m.Transition == T11 || m.Transition == T18) && (m.Started == nil || m.Started.Number != a.Attempt+1) {
		return a, fmt.Errorf("%s of %s plans no attempt number %d", m.Transition, a.ID, a.Attempt+1)
	}
	if m.Transition == T6 && a.Approval != "" && (m.Binding == nil || m.Binding.Kind != ByPerson || m.Binding.Decision != a.Approval) {
		return a, fmt.Errorf("%s waits for what a person says to %s, and that is not it", a.ID, a.Approval)
	}
	a.State = m.Transition.To()
	a.Reason, a.FailureClass, a.RejectReason, a.Recovery = m.Reason, m.FailureClass, m.RejectReason, m.Recovery
	switch a.State {
	case Unknown:
		a.Doubted = a.Class != ReadOnly && !a.Abandoned
	case Completed, Failed:
		a.Doubted = false
	}
	if m.Owner != "" {
		a.Owner, a.Epoch = m.Owner, a.Epoch+1
	}
	if m.ResendOver {
		a.ResendBefore = time.Time{}
	}
	a.NotBefore, a.UpdatedAt = m.NotBefore, ev.Time
	if m.Binding != nil {
		a.Binding = *m.Binding
	}
	if m.Approval != "" {
		a.Approval = m.Approval
	}
	if m.Started != nil {
		a.Attempt, a.Finding, a.Hinted = m.Started.Number, "", false // what was learned, was learned about earlier attempts
		if a.DispatchedAt.IsZero() {
			a.DispatchedAt, a.ResendBefore = ev.Time, m.ResendBefore
		}
	}
	if m.Ended != nil && m.Ended.Status != 0 {
		a.TargetStatus = m.Ended.Status
	}
	if m.Result != nil { // a move without a result keeps an earlier one
		a.Result, a.RepeatToken = m.Result.ID, m.Result.RepeatToken
	}
	if a.State == Unknown && from != Unknown {
		a.UnknownAt = ev.Time
	}
	a.stamp(ev.Time)
	return a, nil
}

// stamp sets the time of the state just reached, and opens the delivery of an answer that is ready.
func (a *Action) stamp(t time.Time) {
	switch a.State {
	case Authorized:
		a.AuthorizedAt, a.FinishedAt = t, time.Time{}
	case Completed, Failed, Rejected:
		a.FinishedAt = t
		if a.Delivery == DeliveryNone {
			a.Delivery = DeliveryPending
		}
	}
}

func (a Action) deliver(ev Event) (Action, error) {
	d := ev.DeliveryBody
	if a.Delivery != d.From || !d.From.CanBecome(d.To) {
		return a, fmt.Errorf("delivery of %s is %s and cannot go from %s to %s", a.ID, a.Delivery, d.From, d.To)
	}
	a.Delivery, a.UpdatedAt = d.To, ev.Time
	return a, nil
}
