// Package audit is what stands between the journal of a gateway and somebody who wants to verify it: signed checkpoints of
// it, byte-exact exports, receipts of actions, and the files in which all of these are handed over.
//
//	records ──▶ Log ── Head, At ──▶ signed checkpoints     kept beside the key, and handed to whoever asks
//	   │
//	   ├────▶ Export ──────────▶ journal.events + .checkpoint ──▶ Verify ──▶ journal.Audit
//	   └────▶ Receipt ─────────▶ one action, for somebody who has only the public key
//
// Verifying needs none of the rest: it opens files for reading, and there is no function here that repairs one. The package
// knows of actions that their events are linked, and no more.
package audit
