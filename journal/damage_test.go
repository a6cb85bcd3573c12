package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// smallJournal has 12 records that are short enough for every damage to be tried.
func smallJournal(t testing.TB) (lines []byte, ends []int) {
	t.Helper()
	chain, err := NewChain("gw.example/audit/small")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		r, err := chain.Open(nil)
		if i > 0 {
			r, err = chain.Next(map[string]any{"event": "action.planned", "note": fmt.Sprintf("é\n%d", i), "time": "2026-10-05T10:09:57.123456Z", "list": []any{i, true}})
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = AppendLine(lines, r)
		ends = append(ends, len(lines))
	}
	return lines, ends
}

// recordAt returns which record the byte at the offset belongs to.
func recordAt(ends []int, offset int) uint64 {
	i, found := slices.BinarySearch(ends, offset)
	if found {
		i++ // a border belongs to the record that begins there
	}
	return uint64(i)
}

// damageTrial verifies one damaged journal and wants the damage named at its place.
func damageTrial(t *testing.T, what string, damaged []byte, record uint64) {
	t.Helper()
	result, err := Verify(bytes.NewReader(damaged))
	if err != nil || result.Bad == nil || result.Chain != Broken || result.Bad.Sequence != record {
		t.Fatalf("%s: got %v, %v, want the damage at record %d", what, result.Bad, err, record)
	}
}

// every says how many trials to leave out between two, for builds that are slow.
func every(t *testing.T) (step, first int) {
	step = 1
	if raceEnabled || testing.Short() {
		step = 97 // a prime, so that all bits of a byte have their turn
	}
	first = rand.IntN(step)
	t.Logf("one trial in %d, from number %d on", step, first)
	return step, first
}

// AU-01: any bit of the file changed is found, at the record it belongs to.
func TestEveryBitFlipIsFound(t *testing.T) {
	t.Parallel()
	lines, ends := smallJournal(t)
	damaged := slices.Clone(lines)
	step, first := every(t)
	for i := first; i < 8*len(lines); i += step {
		offset, bit := i/8, byte(1)<<(i%8)
		damaged[offset] ^= bit
		damageTrial(t, fmt.Sprintf("bit %08b at %d", bit, offset), damaged, recordAt(ends, offset))
		damaged[offset] ^= bit
	}
}

// AU-01: any byte removed is found.
func TestEveryDeletionIsFound(t *testing.T) {
	t.Parallel()
	lines, ends := smallJournal(t)
	step, first := every(t)
	for i := first; i < len(lines); i += step {
		damageTrial(t, fmt.Sprintf("byte %d removed", i), slices.Delete(slices.Clone(lines), i, i+1), recordAt(ends, i))
	}
}

// AU-01: any byte inserted is found.
func TestEveryInsertionIsFound(t *testing.T) {
	t.Parallel()
	lines, ends := smallJournal(t)
	step, first := every(t)
	for i := first; i <= len(lines); i += step {
		for _, extra := range []byte("0a \n#\x00\"") {
			record := recordAt(ends, i)
			if extra == '\n' && i < len(lines) && lines[i] == '\n' {
				record++ // the record before is whole, and the empty line stands in the place of the next
			}
			damageTrial(t, fmt.Sprintf("%q inserted at %d", extra, i), slices.Insert(slices.Clone(lines), i, extra), record)
		}
	}
}

// A cut inside a record is a torn tail. A cut between two is a shorter journal,
// which only a checkpoint tells from the whole.
func TestEveryCutInsideARecordIsFound(t *testing.T) {
	t.Parallel()
	lines, ends := smallJournal(t)
	step, first := every(t)
	for i := first; i < len(lines); i += step {
		if i == 0 || slices.Contains(ends, i) {
			if result := verifyLines(t, lines[:i]); result.Bad != nil || result.RecordsChecked != recordAt(ends, i) {
				t.Fatalf("cut at the border %d: got %+v, want a shorter journal", i, result)
			}
			continue
		}
		damageTrial(t, fmt.Sprintf("cut at %d", i), lines[:i], recordAt(ends, i))
		if result := verifyLines(t, lines[:i]); result.Bad.Reason != ReasonTornTail {
			t.Fatalf("cut at %d: got %s, want torn_tail", i, result.Bad.Reason)
		}
	}
}
