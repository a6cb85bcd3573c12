package graph

import (
	"fmt"
	"strings"

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
			allowed = decided(*v) + approvedBy(h, *v)
			a.cite(m, binding(*v))
		case action.T4, action.T8, action.T9:
			a.cite(m, "a person is asked")
		case action.T5, action.T7, action.T10:
			a.cite(m, string(v.RejectReason))
		case action.T11:
			a.cite(m, fmt.Sprintf("attempt %d", v.Started.Number))
		}
	}
	for _, rec := range h.asked {
		a.cite(rec, said(rec.Event))
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

// approvedBy names the approvers whose signatures allowed a move, and what a signature of theirs shows. (AP-21)
func approvedBy(h *history, v action.Moved) string {
	if v.Binding == nil || v.Binding.Kind != action.ByPerson {
		return ""
	}
	var names []string
	for _, rec := range h.asked {
		if d := rec.Event.DecidedBody; d != nil && d.Approval == v.Binding.Decision && d.Decision == action.Approve {
			names = append(names, fmt.Sprintf("%s, %s", d.Approver, d.Strength))
		}
	}
	if len(names) == 0 { // it was about the whole run, and stands with the action that made deed ask
		return ""
	}
	return ": " + strings.Join(names, "; ")
}

// said is an event about a request in a few words.
func said(ev action.Event) string {
	switch {
	case ev.ApprovalBody != nil:
		return "request " + string(ev.ApprovalBody.ID)
	case ev.DecidedBody != nil:
		return fmt.Sprintf("%s by %s (%s)", ev.DecidedBody.Decision, ev.DecidedBody.Approver, ev.DecidedBody.Strength)
	case ev.VoidedBody != nil:
		return "void: " + ev.VoidedBody.Why
	default:
		return "revoked by " + ev.RevokedBody.By
	}
}

func binding(v action.Moved) string {
	if v.Binding == nil {
		return ""
	}
	return string(v.Binding.Decision)
}
