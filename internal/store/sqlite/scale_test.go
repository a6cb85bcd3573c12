package sqlite_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

var stored = flag.Int("stored", 20_000, "how many actions the larger store of BenchmarkAttach holds")

// BenchmarkAttach is what a repeated call costs: all questions of the decision and one event, in a store with few actions
// and in one with many. The two should hardly differ.
func BenchmarkAttach(b *testing.B) {
	for _, n := range []int{1000, *stored} {
		b.Run(fmt.Sprintf("stored=%d", n), func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{Origin: "bench.example", TestOnlyNoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			k := new(storetest.Kit)
			a := fill(b, s, k, n)
			before := cpu()
			for b.Loop() {
				if err := s.Commit(context.Background(), func(tx store.Tx) error { return attach(tx, k, a) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// fill stores completed actions by the hundred, and gives one that is open, accepted half-way.
func fill(b *testing.B, s *sqlite.Store, k *storetest.Kit, n int) (open action.Action) {
	b.Helper()
	run := k.Run()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; done += 100 {
		err := s.Commit(context.Background(), func(tx store.Tx) error {
			for range 100 {
				c := k.Claim(run)
				if err := tx.Append(k.Accepted(c)...); err != nil {
					return err
				}
				if err := k.Bring(tx, c.Action.ID, action.T3, action.T11, action.T12); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		if done <= n/2 && n/2 < done+100 {
			open = k.Make(b, s, nil, action.T3, action.T11)
		}
	}
	return open
}

// attach asks what the gateway asks about a call, finds the open action, and records that the call belongs to it.
func attach(tx store.Tx, k *storetest.Kit, a action.Action) error {
	if _, err := tx.ActionByIdemKey(k.ID("idem-")); err == nil {
		return fmt.Errorf("a new key found an action")
	}
	found, err := tx.ActionsByFingerprint([]string{a.Digests.Fingerprint})
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d equal actions: %w", len(found), err)
	}
	if _, err := tx.UnknownByEffect(a.Actor, []string{a.Digests.Effect}); err != nil {
		return err
	}
	if _, err := tx.UnknownByResource(a.Actor, []string{"hmac-sha256:none"}); err != nil {
		return err
	}
	return tx.Append(action.Event{ID: action.EventID(k.ID(action.EventPrefix)), Kind: action.CallAttached, Run: a.Run, Action: a.ID,
		Call: action.CallID(k.ID(action.CallPrefix)), CallBody: &action.CallSeen{Actor: a.Actor, Match: action.MatchFingerprint, Prior: a.State}})
}
