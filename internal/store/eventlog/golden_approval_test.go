package eventlog_test

import (
	"bytes"
	"time"

	"deed.dev/deed/internal/action"
)

// approvals adds the events of what people decide. (AP-07: each names the action and its trace)
func approvals(a action.Action, add func(string, action.EventKind, func(*action.Event))) {
	const id, nonce = "apr_0123456789abcdefghjkmnpqrs", "n_0123456789abcdefghjkmnpqrs"
	expires := goldenTime.Add(15 * time.Minute).Truncate(time.Microsecond)
	add("approval.requested", action.ApprovalRequested, func(ev *action.Event) {
		ev.ApprovalBody = &action.Approval{ID: id, Rule: action.AsksEachUse, Binding: "sha256:b", Nonce: nonce, Expires: expires, Needed: 2, NotRequester: true}
	})
	add("approval.requested.run", action.ApprovalRequested, func(ev *action.Event) {
		ev.ApprovalBody = &action.Approval{ID: id, Rule: action.AsksRun, Binding: "sha256:r", Nonce: nonce, Expires: expires, Needed: 1}
	})
	decided := func(d action.ApprovalDecision, strength action.ApprovalStrength, signed action.Signed) func(*action.Event) {
		return func(ev *action.Event) {
			ev.DecidedBody = &action.Decided{Approval: id, Binding: "sha256:b", Nonce: nonce, Expires: expires, Decision: d, Approver: "ada",
				Strength: strength, Signed: signed, Via: "process:uid=1000 exe=/usr/bin/deed"}
		}
	}
	add("approval.decided", action.ApprovalDecided, decided(action.Approve, action.ByKeyFile,
		action.Signed{Key: bytes.Repeat([]byte{7}, 32), Signature: bytes.Repeat([]byte{8}, 64)}))
	add("approval.decided.passkey", action.ApprovalDecided, decided(action.Deny, action.ByPasskey,
		action.Signed{Key: []byte{1, 2}, Signature: []byte{3}, AuthenticatorData: []byte{4, 5}, ClientData: []byte("{}")}))
	add("approval.void", action.ApprovalVoided, func(ev *action.Event) { ev.VoidedBody = &action.Voided{Approval: id, Why: "revoked"} })
	add("run.revoked", action.RunRevoked, func(ev *action.Event) {
		ev.Intent, ev.Action, ev.Trace = "", "", action.Trace{}
		ev.RevokedBody = revocation(string(a.Run))
	})
	add("action.revoked", action.ActionWithdrawn, func(ev *action.Event) { ev.RevokedBody = revocation(string(a.Run)) })
	add("action.rejected.revoked", action.MovedTo(action.Rejected), func(ev *action.Event) {
		ev.MoveBody = &action.Moved{Transition: action.T10, RejectReason: action.Revoked, Reason: "revoked", Revocation: revocation(string(a.ID))}
	})
	add("action.awaiting_approval.request", action.MovedTo(action.AwaitingApproval), func(ev *action.Event) {
		ev.MoveBody = &action.Moved{Transition: action.T4, Reason: action.AsksEachUse, Approval: id}
	})
	add("action.authorized.person", action.MovedTo(action.Authorized), func(ev *action.Event) {
		ev.MoveBody = &action.Moved{Transition: action.T6, Binding: &action.Binding{Decision: id, Kind: action.ByPerson,
			Rule: action.AsksEachUse, Digest: "sha256:b", Until: expires}}
	})
}

func revocation(what string) *action.Revocation {
	return &action.Revocation{ID: "apr_0123456789abcdefghjkmnpqrt", By: "process:uid=0 exe=/usr/bin/deed", Strength: action.StrengthPeerPIDFD,
		What: what, Why: "the wrong customer"}
}
