package graph

import (
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// concludeOne says in plain words what one action was, and what the calls about it were.
func concludeOne(h *history) string {
	s := []string{"One action" + outcome(h)}
	switch attached := len(h.kind(action.CallAttached)); {
	case attached == 1:
		s = append(s, "The later call was no second action: it attached to this one.")
	case attached > 1:
		s = append(s, fmt.Sprintf("The %d later calls were no further actions: they attached to this one.", attached))
	}
	if held := len(h.kind(action.CallHeld)); held > 0 {
		s = append(s, were(held, "call")+" held back while it was open, and sent nothing.")
	}
	if n := len(h.attempts); n > 1 {
		s = append(s, fmt.Sprintf("Its %d attempts are sends of this one action.", n))
	}
	return strings.Join(s, " ")
}

// outcome ends the sentence that begins with "One action".
func outcome(h *history) string {
	switch state := h.state(); state {
	case action.Completed:
		end := ", one effect"
		if h.body().Class == action.ReadOnly {
			end = ", a read, which completed"
		}
		switch h.delivery() {
		case action.DeliveryInterrupted:
			end += "; only the delivery of its result failed"
		case action.Delivered:
			end += ", and the result arrived"
		}
		return end + "." + decidedByPerson(h)
	case action.Failed:
		return fmt.Sprintf(" without effect (%s).", h.move().Event.MoveBody.FailureClass) + decidedByPerson(h)
	case action.Rejected:
		return fmt.Sprintf(", rejected (%s): nothing took effect.", h.move().Event.MoveBody.RejectReason)
	case action.Unknown:
		return fmt.Sprintf(" that may have taken effect: whether it did is not known%s.", because(h.reason())) + decidedByPerson(h)
	case action.Dispatched:
		return " that may have taken effect: no outcome is on record so far."
	default:
		return fmt.Sprintf(", %s: nothing of it has taken effect so far.", state)
	}
}

func decidedByPerson(h *history) string {
	if m := h.move(); m == nil || m.Event.MoveBody.Review == nil {
		return ""
	}
	return " That is a person's decision, and not an answer of the target."
}

// concludeTwo says in plain words how two actions stand to each other, and what became of each.
func concludeTwo(a, b *history, l link, w whose) string {
	from := processes(w, a.body().Run == b.body().Run)
	nothing := "nothing in the journal says that one repeats the other."
	lead := map[Finding]string{
		TwoIntents:  "Two intents with equal content, " + from + "; " + nothing,
		Different:   "Two intents with different content, " + from + "; " + nothing,
		NotCompared: "Two intents, " + from + "; whether their content is equal cannot be told, and " + nothing,
		OnPurpose:   "The second repeats the first on purpose, " + from + ": it cites the result of the first.",
		Undone:      "The second undoes the first.",
		SameIntent:  "One intent: its first action ended undecided, and the second was made in its place.",
	}[l.finding]
	return fmt.Sprintf("%s The first %s; the second %s.", lead, effect(a), effect(b))
}

func processes(w whose, oneRun bool) string {
	switch {
	case w == oneProcess:
		return "from one process"
	case w == someProcesses:
		return "from two processes"
	case oneRun:
		return "from one run"
	default:
		return "from two runs"
	}
}

// effect is what is known of one action's effect, in few words.
func effect(h *history) string {
	switch s := h.state(); s.Effect() {
	case action.EffectOnce:
		return "took effect once"
	case action.EffectMaybe:
		return "may have taken effect (" + string(s) + ")"
	default:
		return "had no effect (" + string(s) + ")"
	}
}

// notKnown lists what the journal leaves open about some actions.
func (j *Journal) notKnown(w whose, all ...*history) []string {
	open := []string{}
	for i, h := range all {
		which := ""
		if len(all) > 1 {
			which = [2]string{" of the first", " of the second"}[i]
		}
		open = append(open, h.open(which)...)
	}
	switch w {
	case noProcess:
		open = append(open, "Which process asked: the evidence on record does not name one for each run.")
	case oneRun:
		open = append(open, "Whether another process went on with the run: its name is the agent's own.")
	}
	var runs []action.RunID
	for _, h := range all {
		runs = append(runs, h.body().Run)
	}
	if n, first, last := j.refusedAfter(runs, all[0].accepted.Seq); n > 0 {
		where := fmt.Sprintf("record %d", first)
		if n > 1 {
			where = fmt.Sprintf("records %d to %d", first, last)
		}
		open = append(open, fmt.Sprintf("What %s of the same run meant (%s): a refused call names no action.", count(n, "refused call"), where))
	}
	if j.skipped > 0 {
		open = append(open, fmt.Sprintf("What %s says: this version does not know the kind.", count(j.skipped, "record")))
	}
	return open
}

// open lists what the journal leaves open about one action.
func (h *history) open(which string) (open []string) {
	if h.state().Effect() == action.EffectMaybe {
		open = append(open, fmt.Sprintf("Whether the effect%s happened at the target.", which))
	}
	if h.state() == action.Completed {
		if n := h.sends(); n > 1 && h.body().Class == action.RepeatableWithKey {
			open = append(open, fmt.Sprintf("Which of the %d sends%s had the effect: that it was one is the target's promise about the execution id.", n, which))
		}
		if d := h.delivery(); d == action.DeliveryPending || d == action.DeliveryUnconfirmed {
			open = append(open, fmt.Sprintf("Whether the caller received the result%s.", which))
		}
	}
	for _, c := range h.kind(action.CallAttached) {
		if c.Event.CallBody.Match == action.MatchFingerprint {
			return append(open, "Whether a call that attached by its content alone was meant as a new action.")
		}
	}
	return open
}
