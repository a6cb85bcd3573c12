package gateway

import (
	"testing"
	"time"
)

// Section 1.3 of the format: refusals while the gate is closed are coalesced, and counted.
func TestRefusalsAreCoalesced(t *testing.T) {
	start := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	var r rare
	for _, c := range []struct {
		after time.Duration
		times int
		ok    bool
	}{
		{0, 1, true}, {time.Second, 0, false}, {30 * time.Second, 0, false}, {59 * time.Second, 0, false},
		{time.Minute, 4, true}, {61 * time.Second, 0, false}, {10 * time.Minute, 2, true},
		{5 * time.Minute, 1, true}, // the clock was set back
	} {
		if times, ok := r.record(start.Add(c.after)); times != c.times || ok != c.ok {
			t.Errorf("after %s: %d, %t; want %d, %t", c.after, times, ok, c.times, c.ok)
		}
	}
}
