package anchor_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
)

var errAway = errors.New("the place is away")

// rig is a journal, its places and the anchor between them.
type rig struct {
	*anchortest.Log
	shelves []*anchortest.Shelf
	dir     string
	limits  anchor.Limits
}

func newRig(t *testing.T, n int, limits anchor.Limits, names ...string) *rig {
	r := &rig{Log: anchortest.New(t, n), dir: t.TempDir(), limits: limits}
	for _, name := range names {
		r.shelves = append(r.shelves, &anchortest.Shelf{Title: name})
	}
	return r
}

// start is what the next process makes of the same journal, places and memory.
func (r *rig) start() *anchor.Anchor {
	o := anchor.Options{Log: r.Log, Limits: r.limits, Dir: r.dir, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	for _, s := range r.shelves {
		o.Sinks = append(o.Sinks, anchor.Sink{Place: s, Kind: "shelf"})
	}
	return anchor.New(o)
}

// run starts Run, and returns what ends it.
func run(t *testing.T, a *anchor.Anchor) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// pass lets an amount of time pass and everything that was due in it happen.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func mustCheck(t *testing.T, a *anchor.Anchor) {
	t.Helper()
	if err := a.Check(t.Context()); err != nil {
		t.Fatalf("the start is refused: %v", err)
	}
}

func mustBe(t *testing.T, when string, a *anchor.Anchor, open bool) {
	t.Helper()
	if err := a.Open(); (err == nil) != open {
		t.Errorf("%s: the gate says %v, want open %t", when, err, open)
	}
	if s := a.State(); s.Open != open || (s.Closed == "") != open {
		t.Errorf("%s: the state says open %t (%s), want %t", when, s.Open, s.Closed, open)
	}
}

// Section 1.3 of the format: with no place configured nothing is ever turned off, and the state warns.
func TestWithoutAPlaceThereIsAWarning(t *testing.T) {
	r := newRig(t, 0, anchor.Limits{Records: 1})
	a := r.start()
	mustCheck(t, a)
	r.Add(1000)
	mustBe(t, "no place", a, true)
	if s := a.State(); s.Warning != anchor.NoPlace || s.Places == nil {
		t.Errorf("the state is %+v, want a warning", s)
	}
	if lines := a.State().Lines(); len(lines) != 1 || !strings.Contains(lines[0], "rewrite the journal unseen") {
		t.Errorf("in words: %q", lines)
	}
	if u := a.Unanchored(); u.Records != 1000 || u.Known {
		t.Errorf("unanchored: %+v", u)
	}
}

// Section 1.3, AU-10: brought every second or 1,000 records, and once more at the end.
func TestCadence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10, anchor.Limits{}, "shelf")
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		held := func() []uint64 { return r.shelves[0].Held() }
		want := func(when string, sizes ...uint64) {
			t.Helper()
			if got := held(); !slices.Equal(got, sizes) {
				t.Errorf("%s: the place holds %v, want %v", when, got, sizes)
			}
		}
		want("at the start", 10)
		pass(5 * time.Second)
		want("nothing new", 10)
		r.Add(1)
		pass(200 * time.Millisecond)
		want("the first after a pause", 10, 11)
		r.Add(1)
		pass(500 * time.Millisecond)
		want("half a second later", 10, 11)
		pass(600 * time.Millisecond)
		want("after the second", 10, 11, 12)
		r.Add(1000)
		pass(200 * time.Millisecond)
		want("a thousand at once", 10, 11, 12, 1012)
		r.Add(3)
		stop()
		want("at the end", 10, 11, 12, 1012, 1015)
	})
}

// Section 1.3: places never hold anything up, and max_unanchored turns new sends off, by number and by age. Time in which
// nothing happens does not count.
func TestTheGateClosesByRecordsAndByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10, anchor.Limits{Records: 100, Age: 10 * time.Minute}, "shelf")
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		defer stop()
		pass(time.Hour)
		r.shelves[0].Fail(errAway)
		pass(time.Hour)
		mustBe(t, "an idle hour without the place", a, true)
		r.Add(99)
		pass(time.Minute)
		mustBe(t, "99 records", a, true)
		if u := a.Unanchored(); u.Records != 99 || u.Age < 50*time.Second || u.Age > 61*time.Second {
			t.Errorf("unanchored: %+v", u)
		}
		r.Add(1)
		mustBe(t, "100 records", a, false)
		if s := a.State(); s.Places[0].Behind != 100 || s.Places[0].Problem == "" || s.Places[0].Failing == "" {
			t.Errorf("the state is %+v", s.Places[0])
		}
		words := strings.Join(a.State().Lines(), "\n")
		for _, want := range []string{"closed, nothing new is sent: 100 records", "not anchored: 100 records for 1m0s (limits: 100, 10m0s)", "shelf (shelf): 10 records, 100 behind", "failing since", errAway.Error()} {
			if !strings.Contains(words, want) {
				t.Errorf("in words:\n%s\nwant %q", words, want)
			}
		}
		r.shelves[0].Fail(nil)
		pass(2 * time.Minute)
		mustBe(t, "the place is back", a, true)

		r.shelves[0].Fail(errAway)
		r.Add(1)
		pass(9 * time.Minute)
		mustBe(t, "one record for nine minutes", a, true)
		pass(2 * time.Minute)
		mustBe(t, "one record for eleven minutes", a, false)
		r.shelves[0].Fail(nil)
		pass(2 * time.Minute)
		mustBe(t, "the place is back again", a, true)
	})
}

