package eventlog

import (
	"encoding/base64"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// approvalMembers name the approval after the action's run, which the event names already.
func approvalMembers(p action.Approval) members {
	m := members{
		"approval_id":    string(p.ID),
		"rule":           p.Rule,
		"binding_digest": p.Binding,
		"nonce":          p.Nonce,
		"expires_at":     journal.FormatTime(p.Expires),
		"needed":         int64(p.Needed),
	}
	putTrue(m, "not_requester", p.NotRequester)
	return m
}

// decidedMembers repeat all that was signed: the members of the statement have the names that they have there.
func decidedMembers(d action.Decided) members {
	m := members{
		"approval_id": string(d.Approval),
		"decision":    string(d.Decision),
		"approver":    d.Approver,
		"nonce":       d.Nonce,
	}
	put(m, "binding_digest", d.Binding)
	putTime(m, "expires_at", d.Expires)
	put(m, "approval_strength", d.Strength)
	put(m, "via", d.Via)
	putBytes(m, "key", d.Signed.Key)
	putBytes(m, "signature", d.Signed.Signature)
	putBytes(m, "authenticator_data", d.Signed.AuthenticatorData)
	putBytes(m, "client_data", d.Signed.ClientData)
	return m
}

func putBytes(m members, name string, b []byte) {
	if len(b) > 0 {
		m[name] = base64.RawURLEncoding.EncodeToString(b)
	}
}

func revocationMembers(r action.Revocation) members {
	m := members{"decision_id": string(r.ID)}
	put(m, "by", r.By)
	put(m, "strength", r.Strength)
	put(m, "what", r.What)
	put(m, "why", r.Why)
	return m
}
