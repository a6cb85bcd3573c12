// Package identity says who is calling, and how well that was proved.
//
//	Unix socket ──kernel──▶ process ──is it deed mcp?──▶ its parent ─┐
//	stdio ─────────────────────────────────────────────▶ the parent ─┼─▶ action.Actor
//	HTTP ──bearer token──▶ SHA-256 ──▶ a name that an operator gave ─┘
//
// What a client says of itself is never part of an actor: not clientInfo, not argv, not a process name. Beside the actor
// stand two things that a caller may say and that count only inside what was proved: the durable key of a call, and the
// trace that the call belongs to.
//
// What the kernel can prove has a limit. It names the process and its executable. It does not say that the executable is
// in charge of itself: a user may trace or preload into a program of their own, so processes of one user are kept apart
// from accidents, not from malice. An interpreter is named as the interpreter, not as the script that it runs.
//
// The package refuses to know what an actor may do, which contracts exist, and what is stored about anyone: no rules, no
// contracts, no database. The one file that it owns holds the digests of tokens.
package identity
