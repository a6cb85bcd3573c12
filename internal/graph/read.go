package graph

import (
	"bytes"
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store/eventlog"
)

// Source calls each with the records of a journal, in order, until it returns an error, which comes back. body is not
// kept. A source is read twice, and may have grown in between. That the chain is whole is for its maker to see to.
type Source func(each func(seq int64, body []byte) error) error

// Journal is what a journal says about some actions: their own events, the calls and intents that they belong to, the
// runs of those, and the later actions that name them.
type Journal struct {
	first, last int64 // sequence numbers read; last is -1 when there was no record
	histories   map[action.ID]*history
	linked      []record // accepted events of other actions that name one of these
	intents     map[action.IntentID]record
	runs        map[action.RunID]record
	refused     map[action.RunID][]int64 // refused calls name no action, so their places are all that is kept
	skipped     int                      // records about these actions of a kind that this version does not know
}

// Read collects what concerns the given actions. It holds nothing of the other records.
func Read(records Source, about ...action.ID) (*Journal, error) {
	j := &Journal{
		last: -1, histories: map[action.ID]*history{}, intents: map[action.IntentID]record{},
		runs: map[action.RunID]record{}, refused: map[action.RunID][]int64{},
	}
	for _, id := range about {
		j.histories[id] = &history{id: id}
	}
	if err := records(j.aboutActions()); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	if err := records(j.aboutCauses()); err != nil && !errors.Is(err, errEnd) {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

var errEnd = errors.New("the first reading ended here")

// aboutActions takes the events that name an asked action.
func (j *Journal) aboutActions() func(int64, []byte) error {
	var names []string
	for id := range j.histories {
		names = append(names, string(id))
	}
	search := searchFor(names)
	return func(seq int64, body []byte) error {
		if j.last < 0 {
			j.first = seq
		}
		j.last = seq
		if !search.in(body) {
			return nil
		}
		rec, err := eventlog.Decode(body)
		if errors.Is(err, eventlog.ErrNoEvent) {
			j.skipped++
			return nil
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		j.add(rec)
		return nil
	}
}

// add takes one event of the first reading.
func (j *Journal) add(rec record) {
	if h, ok := j.histories[rec.Event.Action]; ok {
		h.add(rec)
		return
	}
	if a := rec.Event.AcceptedBody; a != nil {
		for _, id := range []action.ID{a.Repeats, a.Similar, a.Compensates} {
			if _, ok := j.histories[id]; ok {
				j.linked = append(j.linked, rec)
				return
			}
		}
	}
}

// aboutCauses takes, up to the same record, what only the first reading could name: intents, runs and their refused calls.
func (j *Journal) aboutCauses() func(int64, []byte) error {
	intents, runs := map[action.IntentID]bool{}, map[action.RunID]bool{}
	var names []string
	for _, h := range j.histories {
		for _, rec := range h.all() {
			intents[rec.Event.Intent], runs[rec.Event.Run] = true, true
		}
	}
	for id := range intents {
		names = append(names, string(id))
	}
	for id := range runs {
		names = append(names, string(id))
	}
	search, kinds := searchFor(names), searchFor([]string{string(action.RunStarted), string(action.IntentLogged), string(action.CallRefused)})
	return func(seq int64, body []byte) error {
		if seq > j.last {
			return errEnd
		}
		if !kinds.in(body) || !search.in(body) {
			return nil
		}
		rec, err := eventlog.Decode(body)
		if errors.Is(err, eventlog.ErrNoEvent) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		switch ev := rec.Event; {
		case ev.RunBody != nil && runs[ev.Run]:
			j.runs[ev.Run] = rec
		case ev.IntentBody != nil && intents[ev.Intent]:
			j.intents[ev.Intent] = rec
		case ev.Kind == action.CallRefused && runs[ev.Run]:
			j.refused[ev.Run] = append(j.refused[ev.Run], seq)
		}
		return nil
	}
}

// quoted are words as they stand in a body, with their quotes. None needs an escape. Looking for them costs much less
// than reading every body; what is found is decoded and compared member by member.
type quoted [][]byte

func searchFor(words []string) (q quoted) {
	for _, w := range words {
		if w != "" {
			q = append(q, []byte(`"`+w+`"`))
		}
	}
	return q
}

func (q quoted) in(body []byte) bool {
	for _, w := range q {
		if bytes.Contains(body, w) {
			return true
		}
	}
	return false
}

// refusedAfter counts the refused calls of runs after a record, and says where the first and the last stand.
func (j *Journal) refusedAfter(runs []action.RunID, seq int64) (n int, first, last int64) {
	for _, run := range runs {
		for _, s := range j.refused[run] {
			if s <= seq {
				continue
			}
			if n == 0 || s < first {
				first = s
			}
			n, last = n+1, max(last, s)
		}
	}
	return n, first, last
}

// A NotFoundError is an action of which the journal that was read has no beginning.
type NotFoundError struct {
	Action      action.ID
	First, Last int64 // records read; Last is -1 when there was none
	Later       bool  // events about it stand there, and the one that opened it does not
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Last < 0:
		return fmt.Sprintf("the journal holds no record, and so nothing about %s", e.Action)
	case e.Later:
		return fmt.Sprintf("records %d to %d do not hold the beginning of %s; it stands in an earlier part of the journal", e.First, e.Last, e.Action)
	case e.First > 0:
		return fmt.Sprintf("records %d to %d say nothing of %s; it may stand in an earlier part of the journal", e.First, e.Last, e.Action)
	default:
		return fmt.Sprintf("there is no action %s in this journal (records %d to %d)", e.Action, e.First, e.Last)
	}
}
