package probe

import (
	"context"
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/digest"
)

// Run writes the plan down, sends the requests in their order and says what they show. An error means that nothing was
// sent, or, with a report beside it, that the report could not be written down.
func (p *Probe) Run(ctx context.Context, executor Executor, recorder Recorder) (Report, error) {
	if p.ran {
		return Report{}, errors.New("a probe runs once: its keys are used up")
	}
	p.ran = true
	if err := recorder.Planned(ctx, p.Plan); err != nil {
		return Report{}, fmt.Errorf("the probe could not be written down, so nothing was sent: %w", err)
	}
	var seen evidence
	for i, s := range p.sends {
		d, err := s.dispatch(i + 1)
		if err != nil {
			return Report{}, fmt.Errorf("request %d could not be made: %w", i+1, err)
		}
		seen.add(s, executor.Perform(ctx, d), p.setup.Ignore)
		if seen.isHopeless() {
			break
		}
	}
	report := seen.report(p.Plan, p.setup.Contract.Class, p.setup.Now())
	if err := recorder.Observed(ctx, report); err != nil {
		return report, fmt.Errorf("the probe was made, and what it showed could not be written down: %w", err)
	}
	return report, nil
}

// dispatch is one request as an executor takes it. What allows it is the person who started the probe; the binding sees
// that it is sent as it was planned.
func (s send) dispatch(number int) (action.Dispatch, error) {
	binding, err := digest.Binding(s.Token, s.operation, "")
	if err != nil {
		return action.Dispatch{}, err
	}
	return action.Dispatch{
		Action: s.Token, Attempt: action.AttemptID(action.AttemptPrefix + randomText()), Number: number,
		Operation: s.operation, Token: string(s.Token), Allowed: binding, Binding: binding,
		Trace: action.Trace{TraceID: randomHex(16), SpanID: randomHex(8)},
	}, nil
}
