// Package approval says what a person decides about one action, and proves afterwards that this person decided it.
//
//	statement ──Digest──▶ 32 bytes ──▶ passkey or key file ──▶ Signed ──Policy.Check──▶ who, and how strong
//
// A statement names one decision about one action with exactly one binding. Approve and deny are different statements, so
// a signed deny can never be shown as an approval. What is signed does not depend on where it was shown or by which
// program, and a stranger checks it with the policy file alone.
//
// The package refuses to know how an action lives, where a decision is kept, and what a page looks like. It decides
// nothing: whether a decision still counts when something is about to be sent is for the line to say.
package approval
