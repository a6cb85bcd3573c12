package graph

import (
	"fmt"

	"deed.dev/deed/internal/action"
)

// dispatched answers the second question: was the action allowed, and was it handed to an executor.
func dispatched(h *history) answer {
	var a answer
	allowed := "" // how, if it was
	for _, m := range h.moves {
		v := m.Event.MoveBody
		switch v.Transition {
		case action.T3, action.T6:
			allowed = decided(*v)
			a.cite(m, binding(*v))
		case action.T4, action.T8, action.T9:
			a.cite(m, "a person is asked")
		case action.T5, action.T7, action.T10:
			a.cite(m, string(v.RejectReason))
		case action.T11:
			a.cite(m, fmt.Sprintf("attempt %d", v.Started.Number))
		}
	}
	switch n := len(h.attempts); {
	case n > 0 && allowed == "": // the record that allowed it was not read
		a.say("It was dispatched; what allowed it stands in another part of the journal.")
	case n > 0:
		a.say(fmt.Sprintf("Yes, both. %s; attempt 1 was on record before its first byte could leave.", allowed))
	case h.state() == action.Rejected:
		a.say(fmt.Sprintf("No. It was rejected (%s), and nothing was sent.", h.move().Event.MoveBody.RejectReason))
	case h.state() == action.AwaitingApproval:
		a.say("Neither yet. It waits for a person, and nothing was sent.")
	case allowed != "":
		a.say(fmt.Sprintf("Authorization only. %s; no attempt was planned, so nothing was sent.", allowed))
	default:
		a.say("Neither. It was accepted, and nothing more is on record.")
	}
	if len(a.events) == 0 {
		a.cite(*h.accepted, "")
	}
	return a
}

// decided says who allowed it.
func decided(v action.Moved) string {
	who := "The policy"
	if v.Transition == action.T6 || v.Binding != nil && v.Binding.Kind == "person" {
		who = "A person"
	}
	if v.Binding == nil || v.Binding.Rule == "" {
		return who + " allowed it"
	}
	return fmt.Sprintf("%s allowed it (rule %s)", who, v.Binding.Rule)
}

func binding(v action.Moved) string {
	if v.Binding == nil {
		return ""
	}
	return string(v.Binding.Decision)
}
