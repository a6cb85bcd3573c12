package eventlog

import (
	"deed.dev/deed/internal/action"
)

func normalApproval(ev action.Event) (action.Event, error) {
	p := *ev.ApprovalBody
	ev.ApprovalBody = &p
	if ev.Kind != action.ApprovalRequested {
		return ev, invalid(ev, "carries a request for approval")
	}
	if err := agree(ev, "action", &ev.Action, &p.Action); err != nil {
		return ev, err
	}
	if err := agree(ev, "run", &ev.Run, &p.Run); err != nil {
		return ev, err
	}
	p.State, p.Requested, p.Updated, p.Expires = action.ApprovalOpen, ev.Time, ev.Time, Micro(p.Expires)
	switch {
	case len(p.Decisions) > 0 || p.Why != "":
		return ev, invalid(ev, "asks for what is decided")
	case p.Check() != nil:
		return ev, invalid(ev, "%s", p.Check())
	}
	p.Decisions = nil
	return ev, nil
}

func normalDecided(ev action.Event) (action.Event, error) {
	d := *ev.DecidedBody
	ev.DecidedBody = &d
	if ev.Kind != action.ApprovalDecided {
		return ev, invalid(ev, "carries an approver's decision")
	}
	if err := agree(ev, "action", &ev.Action, &d.Action); err != nil {
		return ev, err
	}
	if d.Approval == "" || d.Approver == "" || d.Decision == "" || len(d.Signed.Signature) == 0 {
		return ev, invalid(ev, "is a decision without a request, an approver, a word or a signature")
	}
	d.At, d.Expires = ev.Time, Micro(d.Expires)
	for _, b := range []*[]byte{&d.Signed.Key, &d.Signed.AuthenticatorData, &d.Signed.ClientData} { // empty is not written
		if len(*b) == 0 {
			*b = nil
		}
	}
	return ev, nil
}

func normalVoided(ev action.Event) (action.Event, error) {
	v := *ev.VoidedBody
	ev.VoidedBody = &v
	if ev.Kind != action.ApprovalVoided || v.Approval == "" || v.Why == "" {
		return ev, invalid(ev, "carries the end of a request, or does not say of which and why")
	}
	return ev, agree(ev, "action", &ev.Action, &v.Action)
}

func normalRevoked(ev action.Event) (action.Event, error) {
	r := *ev.RevokedBody
	ev.RevokedBody = &r
	switch {
	case r.ID == "":
		return ev, invalid(ev, "is a revocation without an id")
	case ev.Kind == action.RunRevoked && ev.Run != "" && ev.Action == "":
	case ev.Kind == action.ActionWithdrawn && ev.Action != "":
	default:
		return ev, invalid(ev, "carries a revocation, or does not say of what")
	}
	return ev, nil
}
