// Package probe finds out what a target really does when an idempotency key comes again, and holds it against what the
// contract says.
//
//	first    the arguments, under a fresh key
//	same     the same bytes under the same key    original again? another effect? a refusal?
//	changed  other arguments under the same key   refused? the original? another effect?
//	failing  arguments that the target refuses, twice, under a fresh key of their own (if given)
//
// Each is one request, and all of them may have effects: a probe is for a sandbox. It stops at the first answer from which
// the later ones could show nothing. What is not clear proves nothing: a lost answer, an overloaded target, an answer that
// would look alike for two effects.
//
// The probe is written down before its first request and after its last one. That record is evidence beside the journal: a
// probe is no action of an agent, and the journal's rules about actions do not fit it.
//
// The package knows the contract and an executor, and neither credentials, nor files, nor people.
package probe