// A place that hangs delays neither the gate nor the other places.
func TestASlowPlaceDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, anchor.Limits{Records: 50}, "slow", "quick")
		a := r.start()
		mustCheck(t, a)
		release := make(chan struct{})
		r.shelves[0].Stall(release)
		stop := run(t, a)
		for range 10 {
			r.Add(10)
			pass(1100 * time.Millisecond)
			mustBe(t, "one place hangs", a, true)
		}
		if got := r.shelves[1].Held(); got[len(got)-1] != 101 {
			t.Errorf("the other place holds %v", got)
		}
		before := time.Now()
		stop()
		if took := time.Since(before); took > 2*5*time.Second+time.Second {
			t.Errorf("the end took %s", took)
		}
		close(release)
	})
}

// While the journal grows faster than a place takes it, the age is that of what the place lacks, not of all that came since
// they were last level.
func TestAPlaceThatIsAlwaysBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, anchor.Limits{Age: time.Minute}, "slow")
		a := r.start()
		mustCheck(t, a)
		r.shelves[0].Take(5 * time.Second)
		stop := run(t, a)
		defer stop()
		for range 600 {
			r.Add(1)
			pass(time.Second)
		}
		mustBe(t, "five seconds behind for ten minutes", a, true)
		if u := a.Unanchored(); u.Age > 15*time.Second || u.Records == 0 {
			t.Errorf("unanchored: %+v", u)
		}
	})
}

// The memory alone refuses a store that was put back, when no place can be asked.
func TestMemoryRefusesAStoreThatWasPutBack(t *testing.T) {
	r := newRig(t, 1000, anchor.Limits{}, "far")
	mustCheck(t, r.start())
	r.Log = r.Log.Fork(900, 0)
	r.shelves[0].Fail(errAway)
	if err := r.start().Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the memory of far") {
		t.Errorf("got %v, want what the memory says", err)
	}
}

// A new journal under a new name begins without the memory of the old one.
func TestMemoryOfAnotherJournalIsForgotten(t *testing.T) {
	r := newRig(t, 1000, anchor.Limits{}, "far")
	mustCheck(t, r.start())
	r.Log = anchortest.NewNamed(t, "gw.example/audit/next", 3)
	r.shelves[0].Fail(errAway)
	a := r.start()
	mustCheck(t, a)
	mustBe(t, "nothing is known of the new one", a, false)
}

// need: 2 counts what two places hold.
func TestMorePlacesMayBeNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, anchor.Limits{Records: 50, Need: 2}, "a", "b", "c")
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		defer stop()
		r.shelves[0].Fail(errAway)
		r.Add(60)
		pass(2 * time.Second)
		mustBe(t, "two of three", a, true)
		r.shelves[1].Fail(errAway)
		r.Add(60)
		pass(2 * time.Second)
		mustBe(t, "one of three", a, false)
	})
}

// AU-10, section 1.7 and test 10 of section 5: a start with a journal that is shorter than what any place holds, or not the
// one that it has seen, is refused, and nothing is brought there that would hide it.
func TestStartIsRefused(t *testing.T) {
	for what, change := range map[string]func(*anchortest.Log) *anchortest.Log{
		"shorter":   func(l *anchortest.Log) *anchortest.Log { return l.Fork(900, 0) },
		"rewritten": func(l *anchortest.Log) *anchortest.Log { return l.Fork(500, 700) },
		"empty":     func(l *anchortest.Log) *anchortest.Log { return l.Fork(0, 0) },
	} {
		for _, memory := range []bool{true, false} {
			r := newRig(t, 1000, anchor.Limits{}, "far", "near")
			a := r.start()
			mustCheck(t, a)
			r.Log = change(r.Log)
			r.shelves[0].Fail(errAway) // one place is enough
			if !memory {
				if err := os.Remove(filepath.Join(r.dir, "anchored.json")); err != nil {
					t.Fatal(err)
				}
			}
			a = r.start()
			err := a.Check(t.Context())
			var conflict *anchor.ConflictError
			if !errors.As(err, &conflict) || conflict.Held != 1000 || conflict.Size != uint64(r.Size()) {
				t.Errorf("%s, memory %t: the start gives %v, want a conflict at 1000", what, memory, err)
			}
			if !memory {
				mustBe(t, what, a, false)
			}
			if got := r.shelves[1].Held(); len(got) != 1 {
				t.Errorf("%s: the place holds %v, want what it held", what, got)
			}
		}
	}
}

