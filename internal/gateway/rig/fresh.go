package rig

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"deed.dev/deed/internal/store/sqlite"
)

// fresh is a new database, made once: making one takes longer than most tests.
var fresh = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "deed-rig-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{Origin: origin})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "deed.db"))
})

// origin is the name of every rig's journal.
const origin = "test/rig"

// furnish puts the new database where the store will look for one. A rig with a clock of its own makes one itself, since
// the journal must not begin after that clock.
func (r *Rig) furnish() {
	r.T.Helper()
	if r.o.Now != nil {
		return
	}
	data, err := fresh()
	r.must(err)
	r.must(os.MkdirAll(r.Dir, 0o700))
	r.must(os.WriteFile(filepath.Join(r.Dir, "deed.db"), data, 0o600))
}
