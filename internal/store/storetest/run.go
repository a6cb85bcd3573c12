package storetest

import (
	"context"
	"testing"
	"time"

	"deed.dev/deed/internal/store"
)

// Options are what the suite asks of a new store.
type Options struct {
	Now        func() time.Time // nil means the wall clock
	QueueLimit int              // 0 means the store's own
}

// Opener gives a new, empty store that is closed when the test ends.
type Opener func(t testing.TB, o Options) store.Store

// Rebuilder is a store that can make its rows again from the journal.
type Rebuilder interface {
	store.Store
	Rebuild(ctx context.Context) error
	// Rows gives every row made from events, as text that differs when one byte differs.
	Rows(t testing.TB) string
}

// Run holds a store against its contract.
func Run(t *testing.T, open Opener) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"Moves", testMoves},
		{"Recovery", testRecovery},
		{"Claims", testClaims},
		{"Writers", testWriters},
		{"Records", testRecords},
		{"Queries", testQueries},
		{"Payloads", testPayloads},
		{"Changes", testChanges},
		{"Clock", testClock},
		{"Approvals", testApprovals},
		{"Rebuild", testRebuild},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open) })
	}
}

// subtest is one promise, tried on a store of its own.
type subtest struct {
	name string
	test func(*testing.T, store.Store, *Kit)
}

func each(t *testing.T, open Opener, tests []subtest) {
	for _, st := range tests {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			st.test(t, open(t, Options{}), new(Kit))
		})
	}
}
