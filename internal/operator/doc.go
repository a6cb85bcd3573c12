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
// The package shows arguments and bodies in one place alone, a request for approval, since nobody should approve what they
// have not seen; what others chose of it is neutralised for whoever prints it. It decides nothing about an action: the
// gateway does.
package operator
