package graph

import (
	"fmt"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
)

// later answers the fifth question about one action: what the calls that came after the first did, how often it was sent,
// and which other actions name it.
func (j *Journal) later(h *history) answer {
	var a answer
	attached, held := h.kind(action.CallAttached), h.kind(action.CallHeld)
	switch {
	case len(attached) > 0:
		a.say(fmt.Sprintf("It reused it: %s attached to this action (%s) and made none of its own.",
			count(len(attached), "later call"), matches(attached)))
		if n := replayed(attached); n > 0 {
			a.say(fmt.Sprintf("%s answered from the record (replayed), since it had completed.", were(n, "call")))
		}
	case len(held) == 0:
		a.say("No later call belongs to it.")
	default:
		a.say("No later call attached to it.")
	}
	if len(held) > 0 {
		a.say(fmt.Sprintf("%s held back by it (%s), and nothing was sent for that.", were(len(held), "call"), whys(held)))
	}
	j.citeIdentity(&a, h, "")
	citeCalls(&a, h)
	a.say(attempts(h) + ".")
	citeAttempts(&a, h)
	j.relatives(&a, h)
	return a
}

// replayed counts the attached calls that found the action completed: they got its recorded result.
func replayed(attached []record) (n int) {
	for _, c := range attached {
		if c.Event.CallBody.Prior == action.Completed {
			n++
		}
	}
	return n
}

// matches says how attached calls were recognised, and when.
func matches(calls []record) string {
	var words []string
	for _, m := range []action.MatchKind{action.MatchKey, action.MatchFingerprint, action.MatchRepeat, action.MatchUndo} {
		n := 0
		for _, c := range calls {
			if c.Event.CallBody.Match == m {
				n++
			}
		}
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, by[m]))
		}
	}
	return strings.Join(words, ", ")
}

var by = map[action.MatchKind]string{
	action.MatchKey: "by its key", action.MatchFingerprint: "by its fingerprint",
	action.MatchRepeat: "asking again for the repeat", action.MatchUndo: "asking again for the undoing",
}

// whys are the different reasons for which calls were held.
func whys(calls []record) string {
	var words []string
	for _, c := range calls {
		if why := c.Event.CallBody.Why; !slices.Contains(words, why) {
			words = append(words, why)
		}
	}
	return strings.Join(words, ", ")
}

func citeCalls(a *answer, h *history) {
	for _, c := range h.calls {
		v := c.Event.CallBody
		switch c.Event.Kind {
		case action.CallAttached:
			a.cite(c, fmt.Sprintf("%s; it was %s", by[v.Match], v.Prior))
		case action.CallHeld:
			a.cite(c, fmt.Sprintf("%s; it was %s", v.Why, v.Prior))
		}
	}
}

// attempts says how often an action was sent. They never make it several actions.
func attempts(h *history) string {
	switch n := len(h.attempts); n {
	case 0:
		return "No attempt was made"
	case 1:
		return "One attempt was made"
	default:
		return fmt.Sprintf("%d attempts were made, all under the one execution id", n)
	}
}

func citeAttempts(a *answer, h *history) {
	for _, t := range h.attempts {
		note := fmt.Sprintf("attempt %d", t.Number)
		if v := t.planned.Event.MoveBody; v.Transition == action.T18 {
			note += ", sent again" + because(v.Reason)
		}
		a.cite(t.planned, note)
	}
}

// relatives adds the other actions that the journal connects with this one.
func (j *Journal) relatives(a *answer, h *history) {
	body := h.body()
	for _, l := range []struct {
		id   action.ID
		what string
	}{{body.Repeats, "It repeats %s on purpose."}, {body.Compensates, "It undoes %s."}, {body.Similar, "It resembles %s, which was over; that alone connects them in no way."}} {
		if l.id != "" {
			a.say(fmt.Sprintf(l.what, l.id))
		}
	}
	for _, rec := range j.linked {
		other := *rec.Event.AcceptedBody
		switch {
		case other.Repeats == h.id:
			a.say(fmt.Sprintf("%s repeats it on purpose.", other.ID))
			a.cite(rec, "repeats it on purpose")
		case other.Compensates == h.id:
			a.say(fmt.Sprintf("%s undoes it.", other.ID))
			a.cite(rec, "undoes it")
		case other.Intent == body.Intent:
			a.say(fmt.Sprintf("%s was made for the same intent, after this one had ended undecided.", other.ID))
			a.cite(rec, "for the same intent")
		case other.Similar == h.id:
			a.say(fmt.Sprintf("%s is another action that resembles it; that alone connects them in no way.", other.ID))
			a.cite(rec, "resembles it")
		}
	}
}

// secondMade answers the fifth question about two actions.
func (j *Journal) secondMade(first, second *history, l link) answer {
	var a answer
	a.say(l.made)
	a.say(l.content)
	for i, h := range []*history{first, second} {
		which := [2]string{"first", "second"}[i]
		a.say(fmt.Sprintf("%s for the %s%s.", attempts(h), which, callsOf(h)))
		j.citeIdentity(&a, h, " of the "+which)
		citeCalls(&a, h)
		citeAttempts(&a, h)
	}
	return a
}

// citeIdentity cites where the action got its execution id and its key.
func (j *Journal) citeIdentity(a *answer, h *history, which string) {
	a.cite(*h.accepted, "execution id"+which)
	rec, ok := j.intents[h.body().Intent]
	switch {
	case !ok:
	case rec.Event.IntentBody.KeySource == "deed":
		a.cite(rec, "key"+which+", made by deed")
	default:
		a.cite(rec, "key"+which+", given by the caller")
	}
}

func callsOf(h *history) string {
	attached, held := len(h.kind(action.CallAttached)), len(h.kind(action.CallHeld))
	s := ""
	if attached > 0 {
		s += fmt.Sprintf("; %s attached to it", count(attached, "later call"))
	}
	if held > 0 {
		s += fmt.Sprintf("; %s held back by it", were(held, "call"))
	}
	return s
}
