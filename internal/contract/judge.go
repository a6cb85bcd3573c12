package contract

import (
	"errors"

	"deed.dev/deed/internal/action"
)

// ruleAccepted is the rule that says that the target has taken the work on.
const ruleAccepted = "accepted_when"

// Why no rule spoke.
const (
	ruleNone       = "no_rule_matches"
	ruleSeveral    = "several_rules_match"
	ruleError      = "rule_cannot_be_evaluated"
	ruleIncomplete = "answer_incomplete"
)

// Judge says what an answer of the target proves. An answer that no rule speaks about proves nothing, whatever its
// status: a 500 may come after the effect, and a redirect too. When rules contradict each other, or one of them cannot be
// evaluated, nothing is proved either.
func (c *Contract) Judge(r action.Response) action.Verdict {
	answer := readAnswer(r, Identity{})
	var spoke []action.Verdict
	skipped := false
	for _, rule := range c.rules {
		holds, err := answer.holds(rule.expr)
		switch {
		case errors.Is(err, errIncomplete):
			skipped = true
		case err != nil:
			return action.Verdict{Rule: ruleError}
		case holds:
			spoke = append(spoke, rule.verdict)
		}
	}
	switch {
	case len(spoke) == 1 && spoke[0].Rule == ruleAccepted:
		return c.Poll.accepted(answer)
	case len(spoke) == 1:
		return spoke[0]
	case len(spoke) > 1:
		return action.Verdict{Rule: ruleSeveral}
	case skipped:
		return action.Verdict{Rule: ruleIncomplete}
	default:
		return action.Verdict{Rule: ruleNone}
	}
}
