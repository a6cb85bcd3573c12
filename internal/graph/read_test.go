package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"deed.dev/deed/internal/graph"
	"deed.dev/deed/journal"
)

// An export that starts in the middle is enough if it holds the action's beginning. What stands before it is said to be
// missing.
func TestAPartOfAJournalIsEnough(t *testing.T) {
	t.Parallel()
	r, id, _ := deliveryFailed(t)
	r.Settled()
	lines := strings.SplitAfter(r.Export(), "\n")
	const from = 2 // after the beginning of the run
	part := strings.NewReader(fmt.Sprintf("#deed-journal/v1 test/rig\n#from %d\n#prev %s\n%s", from, lines[from-1][:64], strings.Join(lines[from:], "")))
	found, err := journal.Verify(part)
	if err != nil || found.Bad != nil || found.FirstSequence != from {
		t.Fatalf("the part is %+v, %v", found, err)
	}
	report := investigate(t, graph.Export(part, from), id, "")
	if report.Finding != graph.OneAction || report.Read.First != from || len(report.Answers[4].Events) != 4 {
		t.Errorf("the report is %+v", report)
	}
	for i, e := range report.Answers[4].Events {
		if want := []int64{3, 4, 6, 10}[i]; e.Seq != want {
			t.Errorf("event %d is record %d, want %d", i, e.Seq, want)
		}
	}
	if got := report.Answers[0].Answer; !strings.Contains(got, "stands in another part of the journal") || !strings.HasPrefix(got, "One run; which process it was is not on record.") {
		t.Errorf("question 1: %s", got)
	}
}

// A journal of millions of records is read and not held: what concerns other actions costs nothing.
func TestOtherRecordsAreNotHeld(t *testing.T) {
	r, id, _ := deliveryFailed(t)
	all := fromStore(r)
	const others = 20_000
	body := []byte(`{"action_id":"act_01j4k8j7dx7v99999999999999","event":"action.completed","root_run_id":"run_01j4k8j7dx7v99999999999999"}`)
	long := func(each func(int64, []byte) error) error {
		for i := range int64(others) {
			if err := each(i, body); err != nil {
				return err
			}
		}
		return all(func(seq int64, body []byte) error { return each(others+seq, body) })
	}
	read := func(s graph.Source) float64 {
		return testing.AllocsPerRun(3, func() {
			if _, err := graph.Read(s, id); err != nil {
				t.Error(err)
			}
		})
	}
	if short, long := read(all), read(long); long > short+others/10 {
		t.Errorf("%d records about other actions cost %.0f allocations more", others, long-short)
	}
}
