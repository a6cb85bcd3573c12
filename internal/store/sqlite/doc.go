// Package sqlite keeps deed's records in one SQLite file, without cgo: the journal, the rows made from it and the
// protected payloads.
//
//	Commit ─┐                ┌────────── one transaction ──────────┐
//	Commit ─┼─▶ queue ─▶ committer: change, change, change … commit ─▶ wake everybody
//	Later  ─┘   bounded      └── each in its own savepoint ── one sync ┘
//
// One goroutine writes, over one connection. Readers use other connections that cannot write. A change sees all that was
// written before it, appends events, and leaves rows and journal records together or no trace at all.
//
// The directory belongs to one process, by a file lock. A write or sync that fails latches the store: what is on the disk
// is then uncertain, so nothing is written until the store is opened again and its journal checked.
//
// The package decides nothing about actions. Legal moves come from package action, and the tables refuse all others once
// more, so that neither a bug nor a hand-written statement can make an illegal one.
package sqlite
