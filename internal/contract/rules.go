package contract

import (
	"cmp"
	"fmt"

	"cel.dev/cel-go/common/types"
	"deed.dev/deed/internal/action"
)

// rules compiles the conditions on an answer.
func (f *faults) rules(c *Contract, raw file) {
	accepted := ""
	if raw.Poll != nil && c.Class != action.ReadOnly {
		accepted = raw.Poll.AcceptedWhen
	}
	for _, r := range []struct {
		path, name, source string
		verdict            action.Verdict
	}{
		{"/done_when", "done_when", raw.DoneWhen, action.Verdict{Certainty: action.EffectProven}},
		{"/no_effect_when", "no_effect_when", raw.NoEffectWhen, action.Verdict{Certainty: action.NoEffectProven}},
		{"/retry_when", "retry_when", raw.RetryWhen, action.Verdict{Certainty: action.NoEffectProven, Retry: true}},
		{"/poll/accepted_when", ruleAccepted, accepted, action.Verdict{}},
	} {
		expr := f.condition(r.path, r.source, ofAnswer)
		if expr == nil {
			continue
		}
		r.verdict.Rule = r.name
		c.rules = append(c.rules, rule{r.path, r.name, expr, r.verdict})
	}
	f.contradictions(c.rules...)
}

// contradictions finds rules that hold for one status together. Such an answer would prove nothing, which is better said
// when the contract is loaded. A rule that cannot be evaluated without an answer is left to Judge and Find.
func (f *faults) contradictions(rules ...rule) {
	said, mute := map[string]bool{}, map[string]bool{}
	for status := 100; status < 600; status++ {
		variables := map[string]any{"status": int64(status), "headers": map[string]string{}, "body": nil}
		first := ""
		for _, r := range rules {
			if r.expr == nil || mute[r.name] || r.expr.touches("body") || r.expr.touches("deed") {
				continue
			}
			value, err := r.expr.eval(variables)
			if err != nil {
				mute[r.name] = true
				continue
			}
			if value != types.True {
				continue
			}
			if pair := first + r.name; first != "" && !said[pair] {
				said[pair] = true
				f.add(r.path, fmt.Sprintf("status %d makes %s true as well, so such an answer would prove nothing", status, first),
					"let only one of them hold")
			}
			first = cmp.Or(first, r.name)
		}
	}
}
