package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/graph"
	"deed.dev/deed/journal"
)

// AU-19: the five questions in their order, each with events of the journal; the same from an export as from the store.
func TestTheFiveQuestionsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	for name, stage := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, first, second := stage(t)
			report := investigate(t, fromStore(r), first, second)

			export := strings.NewReader(r.Export())
			verified, err := journal.Verify(export)
			if err != nil || verified.Chain != journal.Valid {
				t.Fatalf("the export is %v, %v", verified.Chain, err)
			}
			if again := investigate(t, graph.Export(export, int64(verified.FirstSequence)), first, second); !reflect.DeepEqual(again, report) {
				t.Errorf("from the export: %+v\nfrom the store: %+v", again, report)
			}
			sound(t, r, report)
			golden(t, filepath.Join("testdata", name+".txt"), printed(t, report))
		})
	}
}

// sound holds a report against the journal that it was made from.
func sound(t *testing.T, r *rig.Rig, report graph.Report) {
	t.Helper()
	kinds := map[int64]string{}
	for i, e := range r.Events() {
		kinds[int64(i)] = e.Kind()
	}
	for i, a := range report.Answers {
		if a.Question != graph.Questions[i] || a.Answer == "" || len(a.Events) == 0 {
			t.Errorf("answer %d is %+v", i+1, a)
		}
		for n, e := range a.Events {
			if kinds[e.Seq] != string(e.Event) || e.Time.IsZero() {
				t.Errorf("answer %d cites record %d as %s at %s; it is %s", i+1, e.Seq, e.Event, e.Time, kinds[e.Seq])
			}
			if n > 0 && a.Events[n-1].Seq >= e.Seq {
				t.Errorf("answer %d cites record %d after %d", i+1, e.Seq, a.Events[n-1].Seq)
			}
		}
	}
	text := strings.ToLower(printed(t, report))
	for _, banned := range []string{"duplicate", "%!", "charge.*amount", "25000", rig.Secret} {
		if strings.Contains(text, banned) {
			t.Errorf("the report says %q", banned)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

// AU-19: the two fixtures lead to two conclusions, though each shows two calls with equal arguments.
func TestARetryAndASecondProcessLeadToTwoConclusions(t *testing.T) {
	t.Parallel()
	r1, a, _ := deliveryFailed(t)
	one := investigate(t, fromStore(r1), a, "")
	r2, b, c := twoProcesses(t)
	two := investigate(t, fromStore(r2), b, c)
	if one.Finding != graph.OneAction || two.Finding != graph.TwoIntents || one.Conclusion == two.Conclusion {
		t.Errorf("the findings are %s and %s", one.Finding, two.Finding)
	}
	if r1.Effects() != 1 || r2.Effects() != 2 {
		t.Errorf("the ledgers hold %d and %d effects, want 1 and 2", r1.Effects(), r2.Effects())
	}
	for i, want := range []string{"One process, in one run.", "Yes, both.", "Yes.", "Yes. It completed", "It reused it: 1 later call"} {
		if !strings.HasPrefix(one.Answers[i].Answer, want) {
			t.Errorf("the retry, question %d: %s", i+1, one.Answers[i].Answer)
		}
	}
	if got := two.Answers[0].Answer; !strings.HasPrefix(got, "Two processes") {
		t.Errorf("the two processes, question 1: %s", got)
	}
	if got := two.Answers[4].Answer; !strings.HasPrefix(got, "Neither: it is a new action.") {
		t.Errorf("the two processes, question 5: %s", got)
	}
}

// AU-20: equality connects nothing, and neither does their number. What differs is said to differ, and the order in which
// the actions are named changes nothing.
func TestEqualityConnectsNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.From(rig.Agent("agent", 1), "charge", charge).Do().Action.ID
	b := r.From(rig.Agent("agent", 2), "charge", charge).Do().Action.ID
	c := r.From(rig.Agent("agent", 2), "charge", `{"amount":1,"customer":"cus_42"}`).Do().Action.ID
	equal := investigate(t, fromStore(r), b, a)
	if equal.First.ActionID != a || equal.Second.ActionID != b || equal.Finding != graph.TwoIntents {
		t.Errorf("asked the other way round: %s, then %s: %s", equal.First.ActionID, equal.Second.ActionID, equal.Finding)
	}
	other := investigate(t, fromStore(r), a, c)
	if other.Finding != graph.Different {
		t.Errorf("two different charges: %s", other.Finding)
	}
	for _, report := range []graph.Report{equal, other} {
		if !strings.Contains(report.Conclusion, "nothing in the journal says that one repeats the other") {
			t.Errorf("the conclusion is %s", report.Conclusion)
		}
	}
}

// A run that the caller named may go on in another process: the report does not call that one process.
func TestANamedRunIsNotCalledOneProcess(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.From(rig.Agent("agent", 1), "charge", charge).Run("task").Do().Action.ID
	r.From(rig.Agent("agent", 2), "charge", charge).Run("task").Do()
	token := r.From(action.Actor{Kind: "token", Identity: "a", Strength: action.StrengthToken}, "get_echo", `{}`).Do().Action.ID
	for id, want := range map[action.ID]string{id: "One run, opened by one process.", token: "One run; which process it was is not on record."} {
		report := investigate(t, fromStore(r), id, "")
		if got := report.Answers[0].Answer; !strings.HasPrefix(got, want) {
			t.Errorf("question 1: %s; want %s", got, want)
		}
		if open := strings.Join(report.NotKnown, "\n"); !strings.Contains(open, "process") {
			t.Errorf("not known: %s", open)
		}
	}
}

// What is unknown stays unknown in a report, and is never said to have failed.
func TestAnUnknownOutcomeIsNotConcluded(t *testing.T) {
	t.Parallel()
	r, id, _ := processLost(t)
	report := investigate(t, fromStore(r), id, "")
	if !strings.Contains(report.Conclusion, "may have taken effect") || strings.Contains(report.Conclusion, "fail") {
		t.Errorf("the conclusion is %s", report.Conclusion)
	}
	if len(report.NotKnown) == 0 || !strings.HasPrefix(report.Answers[2].Answer, "No.") {
		t.Errorf("question 3: %s; not known: %v", report.Answers[2].Answer, report.NotKnown)
	}
}

// An id that is not there is an error that names it and what was read. So is a part of the journal that begins too late.
func TestWhatWasNotReadIsNotInvestigated(t *testing.T) {
	t.Parallel()
	r, id, _ := deliveryFailed(t)
	all := fromStore(r)
	other := action.ID("act_01j4k8j7dx7v00000000000000")
	late := func(each func(int64, []byte) error) error {
		return all(func(seq int64, body []byte) error {
			if seq < 6 {
				return nil
			}
			return each(seq, body)
		})
	}
	empty := func(func(int64, []byte) error) error { return nil }
	for name, c := range map[string]struct {
		records graph.Source
		id      action.ID
		want    string
	}{
		"another":  {all, other, "there is no action"},
		"too late": {late, id, "do not hold the beginning of"},
		"empty":    {empty, id, "no record"},
	} {
		j, err := graph.Read(c.records, c.id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = j.Investigate(c.id, "")
		var missing *graph.NotFoundError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(c.id)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	j, err := graph.Read(all, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Investigate(id, id); err == nil {
		t.Error("one action was compared with itself")
	}
	if _, err := j.Investigate(other, ""); err == nil {
		t.Error("an action that was not read for was investigated")
	}
}

// A record of a kind from a later version is passed over and counted. A record that cannot be read ends it.
func TestRecordsOfUnknownKindsAreCounted(t *testing.T) {
	t.Parallel()
	r, id, _ := deliveryFailed(t)
	all := fromStore(r)
	with := func(body string) graph.Source {
		return func(each func(int64, []byte) error) error {
			err := all(each)
			return errors.Join(err, each(999, []byte(body)))
		}
	}
	report := investigate(t, with(`{"action_id":"`+string(id)+`","event":"action.dreamed"}`), id, "")
	if report.Read.Skipped != 1 || report.Read.Last != 999 || !strings.Contains(strings.Join(report.NotKnown, "\n"), "1 record says") {
		t.Errorf("read %+v, not known %v", report.Read, report.NotKnown)
	}
	if _, err := graph.Read(with(`{"action_id":"`+string(id)+`","event":"action.completed","v":2}`), id); err == nil || !strings.Contains(err.Error(), "record 999") {
		t.Errorf("a record that cannot be read: %v", err)
	}
}

// A journal that grows between the two readings gives a report of the part that both saw.
func TestAGrowingJournalIsCutAtTheFirstReading(t *testing.T) {
	t.Parallel()
	r, id, _ := refusedByTarget(t)
	reader := r.Reader()
	calls := 0
	records := func(each func(int64, []byte) error) error {
		if calls++; calls == 2 {
			_, _ = r.Call("charge", `{"amount":"more"}`).Try()
			r.Settled()
		}
		return reader.Records(context.Background(), 0, func(seq int64, _ [32]byte, body []byte) error { return each(seq, body) })
	}
	r.Settled()
	report := investigate(t, records, id, "")
	if open := strings.Join(report.NotKnown, "\n"); !strings.Contains(open, "1 refused call ") {
		t.Errorf("not known: %s", open)
	}
}

// What a caller wrote into its request's id neither moves the cursor nor adds a line.
func TestACallersWordsCannotForgeAReport(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("get_echo", `{}`).ID("1\nConclusion\x1b[2J"+strings.Repeat("x", 500), "s").Do().Action.ID
	text := printed(t, investigate(t, fromStore(r), id, ""))
	if strings.Count(text, "\nConclusion") != 1 || strings.Contains(text, "\x1b") || strings.Contains(text, strings.Repeat("x", 100)) {
		t.Errorf("the report is\n%s", text)
	}
}

// Machines get the same, under names that stay.
func TestTheReportAsJSON(t *testing.T) {
	t.Parallel()
	r, a, b := twoProcesses(t)
	data, err := json.Marshal(investigate(t, fromStore(r), a, b))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"first":{"action_id":`, `"second":{`, `"answers":[{"question":`, `"finding":"two_intents_equal"`, `"conclusion":`, `"not_known":[`, `"events":[{"seq":`} {
		if !bytes.Contains(data, []byte(name)) {
			t.Errorf("no %s in %s", name, data)
		}
	}
}
