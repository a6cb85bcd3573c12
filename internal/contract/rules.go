package contract

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"deed.dev/deed/internal/action"
)

// rules compiles the three conditions on an answer.
func (f *faults) rules(c *Contract, raw file) {
	for _, r := range []struct {
		name, source string
		verdict      action.Verdict
	}{
		{"done_when", raw.DoneWhen, action.Verdict{Certainty: action.EffectProven}},
		{"no_effect_when", raw.NoEffectWhen, action.Verdict{Certainty: action.NoEffectProven}},
		{"retry_when", raw.RetryWhen, action.Verdict{Certainty: action.NoEffectProven, Retry: true}},
	} {
		expr := f.condition("/"+r.name, r.source, ofAnswer)
		if expr == nil {
			continue
		}
		r.verdict.Rule = r.name
		c.rules = append(c.rules, rule{r.name, expr, r.verdict})
	}
	f.contradictions(c)
}

// contradictions finds rules that hold for one status together. Such an answer would prove nothing, which is better said
// when the contract is loaded.
func (f *faults) contradictions(c *Contract) {
	said := map[string]bool{}
	for status := 100; status < 600; status++ {
		variables := map[string]any{"status": int64(status), "headers": map[string]string{}, "body": nil}
		var first *rule
		for i := range c.rules {
			r := &c.rules[i]
			if value, err := r.expr.eval(variables); err != nil || value != types.True {
				continue
			}
			if first == nil {
				first = r
				continue
			}
			if pair := first.name + r.name; !said[pair] {
				said[pair] = true
				f.add("/"+r.name, fmt.Sprintf("status %d makes %s true as well, so such an answer would prove nothing", status, first.name),
					"let only one of them hold")
			}
		}
	}
}
