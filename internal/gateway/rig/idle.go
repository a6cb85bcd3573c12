package rig

import "context"

// Idle waits until the gateway works on nothing more. It is closed then: Restart opens another one.
func (r *Rig) Idle() {
	r.T.Helper()
	r.must(r.Gateway.Close(context.Background()))
}

// CrashWith is Crash with something that happens while no gateway runs.
func (r *Rig) CrashWith(between func()) {
	r.T.Helper()
	r.Abandon()
	between()
	r.Start()
}
