// Package storetest is the suite that every store passes. It speaks to a store through its contract only, and reads what
// came of it from the journal, as a stranger would.
//
// It also makes the material that tests of a store need: runs, claims and moves, by a Kit.
package storetest
