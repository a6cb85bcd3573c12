package graph

import (
	"errors"
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// Investigate answers the five questions about an action, or about two of those that were read. Of two, the first is the
// one that was accepted first, whatever their order here; second is "" for a report about one. An action whose beginning
// was not read is a *NotFoundError.
func (j *Journal) Investigate(first, second action.ID) (Report, error) {
	h, err := j.history(first)
	if err != nil || second == "" {
		return j.about(h), err
	}
	if second == first {
		return Report{}, errors.New("both are the same action; ask about it alone")
	}
	other, err := j.history(second)
	if err != nil {
		return Report{}, err
	}
	if other.accepted.Seq < h.accepted.Seq {
		h, other = other, h
	}
	return j.between(h, other), nil
}

func (j *Journal) history(id action.ID) (*history, error) {
	h, ok := j.histories[id]
	if !ok {
		return nil, fmt.Errorf("the journal was not read for %s", id)
	}
	if h.accepted == nil {
		return nil, &NotFoundError{Action: id, First: j.first, Last: j.last, Later: len(h.calls)+len(h.moves) > 0}
	}
	return h, nil
}

// about reports on one action: the second of the questions are the calls that came after the first.
func (j *Journal) about(h *history) Report {
	if h == nil {
		return Report{}
	}
	r := Report{First: j.subject(h), Finding: OneAction, Read: j.extent()}
	asked, whose := j.whoAsked(h)
	answers := [5]answer{asked, dispatched(h), answered(h), delivered(h), j.later(h)}
	for i, a := range answers {
		r.Answers[i] = a.done(Questions[i])
	}
	r.Conclusion = concludeOne(h)
	r.NotKnown = j.notKnown(whose, h)
	return r
}

// between reports on two actions. What is asked of the first is said of both, since two effects may be at stake.
func (j *Journal) between(a, b *history) Report {
	second := j.subject(b)
	r := Report{First: j.subject(a), Second: &second, Read: j.extent()}
	asked, whose := j.whoAskedBoth(a, b)
	link := j.link(a, b)
	r.Finding = link.finding
	answers := [5]answer{
		asked, both(dispatched(a), dispatched(b)), both(answered(a), answered(b)), both(delivered(a), delivered(b)), j.secondMade(a, b, link),
	}
	for i, answer := range answers {
		r.Answers[i] = answer.done(Questions[i])
	}
	r.Conclusion = concludeTwo(a, b, link, whose)
	r.NotKnown = append(j.notKnown(whose, a, b), link.notKnown()...)
	return r
}

// both puts the answers about two actions together.
func both(first, second answer) answer {
	return answer{
		apart:  []string{"The first: " + lowered(first.text()), "The second: " + lowered(second.text())},
		events: append(first.events, second.events...),
	}
}

// lowered begins an answer in the middle of a sentence.
func lowered(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func (j *Journal) subject(h *history) Subject {
	body := h.body()
	return Subject{
		ActionID: h.id, IntentID: body.Intent, RunID: body.Run, Actor: body.Actor, Tool: j.tool(h),
		State: h.state(), Delivery: h.delivery(), Shown: action.Shown(h.state(), h.delivery()),
		Attempts: len(h.attempts), Calls: len(h.calls) - len(h.kind(action.CallHeld)),
	}
}

func (j *Journal) extent() Extent { return Extent{First: j.first, Last: j.last, Skipped: j.skipped} }

// tool stands in the intent only.
func (j *Journal) tool(h *history) string {
	if rec, ok := j.intents[h.body().Intent]; ok {
		return rec.Event.IntentBody.Tool
	}
	return ""
}
