// Package provider is a payment provider for demonstrations and tests: a real
// HTTP server with a ledger of its own, which says afterwards what happened.
//
// It stands on the far side of the network. It knows nothing of deed: it does
// not import it, reads none of its records, and judges a request only by what
// is in the request. So its ledger can bear witness against the gateway.
//
//	request ──► logged ──► fault? ──► key known? ──► ledger row, fsync ──► answer
//	                         │            └──► stored answer again
//	                         └──► reset, hang, refuse, drop, redirect …
//
// A request that has an effect adds one row to the ledger file, and the row is
// on disk before a byte of the answer leaves. Idempotency keys are not stored
// apart: the rows are the memory of the keys, so both survive a restart alike.
//
// Work that is asked for at /v1/jobs/charges is answered 202 and done later;
// its effect is a row like any other.
//
// [Switches] make the provider misbehave on purpose. They are set in Go by
// [Server.Set] and from another process by PUT /_control/switches. Nothing
// under /_control/ is protected, so listen on loopback only.
package provider
