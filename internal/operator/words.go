package operator

import (
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
)

// knowledge says in sentences what the record proves about an action, and what it leaves open.
func knowledge(a action.Action, attempts []action.Attempt) (known, open []string) {
	known, open = []string{}, []string{}
	switch {
	case a.State.Final():
		return append(known, fmt.Sprintf("It is %s since %s.", a.State, stamp(a.FinishedAt))), open
	case a.State != action.Unknown:
		return append(known, fmt.Sprintf("It is %s. Nothing about it is for a person to settle.", a.State)), open
	case a.Abandoned:
		known = append(known, "A person has closed it without knowing what came of it.")
	}
	known = append(known, sent(attempts))
	for _, t := range attempts {
		if t.Status != 0 {
			known = append(known, fmt.Sprintf("Attempt %d was answered %d, which by the contract proves nothing.", t.Number, t.Status))
		}
	}
	if a.CanAsk || a.Job != "" {
		known = append(known, learned(a))
	} else {
		known = append(known, "Its contract names no way to ask the target afterwards.")
	}
	if a.Hinted {
		known = append(known, "Something was seen that speaks for the effect, and does not prove it.")
	}
	open = append(open,
		fmt.Sprintf("Whether it took effect at %s.", a.Target.Host),
		"What its result is, so callers have none.",
	)
	return known, open
}

// sent says how often something left for the target.
func sent(attempts []action.Attempt) string {
	times, bytes, counted := len(attempts), int64(0), true
	for _, t := range attempts {
		if n := t.Counted(); n != nil {
			bytes += *n
		} else {
			counted = false
		}
	}
	s := fmt.Sprintf("It was sent %s: ", plural(times, "time"))
	switch {
	case counted:
		return s + fmt.Sprintf("%s left for the target.", plural(int(bytes), "byte"))
	case bytes > 0:
		return s + fmt.Sprintf("at least %s left for the target; of some attempts nobody was left to count.", plural(int(bytes), "byte"))
	default:
		return s + "how much left for the target nobody was left to count."
	}
}

func learned(a action.Action) string {
	if a.Observations == 0 {
		return "The target can be asked, and was not asked yet."
	}
	return fmt.Sprintf("The target was asked or heard of %s; the newest finding is: %s.", plural(a.Observations, "time"), finding(a.Finding))
}

// finding is the word for what was learned.
func finding(f action.Finding) string {
	if f == action.Inconclusive {
		return "nothing"
	}
	return string(f)
}

// choices lists the decisions that fit the action, and what each does.
func choices(a action.Action, now time.Time) []Choice {
	if a.State != action.Unknown || a.Abandoned {
		return []Choice{}
	}
	return []Choice{
		{action.Happened, "Records that it took effect. Callers are told that it is done, with the result that you give, if any. Nothing is sent.", "evidence"},
		{action.DidNot, "Records that it had no effect. It is over, and callers may ask for it anew. Nothing is sent.", "evidence"},
		{action.Redo, redoes(a, now), "why"},
		{action.Abandon, "Leaves it unknown for good. It holds no other call up any more, and is never sent again. Nothing is sent.", "why"},
	}
}

// redoes says what sending again would mean.
func redoes(a action.Action, now time.Time) string {
	const s = "SENDS the recorded request AGAIN, once. "
	switch {
	case a.Class == action.ReadOnly:
		return s + "It only reads, so no harm can come of that."
	case a.Class == action.RepeatableWithKey && now.Before(a.ResendBefore):
		return s + "It carries the same key, which the target keeps until " + stamp(a.ResendBefore) + " or longer: that makes it one effect."
	case a.Class == action.RepeatableWithKey:
		return s + "The target may have forgotten its key: if the first took effect, there will be two."
	default:
		return s + "The target does not recognise it: if the first took effect, there will be two."
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
