package contract

import (
	"strings"

	"cel.dev/cel-go/common/types"
	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

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
	variables := map[string]any{"status": int64(r.Status), "headers": headerMap(r.Header), "body": nil}
	for _, rule := range c.rules {
		if rule.expr.touches("body") && !r.Truncated {
			variables["body"] = parsedBody(r.Body)
			break
		}
	}
	var spoke []action.Verdict
	skipped := false
	for _, rule := range c.rules {
		if r.Truncated && rule.expr.touches("body") {
			skipped = true
			continue
		}
		value, err := rule.expr.eval(variables)
		if err != nil {
			return action.Verdict{Rule: ruleError}
		}
		holds, ok := value.(types.Bool)
		if !ok {
			return action.Verdict{Rule: ruleError}
		}
		if holds {
			spoke = append(spoke, rule.verdict)
		}
	}
	switch {
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

// headerMap gives the header fields lower-case names, since HTTP compares them so.
func headerMap(header map[string][]string) map[string]string {
	m := make(map[string]string, len(header))
	for _, name := range sortedKeys(header) {
		lower, value := strings.ToLower(name), strings.Join(header[name], ", ")
		if first, twice := m[lower]; twice {
			value = first + ", " + value
		}
		m[lower] = value
	}
	return m
}

// parsedBody is the body as JSON, or null when it is none.
func parsedBody(body []byte) any {
	value, err := canonical.ParseMax(body, mostResponse)
	if err != nil {
		return nil
	}
	return value
}
