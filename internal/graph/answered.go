package graph

import (
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// answered answers the third question: what came back for each attempt, what was learned by asking, and what a person
// decided. The three are never mixed: only the first is a response.
func answered(h *history) answer {
	var a answer
	if len(h.attempts) == 0 {
		a.say("There was none to get: nothing was dispatched.")
	} else {
		a.say(responses(h.attempts))
	}
	for _, t := range h.attempts {
		a.say(t.sentence(h.body().Channel))
		if t.ended == nil {
			a.cite(t.planned, fmt.Sprintf("attempt %d: no end", t.Number))
			continue
		}
		a.cite(*t.ended, fmt.Sprintf("attempt %d: %s", t.Number, t.short()))
	}
	learned(&a, h)
	for _, m := range h.reviews() {
		v := m.Event.MoveBody.Review
		a.say(verdict(*v))
		a.cite(m, "a person: "+string(v.Decision))
	}
	return a
}

// responses is the answer in short.
func responses(attempts []attempt) string {
	with, without := []string{}, 0
	for _, t := range attempts {
		if t.responded() {
			with = append(with, fmt.Sprint(t.Number))
		} else {
			without++
		}
	}
	switch {
	case len(with) == 0:
		return "No."
	case without == 0:
		return "Yes."
	default:
		return fmt.Sprintf("To attempt %s only.", strings.Join(with, " and "))
	}
}

// responded reports whether the target answered. A status stands for that; what speaks no statuses is judged by its state.
func (t attempt) responded() bool {
	return t.Status != 0 || t.State == action.AttemptCompleted || t.State == action.AttemptRefused
}

// sentence says what came of one attempt.
func (t attempt) sentence(channel string) string {
	switch {
	case t.ended == nil:
		return fmt.Sprintf("Attempt %d has no end on record: it runs, or nobody was left to write it.", t.Number)
	case t.responded():
		return fmt.Sprintf("The target answered attempt %d%s, which proves %s%s.", t.Number, t.status(channel), proof(t.Certainty), because(t.Reason))
	case t.State == action.AttemptNotSent:
		return fmt.Sprintf("Attempt %d was not sent%s.", t.Number, because(t.Reason))
	case t.Counted() == nil:
		return fmt.Sprintf("Attempt %d has no response on record%s; nobody was left to count what was sent.", t.Number, because(t.Reason))
	default:
		return fmt.Sprintf("Attempt %d got no response%s; %s had been sent.", t.Number, because(t.Reason), count(int(*t.Counted()), "byte"))
	}
}

func (t attempt) short() string {
	switch {
	case t.Status != 0:
		return fmt.Sprint(t.Status)
	case t.Reason != "":
		return t.Reason
	default:
		return string(t.State)
	}
}

func (t attempt) status(channel string) string {
	switch {
	case channel == "ssh":
		return fmt.Sprintf(" with exit status %d", t.Status)
	case t.Status != 0:
		return fmt.Sprintf(" with status %d", t.Status)
	default:
		return ""
	}
}

func proof(c action.Certainty) string {
	switch c {
	case action.EffectProven:
		return "the effect"
	case action.NoEffectProven:
		return "that it had no effect"
	default:
		return "nothing"
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// learned adds what is known apart from the attempts. Of many look-ups that found nothing, the newest is told.
func learned(a *answer, h *history) {
	asked := 0
	var newest *record
	for _, rec := range h.learned {
		if rec.Event.DelegatedBody != nil {
			a.say("The target took it on under a job of its own and finishes later; its word for that is no outcome.")
			a.cite(rec, "taken on")
			continue
		}
		o := rec.Event.ObservedBody
		if rec.Event.Kind == action.ReconcileStarted {
			continue // a question; its answer is another event
		}
		a.cite(rec, observed(o.Observation))
		if o.Kind == action.ByLookup || o.Kind == action.ByPoll {
			asked, newest = asked+1, &rec
			continue
		}
		a.say(unasked(o.Observation))
	}
	if newest != nil {
		times := ""
		if asked > 1 {
			times = fmt.Sprintf(", %d times; the newest answer", asked)
		}
		a.say(fmt.Sprintf("The target was asked afterwards%s: %s.", times, finding(newest.Event.ObservedBody.Observation)))
	}
}

func observed(o action.Observation) string {
	if o.Finding == action.Inconclusive {
		return fmt.Sprintf("%s: inconclusive", o.Kind)
	}
	return fmt.Sprintf("%s: %s", o.Kind, o.Finding)
}

// finding puts what a look-up found into words.
func finding(o action.Observation) string {
	switch o.Finding {
	case action.Found:
		return "the effect is there, with the marker of this action"
	case action.Absent:
		return "it knows of none, which by itself proves nothing"
	case action.ProvedAbsent:
		return "it knows of none, and its contract makes that proof of absence"
	case action.Pending:
		return "it still works on it"
	case action.EndedWithout:
		return "its job is over and had no effect"
	case action.LookAlike:
		return "something like it is there, and nothing shows that this action made it"
	case action.Contradictory:
		return "its answer speaks for the effect and against it"
	default:
		return "nothing was learned" + because(o.Reason)
	}
}

// unasked is what came by itself: after the attempt had been given up on, or from an owner that had been overtaken.
func unasked(o action.Observation) string {
	status := ""
	if o.Status != 0 {
		status = fmt.Sprintf(" with status %d", o.Status)
	}
	if o.Kind == action.ByStale {
		return fmt.Sprintf("A gateway that had been overtaken reported an answer%s, which was kept and not acted on.", status)
	}
	return fmt.Sprintf("The attempt's own answer came late%s, which proves %s.", status, proof(o.Certainty))
}

// verdict puts a person's decision into words. It is evidence of what was decided, and no response.
func verdict(v action.Review) string {
	what := map[action.ReviewDecision]string{
		action.Happened: "that it happened", action.DidNot: "that it did not happen", action.Redo: "to send it once more",
		action.Abandon: "to close it without knowing",
	}[v.Decision]
	if what == "" {
		what = string(v.Decision)
	}
	return fmt.Sprintf("A person, %s, decided %s.", v.Reviewer, what)
}
