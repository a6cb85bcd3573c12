// Package chaos is a TCP proxy that counts bytes and breaks connections at a
// chosen byte. It stands between a client and a target in tests.
//
//	client ──── FromClient ──► proxy ──── Sent ────► target
//	       ◄─── Received ─────       ◄── FromTarget ─
//
// It forwards bytes and does not know what they mean, except in the mode
// [Twice], which has to see where an HTTP request ends. It knows nothing of
// the programs at either end.
package chaos
