// Package vault keeps credentials and opens them one at a time, for one target, in the moment of use.
//
// A credential is known everywhere else by its reference. This form reads values from the environment or from files that
// only their owner may read; the list of credentials itself never holds one. A value leaves the package in two ways: as a
// header or query parameter of a request that is about to be sent, and as the word [secret] where it was found.
//
// The package does not know actions, policies or who is asking.
package vault
