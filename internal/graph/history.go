package graph

import (
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store/eventlog"
)

// record is a journal body, decoded.
type record = eventlog.Record

// history is what the journal says of one action, sorted by what it says it about. Each list is in journal order.
type history struct {
	id         action.ID
	accepted   *record  // opened it; nil when the journal read does not hold it
	calls      []record // the one that opened it, and those that attached to it or were held by it
	left       []record // callers that cancelled or went away
	moves      []record
	asked      []record // requests to people, what they said, and what was taken back
	deliveries []record
	learned    []record // what was asked of the target, and learned of it, apart from attempts
	attempts   []attempt
}

// attempt is one send: what was planned, and what came of it.
type attempt struct {
	action.Attempt
	planned record
	ended   *record // nil while it runs, or when its end was never recorded
}

// add takes the next event about the action.
func (h *history) add(rec record) {
	switch ev := rec.Event; {
	case ev.AcceptedBody != nil:
		h.accepted = &rec
	case ev.Kind == action.CallLeft:
		h.left = append(h.left, rec)
	case ev.CallBody != nil:
		h.calls = append(h.calls, rec)
	case ev.ApprovalBody != nil, ev.DecidedBody != nil, ev.VoidedBody != nil, ev.RevokedBody != nil:
		h.asked = append(h.asked, rec)
	case ev.DeliveryBody != nil:
		h.deliveries = append(h.deliveries, rec)
	case ev.ObservedBody != nil:
		h.learned = append(h.learned, rec)
	case ev.DelegatedBody != nil:
		h.learned = append(h.learned, rec)
		h.end(ev.DelegatedBody.Ended, rec)
	case ev.MoveBody != nil:
		h.moves = append(h.moves, rec)
		h.end(ev.MoveBody.Ended, rec)
		if s := ev.MoveBody.Started; s != nil {
			h.attempts = append(h.attempts, attempt{Attempt: *s, planned: rec})
		}
	}
}

// end notes the end of an attempt. An attempt that was ended twice keeps what was said last: a late answer says more.
func (h *history) end(t *action.Attempt, rec record) {
	if t == nil {
		return
	}
	for i := range h.attempts {
		if h.attempts[i].Number == t.Number {
			h.attempts[i].Attempt, h.attempts[i].ended = *t, &rec
		}
	}
}

// all are the events of the action that say which intent and which runs it has to do with.
func (h *history) all() (list []record) {
	if h.accepted != nil {
		list = append(list, *h.accepted)
	}
	return append(list, h.calls...)
}

// body is the action as it was accepted.
func (h *history) body() action.Action { return *h.accepted.Event.AcceptedBody }

// state is what is known of the effect after the last event.
func (h *history) state() action.State {
	if len(h.moves) == 0 {
		return action.Accepted
	}
	return h.moves[len(h.moves)-1].Event.MoveBody.Transition.To()
}

// delivery is what is known of the answer's arrival after the last event.
func (h *history) delivery() action.Delivery {
	switch {
	case len(h.deliveries) > 0:
		return h.deliveries[len(h.deliveries)-1].Event.DeliveryBody.To
	case slices.ContainsFunc(h.moves, func(m record) bool { return m.Event.MoveBody.Transition.To().Final() }):
		return action.DeliveryPending
	default:
		return action.DeliveryNone
	}
}

// move is the last event that moved the action to its state; nil for an action that was only accepted.
func (h *history) move() *record {
	if len(h.moves) == 0 {
		return nil
	}
	return &h.moves[len(h.moves)-1]
}

// reason is the newest one that was recorded.
func (h *history) reason() string {
	if m := h.move(); m != nil {
		return m.Event.MoveBody.Reason
	}
	return ""
}

// reviews are the decisions that a person took about it.
func (h *history) reviews() (list []record) {
	for _, m := range h.moves {
		if m.Event.MoveBody.Review != nil {
			list = append(list, m)
		}
	}
	return list
}

// kind are the calls with a verdict: attached, held.
func (h *history) kind(k action.EventKind) (list []record) {
	for _, c := range h.calls {
		if c.Event.Kind == k {
			list = append(list, c)
		}
	}
	return list
}

// runs are those of the action and of its calls, each once, in the order in which they came.
func (h *history) runs() (list []action.RunID) {
	for _, rec := range h.all() {
		if run := rec.Event.Run; run != "" && !slices.Contains(list, run) {
			list = append(list, run)
		}
	}
	return list
}

// sends counts the attempts of which something may have left for the target.
func (h *history) sends() (n int) {
	for _, t := range h.attempts {
		if t.State != action.AttemptNotSent {
			n++
		}
	}
	return n
}