// A place that can be asked only later tells then, and from then on nothing new is sent, whatever the other places say.
func TestAConflictIsFoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 100, anchor.Limits{}, "far", "near")
		mustCheck(t, r.start())
		r.Log = r.Log.Fork(50, 100)
		r.shelves[1] = &anchortest.Shelf{Title: "near"} // somebody has emptied it
		if err := os.Remove(filepath.Join(r.dir, "anchored.json")); err != nil {
			t.Fatal(err)
		}
		r.shelves[0].Fail(errAway)
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		defer stop()
		mustBe(t, "before it can be asked", a, true)
		r.shelves[0].Fail(nil)
		pass(2 * time.Minute)
		mustBe(t, "after", a, false)
		pass(10 * time.Minute)
		mustBe(t, "and for good", a, false)
		if msg := a.Open().Error(); strings.Count(msg, "far") != 1 {
			t.Errorf("the reason is said more than once: %q", msg)
		}
	})
}

// When no place can be reached at a start, what was remembered goes on counting; without it nothing new is sent until one
// answers.
func TestStartWithoutAnyPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 100, anchor.Limits{Records: 50, Age: 10 * time.Minute}, "far")
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		pass(time.Minute)
		stop()
		r.shelves[0].Fail(errAway)
		r.Add(10)
		pass(5 * time.Minute)
		a = r.start()
		mustCheck(t, a)
		mustBe(t, "ten records for less than ten minutes", a, true)
		if u := a.Unanchored(); u.Records != 10 || !u.Known {
			t.Errorf("unanchored: %+v", u)
		}
		pass(10 * time.Minute)
		mustBe(t, "starting again does not make them younger", r.start(), false)
		r.Add(40)
		mustBe(t, "fifty records", r.start(), false)

		memory := filepath.Join(r.dir, "anchored.json")
		for _, text := range []string{"", "{}", "not json"} {
			if err := os.WriteFile(memory, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			a = r.start()
			mustCheck(t, a)
			mustBe(t, "nothing is remembered", a, false)
		}
		stop = run(t, a)
		defer stop()
		r.shelves[0].Fail(nil)
		pass(2 * time.Minute)
		mustBe(t, "it has answered", a, true)
	})
}

// A journal that cannot cut a checkpoint is not anchored, and says so.
func TestNoCheckpointCanBeCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, anchor.Limits{Records: 5}, "shelf")
		a := r.start()
		mustCheck(t, a)
		stop := run(t, a)
		defer stop()
		r.Fail(errors.New("the key is gone"))
		r.Add(5)
		pass(3 * time.Second)
		mustBe(t, "no checkpoint", a, false)
		if s := a.State(); !strings.Contains(s.Warning, "the key is gone") {
			t.Errorf("the state is %+v", s)
		}
		r.Fail(nil)
		pass(3 * time.Second)
		mustBe(t, "again", a, true)
		if s := a.State(); s.Warning != "" {
			t.Errorf("the state still warns: %+v", s)
		}
	})
}

// The checkpoint to put beside an export is the newest one that the most witnesses have signed.
func TestCosigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5, anchor.Limits{}, "w1", "w2", "shelf")
		r.shelves[0].Sign("— w1\n")
		r.shelves[1].Sign("— w2\n")
		a := r.start()
		if a.Cosigned() != nil {
			t.Error("a checkpoint before the start")
		}
		mustCheck(t, a)
		stop := run(t, a)
		defer stop()
		want := func(when string, h anchor.Head, lines string) {
			t.Helper()
			if got := string(a.Cosigned()); got != string(h.Signed)+lines {
				t.Errorf("%s: got %q", when, got)
			}
		}
		first := r.MustHead(t)
		want("both", first, "— w1\n— w2\n")
		r.shelves[1].Fail(errAway)
		r.Add(1)
		pass(2 * time.Second)
		want("one is away", first, "— w1\n— w2\n")
		r.shelves[1].Fail(nil)
		r.Add(1)
		pass(3 * time.Minute)
		want("both again", r.MustHead(t), "— w1\n— w2\n")
	})
}
