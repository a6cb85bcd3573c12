// Package httpexec performs one attempt of one HTTP operation: exactly one request on the wire, whatever happens.
//
// Nothing here sends a second time. HTTP/1.1 is written and read by this package itself on a connection that carries one
// request at a time; HTTP/2 goes through http.ClientConn, which is one connection and never resends. http.Transport is
// not used for requests: it repeats a request by itself when a kept connection dies and the request has an idempotency
// header, and it prints bytes that a server sent unasked to the process's log.
//
// # What is counted
//
// BytesSent is the number of bytes that the operating system took for this request on its TCP connection. Under TLS that
// includes the framing of TLS, and on HTTP/2 control frames that left meanwhile; the handshakes before the request do not
// count. Zero proves that the target saw nothing of the request. Any other number proves nothing about what the target
// did: without a full answer the outcome is indeterminate.
//
// # Late answers
//
// An attempt that times out is over for its caller, and the answer may still be on its way. Where the whole request is out
// and the dispatch has a Late, the same connection is read for a bounded further time, and an answer that comes whole is
// judged like any other. Nothing is sent meanwhile, and the connection is closed afterwards.
//
// # What it refuses
//
// The package refuses, with zero bytes, a dispatch that is not fully identified and authorized, a target that resolves to
// an address which the contract does not allow, a credential that is not bound to the target, and a request that would
// not go out as it was written down. There is no proxy, neither from the environment nor by option: a proxy would decide
// by itself where a name leads. It knows no database, no policy and no contract language.
package httpexec
