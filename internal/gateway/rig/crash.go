package rig

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Crash leaves the gateway as a killed process leaves it: what was durable at this moment is all that the next one finds.
// Attempts that were under way are abandoned and recorded nowhere. The next gateway runs on the same records.
func (r *Rig) Crash() {
	r.T.Helper()
	r.Abandon()
	r.Start()
}

// Abandon is Crash without the start of another gateway, so that a test can look at what was left.
func (r *Rig) Abandon() {
	r.T.Helper()
	r.Settled()
	left := filepath.Join(r.T.TempDir(), "state")
	r.must(copyDir(left, r.Dir))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Gateway.Close(gone) // gives up on what runs; what it still writes goes to records that nobody opens again
	r.executor.Close()
	r.must(r.Store.Close())
	r.Gateway, r.Dir = nil, left
}

// copyDir copies the files of a directory. The shared memory beside a database is left out: no crash leaves it behind.
func copyDir(to, from string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
