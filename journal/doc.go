// Package journal is the record format of deed's journal, deed-journal-json/1:
// making records, and verifying them without trust in whoever made them.
//
//	record   <hash> SP <body> LF         hash = hex(SHA-256(0x00 || body))
//
//	         ┌─────────────────┐   ┌─────────────────┐   ┌─────────────────┐
//	hash  ◀──│ "prev":000…000  │◀──│ "prev":<hash 0> │◀──│ "prev":<hash 1> │
//	         │ "seq":0  opened │   │ "seq":1         │   │ "seq":2         │
//	         └────────┬────────┘   └────────┬────────┘   └────────┬────────┘
//	                leaf 0                leaf 1                leaf 2     RFC 6962 tree
//
// One hash serves two structures: the next record names it, and it is the leaf of a
// Merkle tree, whose root stands for all records up to there.
//
// A body is one JSON object in a narrow profile with exactly one spelling:
//
//   - UTF-8 without byte order mark; no white space; at most 65,535 bytes; at most
//     16 objects and arrays inside each other.
//   - Member names match [a-z][a-z0-9_]* and strictly ascend, so none repeats.
//   - prev (64 lower-case hex digits), seq (the number of the record, from 0) and v
//     (the version, 1) are members of every body, and of nothing inside it.
//   - Text has the escapes of RFC 8785 and no others, and is never normalised.
//   - Numbers are integers within ±(2^53−1), without exponent and without -0.
//   - A member named time, or whose name ends in _at, is text like
//     2026-10-05T10:09:57.123456Z: UTC, six decimals, years 0001 to 9999.
//   - What is absent is left out; null does not exist. Empty text, empty lists,
//     false and 0 are values.
//   - Bytes that are not text are base64 under a name ending in _b64. This is for
//     writers; a reader checks only that the value is in the profile.
//
// Bodies are hashed and stored as they are and never written anew. Vectors are in
// docs/vectors/journal.json and docs/vectors/audit.json.
//
// A checkpoint is origin, size and root of a journal, signed: a C2SP signed note. Kept
// where the writer cannot change it, it shows what the chain alone does not, which is a
// cut at the end and a history written anew. Audit holds an export against any number
// of them; a receipt proves one action to somebody who has the checkpoint and no more.
//
// The package refuses to know what an event means: actions, states and payloads are
// members like any other. Of events it knows the first one, and the member after, by
// which an event names the one before it of the same action. It keeps no files, reads
// no clock, and never repairs what it verifies. It needs golang.org/x/mod, for notes
// and trees, and otherwise nothing but the standard library.
package journal
