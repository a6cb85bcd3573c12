// Package canonical gives a JSON document one spelling, named deed-canonical/1,
// so that two documents which say the same have the same bytes and the same digest.
//
//	text ──Parse──▶ tree of Go values ──Marshal──▶ canonical text
//	     └──────────────Canonicalize──────────────┘
//
// The form is RFC 8785 with integers kept exact over the whole 64-bit range, and
// with refusals where RFC 8785 implementations differ: duplicate names, invalid
// UTF-8, lone surrogates, and numbers that a double cannot hold. The rules and
// their reasons are in docs/canonical.md, the vectors in docs/vectors/canonical.json.
//
// The package is pure. It refuses to know what a document means: it fills in no
// defaults, folds no case, normalises no text, and makes no digests.
package canonical
