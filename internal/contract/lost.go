package contract

import (
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// afterUnknown says what happens to an action whose outcome is not known.
func (c *Contract) afterUnknown() string {
	s := ""
	switch c.Class {
	case action.ReadOnly:
		return fmt.Sprintf("It is read again, in at most %d attempts.", c.MaxAttempts)
	case action.RepeatableWithKey:
		s = fmt.Sprintf("The recorded bytes are sent again with the same key, in at most %d attempts and until %s after the "+
			"first send. After that ", c.MaxAttempts, formatDuration(c.KeyLife))
	case action.StatusQueryable:
		s = "Nothing is sent again on a guess. "
	default:
		s = "Nothing is sent again. "
	}
	if c.Lookup == nil {
		return sentence(s, "a person decides.")
	}
	return sentence(s, "the target is asked. ") + c.whenNotFound() + fmt.Sprintf(" Without evidence for %s a person decides.", formatDuration(c.ReviewAfter))
}

// sentence goes on with a text, in a new sentence where the last one has ended.
func sentence(s, next string) string {
	if strings.HasSuffix(s, ". ") {
		next = strings.ToUpper(next[:1]) + next[1:]
	}
	return s + next
}

// whenNotFound says what follows when the target knows of no such effect.
func (c *Contract) whenNotFound() string {
	switch l := c.Lookup; {
	case !l.Authoritative:
		return `"Not found" proves nothing, so it is not sent again.`
	case c.Class == action.BlockedAfterUnknown:
		return fmt.Sprintf(`"Not found" from %s after the last send on closes it as having had no effect.`, formatDuration(l.Settle))
	default:
		return fmt.Sprintf(`"Not found" from %s after the last send on lets it be sent again, in at most %d attempts.`,
			formatDuration(l.Settle), c.MaxAttempts)
	}
}

// looksUp says how the target is asked what became of an action.
func (c *Contract) looksUp() string {
	if c.Lookup == nil {
		return "none: the target cannot be asked what became of it"
	}
	s := c.Lookup.request.String() + ". "
	if c.Lookup.byRequest {
		return s + "The question names the action, so what it finds is the action's."
	}
	return s + "What it finds counts if the answer carries the action's id or idem_key; else it is a look-alike."
}

// polls says how a target that finishes later is asked.
func (c *Contract) polls() string {
	if c.Poll == nil {
		return "none: the target answers when it is done"
	}
	return fmt.Sprintf("The target may take the work on and finish it later. Its id of the job is recorded, and it is asked every %s for "+
		"up to %s: %s. After that a person is asked.", formatDuration(c.Poll.Every), formatDuration(c.Poll.GiveUpAfter), c.Poll.request)
}

// undoneBy says what undoes an action.
func (c *Contract) undoneBy() string {
	if c.Undo == nil {
		return "none: the contract names no tool that undoes it"
	}
	return fmt.Sprintf("The tool %s, whose call is an action of its own. There is one for each action, however often it is asked for.", c.Undo.Tool)
}

// reviewed says when a person is asked about an action whose outcome is not known.
func (c *Contract) reviewed() string {
	if c.Class == action.BlockedAfterUnknown && c.Lookup == nil {
		return "A person is asked at once."
	}
	return fmt.Sprintf("A person is asked when nothing is left to try, and after %s without evidence.", formatDuration(c.ReviewAfter))
}

// String writes the question without an argument's value.
func (q question) String() string {
	s := fmt.Sprintf("%s %s%s", q.method, q.address.target, q.address.shape)
	if q.credential != "" {
		s += " with the credential " + q.credential
	}
	return s
}
