// Package operator is the door for those who look after deed: HTTP with JSON over a Unix socket of its own. Here unknown
// actions are reviewed, completed ones are undone, and the state of the whole can be read.
//
//	GET  /v1/status                what runs and what is unresolved
//	GET  /v1/review                unknown actions that a person should look at, oldest first
//	GET  /v1/actions/{id}          one action: what is known of it, and what a decision would do
//	POST /v1/actions/{id}/review   record a decision and do what it says
//	POST /v1/actions/{id}/undo     compensate a completed action as its contract says
//	GET  /v1/approvals             requests that wait for a person
//	GET  /v1/approvals/{id}        one request, with the whole operation that is asked about
//	POST /v1/approvals/{id}        bring what an approver has signed: an approval or a denial
//	POST /v1/revoke                take back what was allowed or asked and not sent yet
//	GET  /v1/actions/{id}/receipt  the receipt of an action, for a third party
//	GET  /v1/journal               the journal, byte for byte; ?from= and ?to= name the first and the last record
//	GET  /v1/journal/verify        what an audit of the stored journal finds
//	GET  /v1/journal/checkpoint    a signed checkpoint of it; ?size= names an earlier one
//	GET  /v1/journal/keys          the public keys of its log
//	POST /v1/journal/keys/rotate   let a new key sign from now on
//	POST /v1/actions/{id}/content  show protected content; who reads it and why is recorded first
//	POST /v1/content-key           make a new key for protected content; the older ones stay
//	GET  /v1/vault                 what is in the vault, without a value
//	POST /v1/vault/unlock          open the vault; the body is its passphrase, or empty where the gateway has a key
//	POST /v1/vault/reload          read the vault's file again, in the same way; a locked vault stays locked
//	POST /v1/vault/lock            refuse every use of every credential, at once
//	GET  /metrics                  the figures of the backlog, for Prometheus
//
// It is never the agents' door, and the agents' doors have none of this. Who asks is the process at the other end of the
// socket, as the kernel names it. It has to run as deed's own user or as root.
//
// What that is worth: other users of the machine are kept out. A process of deed's own user is not, and an agent may be
// one. A review records which program opened the door and how well that was verified; it is not signed, so it is no
// proof that a person made it. Run deed as a user of its own where that matters. An approval is signed by the approver's own
// key: whoever brings it through this door proves nothing and needs to prove nothing.
//
// The package shows arguments and bodies to whoever asks for them with a reason, and in a request for approval, since nobody
// should approve what they have not seen; both are recorded first, and what others chose of it is neutralised for whoever
// prints it. It shows no value of the vault to anybody, and keeps no passphrase. It decides nothing about an action: the
// gateway does.
package operator
