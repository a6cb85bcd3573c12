package graph

import (
	"fmt"

	"deed.dev/deed/internal/action"
)

// delivered answers the fourth question: what is known of the answer's way back. It never speaks of the effect.
func delivered(h *history) answer {
	var a answer
	failed, why := false, ""
	for _, d := range h.deliveries {
		v := d.Event.DeliveryBody
		a.cite(d, string(v.To)+because(v.Why))
		if v.To == action.DeliveryInterrupted && !failed {
			failed, why = true, because(v.Why)
		}
	}
	for _, l := range h.left {
		a.cite(l, l.Event.CallBody.Why)
	}
	if m := h.move(); m != nil {
		a.cite(*m, m.Event.MoveBody.Reason)
	} else {
		a.cite(*h.accepted, "")
	}
	switch state := h.state(); state {
	case action.Completed:
		a.say(arrival(h.delivery(), failed, why))
	case action.Failed, action.Rejected:
		a.say(fmt.Sprintf("It did not complete (%s), so there was no result to deliver.", state))
	default:
		a.say(fmt.Sprintf("It has not completed as far as the journal goes (%s), so there was no result to deliver.", state))
	}
	if len(h.left) > 0 {
		a.say(fmt.Sprintf("Before the answer, %s went away or cancelled, which is a wish and changed nothing.", count(len(h.left), "caller")))
	}
	return a
}

// arrival says what the deliveries prove of a completed action's result. failed says that it did not arrive at first.
func arrival(d action.Delivery, failed bool, why string) string {
	first := ""
	if failed {
		first = fmt.Sprintf("At first, yes: the result did not reach the caller%s. ", why)
	}
	switch {
	case d == action.Delivered:
		return first + "No failure is left: the result arrived, which the caller has shown."
	case d == action.DeliveryInterrupted:
		return fmt.Sprintf("Yes. It completed, and its result did not reach the caller%s.", why)
	case d == action.DeliveryUnconfirmed:
		return first + "The result was handed over, and the transport cannot prove that it arrived."
	default:
		return "Not on record: nothing says that the result arrived, and nothing says that it did not."
	}
}
