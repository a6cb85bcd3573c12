package contract

import (
	"fmt"

	"deed.dev/deed/internal/action"
)

// Answer is the answer to one of the ten questions that a tool has to stand before it goes into production.
type Answer struct {
	Question string
	Pass     bool
	Text     string
}

// String writes the answer as plain text.
func (a Answer) String() string {
	verdict := "fail"
	if a.Pass {
		verdict = "pass"
	}
	return fmt.Sprintf("%s  %s\n      %s\n", verdict, a.Question, a.Text)
}

// Check answers the ten questions for one tool. It says what the contract and deed's own rules say; whether the target
// keeps to its documentation has to be tried on the target.
func Check(c *Contract) []Answer {
	return []Answer{
		{"Does the tool take a key from its caller?", true,
			"Every call may carry dev.deed/run, dev.deed/step and dev.deed/tool_call_id. Without them a repeat is found by what it asks for."},
		{"Does the key come from durable state, and not from a hash of the arguments?", true,
			"idem_key is made of run, step and tool-call id. What goes to the target is the action's id."},
		{"Is the intent recorded before the tool runs?", true,
			"The plan is durable before the first byte is sent."},
		{"Where is the retry and where is the key: in the same place?", true, retryAndKey(c)},
		{"What happens at a crash between the effect and its record, and was it tried?", true,
			c.afterUnknown() + " Whether it was tried on this target is not in the contract: lose an answer on purpose before relying on it."},
		reconciles(c),
		approves(c),
		outlives(c),
		{"Is compensation idempotent?", true, compensates(c)},
		{"Do key, state and fresh-or-replayed stand in the trace of every step?", true,
			"Every answer and every event has the action's id, its state and whether it is fresh or replayed."},
	}
}

func retryAndKey(c *Contract) string {
	s := fmt.Sprintf("Both are deed's: at most %d attempts of one action over all layers", c.MaxAttempts)
	if c.Key.Given() {
		return s + ", each with the same key in the " + c.Key.Place() + "."
	}
	return s + "; the target takes no key."
}

func reconciles(c *Contract) Answer {
	a := Answer{Question: "Is there an unknown state, and a way out of it where the target does not deduplicate?", Pass: true}
	switch c.Class {
	case action.ReadOnly:
		a.Text = "It is read again."
	case action.RepeatableWithKey:
		a.Text = "The target deduplicates: a resend with the same key settles it. " + c.keyWindow()
		if c.Lookup != nil {
			a.Text += " After that the target is asked. " + c.whenNotFound()
		}
	default:
		if c.Lookup != nil {
			a.Text = "The target is asked, and what it finds settles it. " + c.whenNotFound()
			break
		}
		a.Text = "There is no way to ask the target, so it stays unknown until a person settles it."
	}
	return a
}

func compensates(c *Contract) string {
	const own = "An undo is another tool with a contract of its own, so it has its own action, key and class. "
	if c.Undo == nil {
		return own + "This contract names none."
	}
	return own + fmt.Sprintf("Here it is %s, once for each action.", c.Undo.Tool)
}

func approves(c *Contract) Answer {
	a := Answer{Question: "Does a person approve the exact call where nothing else protects it?", Pass: true}
	switch {
	case c.EachUse:
		a.Text = "Each action waits for a person (each_use), whose approval is bound to the resolved request."
	case !Level(c).Approval:
		a.Text = "Not needed: " + Level(c).Why
	default:
		a.Pass = false
		a.Text = "Nobody is asked before it is sent, and nothing can settle it by itself afterwards. Add each_use: true."
	}
	return a
}

func outlives(c *Contract) Answer {
	a := Answer{Question: "Does the key live longer than the longest run?", Pass: true}
	a.Text = fmt.Sprintf("deed keeps the result, and so its own key, for %s: runs have to be shorter.", formatDuration(c.KeepResult))
	if c.KeyLife > 0 {
		a.Text += " " + c.keyWindow()
		a.Pass = c.KeepResult >= c.KeyLife
	}
	return a
}

func (c *Contract) keyWindow() string {
	return fmt.Sprintf("The target keeps the key for %s; deed sends it again until %s after the first send.",
		formatDuration(c.Key.KeptFor), formatDuration(c.KeyLife))
}
