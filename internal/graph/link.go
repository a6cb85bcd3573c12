package graph

import (
	"deed.dev/deed/internal/action"
)

// link is what connects two actions, and how they compare. Only an event connects: that contents are equal does not.
type link struct {
	finding Finding
	made    string // what the second is
	content string // how the contents compare
}

// link looks for what the journal says of the second about the first.
func (j *Journal) link(first, second *history) link {
	a, b := first.body(), second.body()
	own := "It has an execution id and a key of its own."
	switch {
	case b.Repeats == a.ID:
		return link{OnPurpose, "A new action, on purpose: its call cited the completed result of the first (repeat_of). " + own, ""}
	case b.Compensates == a.ID:
		return link{Undone, "A new action that undoes the first. " + own, ""}
	case b.Intent == a.Intent:
		return link{SameIntent, "The same key, and a new action: the first had ended undecided and without effect, so its intent got another one.", ""}
	}
	l := link{made: "Neither: it is a new action. " + own + " It did not attach to the first and was not answered from it."}
	l.finding, l.content = compare(a, b)
	if b.Similar == a.ID {
		l.content += " The gateway noted the resemblance (similar_to); the first was over."
	}
	if l.finding == TwoIntents {
		l.content += " A resemblance does not say that one repeats the other."
	}
	return l
}

// compare tells how the contents of two actions compare, by their digests: the journal holds no argument.
func compare(a, b action.Action) (Finding, string) {
	x, y := a.Digests, b.Digests
	switch {
	case x.KeyID != y.KeyID:
		return NotCompared, "Whether their contents are equal cannot be told: their fingerprints were made with two keys."
	case x.Fingerprint == y.Fingerprint:
		return TwoIntents, "Their contents are equal, and in the same scope (fingerprint)."
	case x.Effect == y.Effect:
		return TwoIntents, "Their contents are equal, asked for in two scopes by one actor (effect fingerprint)."
	case x.Args == y.Args && place(a) == place(b):
		return TwoIntents, "Their arguments and their destination are equal, asked for by two actors (argument fingerprint)."
	case a.Contract != b.Contract:
		return NotCompared, "Whether their contents are equal cannot be told: they were resolved under two contract versions."
	default:
		return Different, "Their contents differ."
	}
}

// place is where an action goes, as far as the journal says it.
func place(a action.Action) [5]string {
	return [5]string{a.Channel, a.Method, a.Target.String(), a.Template, a.Credential}
}

func (l link) notKnown() []string {
	if l.finding == TwoIntents || l.finding == NotCompared {
		return []string{"Whether the second was meant as a repeat of the first: the journal records what was asked, and not why."}
	}
	return nil
}
