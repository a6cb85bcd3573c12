package graph

import (
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/store/eventlog"
)

// ApprovalsReport is what a journal and a policy together say about the decisions of people.
type ApprovalsReport struct {
	First     int64             `json:"first_record"`
	Last      int64             `json:"last_record"` // -1 when there was none
	Decisions []CheckedDecision `json:"decisions"`
	Sent      int               `json:"sent_on_approval"` // dispatches that a person's approval allowed, each held against it
	Problems  []ApprovalProblem `json:"problems"`
}

// CheckedDecision is one signed decision.
type CheckedDecision struct {
	Seq      int64                   `json:"seq"`
	Approval action.DecisionID       `json:"approval_id"`
	Action   action.ID               `json:"action_id"`
	Approver string                  `json:"approver"`
	Decision action.ApprovalDecision `json:"decision"`
	Strength action.ApprovalStrength `json:"approval_strength"` // as the signature shows it; "" when it shows nothing
	At       string                  `json:"at"`
}

// ApprovalProblem is a record that the decisions do not carry.
type ApprovalProblem struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"`
}

// checker follows the requests of a journal.
type checker struct {
	policy   *approval.Policy
	report   ApprovalsReport
	requests map[action.DecisionID]action.Approval
	allowed  map[action.ID]action.Binding
}

// Approvals checks every signature of an approver in a journal against a policy, and every action that was allowed by a
// person against what was signed. It needs nothing but the two: whoever has them comes to the same report. A request that
// stands in an earlier part of the journal cannot be held against its answer, and is named as a problem.
func Approvals(records Source, policy *approval.Policy) (ApprovalsReport, error) {
	c := &checker{policy: policy, requests: map[action.DecisionID]action.Approval{}, allowed: map[action.ID]action.Binding{}}
	c.report = ApprovalsReport{Last: -1, Decisions: []CheckedDecision{}, Problems: []ApprovalProblem{}}
	err := records(func(seq int64, body []byte) error {
		if c.report.Last < 0 {
			c.report.First = seq
		}
		c.report.Last = seq
		rec, err := eventlog.Decode(body)
		if errors.Is(err, eventlog.ErrNoEvent) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		c.add(seq, rec.Event)
		return nil
	})
	if err != nil {
		return c.report, fmt.Errorf("read the journal: %w", err)
	}
	return c.report, nil
}

func (c *checker) wrong(seq int64, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, ApprovalProblem{seq, fmt.Sprintf(format, args...)})
}

func (c *checker) add(seq int64, ev action.Event) {
	switch {
	case ev.ApprovalBody != nil:
		c.requests[ev.ApprovalBody.ID] = *ev.ApprovalBody
	case ev.DecidedBody != nil:
		c.decided(seq, *ev.DecidedBody)
	case ev.VoidedBody != nil:
		if p, ok := c.requests[ev.VoidedBody.Approval]; ok {
			p, err := p.Void(*ev.VoidedBody, ev.Time)
			if err != nil {
				c.wrong(seq, "%s is voided and cannot be: %v", p.ID, err)
			}
			c.requests[p.ID] = p
		}
	case ev.MoveBody != nil:
		c.moved(seq, ev)
	}
}

func (c *checker) decided(seq int64, d action.Decided) {
	strength, err := c.policy.InTime(approval.StatementIn(d), d.Signed, d.At)
	c.report.Decisions = append(c.report.Decisions, CheckedDecision{seq, d.Approval, d.Action, d.Approver, d.Decision, strength,
		d.At.UTC().Format("2006-01-02T15:04:05.000000Z")})
	switch {
	case err != nil:
		c.wrong(seq, "the decision of %s about %s does not count: %v", d.Approver, d.Approval, err)
		return
	case strength != d.Strength:
		c.wrong(seq, "the decision of %s about %s is recorded as %s, and its signature is by %s", d.Approver, d.Approval, d.Strength, strength)
	}
	p, ok := c.requests[d.Approval]
	if !ok {
		c.wrong(seq, "%s is answered, and its request is not in this part of the journal", d.Approval)
		return
	}
	next, err := p.Decide(d)
	if err != nil {
		c.wrong(seq, "the decision of %s does not fit %s: %v", d.Approver, d.Approval, err)
		return
	}
	c.requests[p.ID] = next
}

// moved holds what was allowed, and what was sent, against what was signed.
func (c *checker) moved(seq int64, ev action.Event) {
	m := ev.MoveBody
	if b := m.Binding; b != nil {
		c.allowed[ev.Action] = *b
	}
	b := c.allowed[ev.Action]
	if b.Kind != action.ByPerson || m.Transition != action.T6 && m.Started == nil {
		return
	}
	p := c.requests[b.Decision]
	switch {
	case !p.Covers(action.Action{ID: ev.Action, Run: ev.Run}, b):
		c.wrong(seq, "%s goes on (%s) by %s, which does not allow it: it is %q", ev.Action, m.Transition, b.Decision, p.State)
	case p.Lapsed(ev.Time):
		c.wrong(seq, "%s goes on (%s) by %s, which had expired", ev.Action, m.Transition, b.Decision)
	case m.Started != nil:
		c.report.Sent++
	}
}
