package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

// BenchmarkCommit is the planned commit of an unprompted action: five events, three rows, two payloads.
func BenchmarkCommit(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("writers=%d/nosync=%t", writers, noSync), func(b *testing.B) {
				s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Origin: "bench.example", TestOnlyNoSync: noSync})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				benchmarkPlanned(b, s, writers)
			})
		}
	}
}

func benchmarkPlanned(b *testing.B, s *sqlite.Store, writers int) {
	var k storetest.Kit
	run := k.Run()
	if err := s.Commit(b.Context(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		b.Fatal(err)
	}
	arguments, operation := make([]byte, 200), make([]byte, 400)
	before := cpu()
	b.ResetTimer()
	var next atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				c := k.Claim(run)
				err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
					if c.Intent.Arguments, err = tx.PutPayload(store.Arguments, string(c.Intent.ID), arguments); err != nil {
						return err
					}
					if c.Action.Operation, err = tx.PutPayload(store.Operation, string(c.Action.ID), operation); err != nil {
						return err
					}
					if err := tx.Append(k.Accepted(c)...); err != nil {
						return err
					}
					return k.Bring(tx, c.Action.ID, action.T3, action.T11)
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}
