package probe

import (
	"fmt"

	"deed.dev/deed/internal/action"
)

// Finding is what one answer shows beside the first one.
type Finding string

// Findings.
const (
	Done             Finding = "had its effect"
	Original         Finding = "returned the original"
	AnotherEffect    Finding = "made another effect"
	Refused          Finding = "refused"
	Failed           Finding = "answered with an error"
	ErrorStored      Finding = "the same error came again"
	ErrorNotStored   Finding = "another answer came: the error was not stored"
	NotClear         Finding = "shows nothing"
	UnexpectedEffect Finding = "succeeded where an error was wanted"
)

// Step is one request and what came of it.
type Step struct {
	Request
	BytesSent int64    `json:"bytes_sent"`
	Status    int      `json:"status,omitempty"`
	Reason    string   `json:"reason,omitempty"` // why there is no whole answer
	Replayed  bool     `json:"replayed,omitempty"`
	Finding   Finding  `json:"finding"`
	Why       string   `json:"why,omitempty"`
	Differs   []string `json:"differs,omitempty"` // JSON pointers of members
}

// evidence is what was seen so far.
type evidence struct {
	steps         []Step
	first, failed answer
}

// add reads one outcome.
func (e *evidence) add(s send, out action.Outcome, ignore []string) {
	a := readAnswer(out, ignore)
	step := Step{Request: s.Request, BytesSent: out.BytesSent, Status: out.Status, Reason: a.reason, Replayed: a.replayed}
	switch s.Name {
	case First:
		e.first = a
		step.Finding, step.Why = readFirst(a)
	case Same:
		step.Finding, step.Why, step.Differs = readSame(e.first, a, s)
	case Changed:
		step.Finding, step.Why, step.Differs = readChanged(e.first, a)
	case Failing:
		e.failed = a
		step.Finding, step.Why = readFailing(a)
	case FailingAgain:
		step.Finding, step.Why, step.Differs = readFailingAgain(e.failed, a)
	}
	e.steps = append(e.steps, step)
}

// isHopeless reports that no later request could show anything, so that its effect is spared.
func (e *evidence) isHopeless() bool {
	f := e.steps[len(e.steps)-1].Finding
	return f == NotClear || f == UnexpectedEffect
}

func (e *evidence) finding(n Name) Finding {
	for _, s := range e.steps {
		if s.Name == n {
			return s.Finding
		}
	}
	return ""
}

func (e *evidence) step(n Name) Step {
	for _, s := range e.steps {
		if s.Name == n {
			return s
		}
	}
	return Step{}
}

func readFirst(a answer) (Finding, string) {
	if !a.succeeded() {
		return NotClear, "the first request has to succeed: " + said(a)
	}
	if a.replayed {
		return NotClear, "the target calls a fresh key's answer a stored one"
	}
	return Done, ""
}

func readSame(first, a answer, s send) (Finding, string, []string) {
	switch {
	case a.equals(first) && !a.replayed && !namesEffect(a, s):
		return NotClear, "the answer names nothing that tells one effect from another, so it would be equal for two effects", nil
	case a.equals(first):
		return Original, "", nil
	case a.succeeded() && a.replayed:
		return NotClear, "the target calls it a stored answer, and it is not the first one; name with --ignore what differs each time", changes(first, a)
	case a.succeeded():
		return AnotherEffect, "", changes(first, a)
	case a.refused():
		return Refused, "", nil
	default:
		return NotClear, said(a), nil
	}
}

func readChanged(first, a answer) (Finding, string, []string) {
	switch {
	case a.equals(first):
		return Original, "without looking at the change", nil
	case a.succeeded() && a.replayed:
		return NotClear, "the target calls it a stored answer, and it is not the first one; name with --ignore what differs each time", changes(first, a)
	case a.succeeded():
		return AnotherEffect, "a changed body was accepted under a used key", changes(first, a)
	case a.refused():
		return Refused, "", nil
	default:
		return NotClear, said(a), nil
	}
}

func readFailing(a answer) (Finding, string) {
	switch {
	case a.succeeded():
		return UnexpectedEffect, "choose failing arguments that the target answers with an error"
	case a.status >= 400:
		return Failed, ""
	default:
		return NotClear, said(a)
	}
}

func readFailingAgain(before, a answer) (Finding, string, []string) {
	switch {
	case a.status == 0:
		return NotClear, said(a), nil
	case a.equals(before), a.replayed:
		return ErrorStored, "", nil
	default:
		return ErrorNotStored, "", changes(before, a)
	}
}

func said(a answer) string {
	if a.status == 0 {
		return "no whole answer came (" + a.reason + ")"
	}
	return fmt.Sprintf("the target answered %d", a.status)
}

// mostChanges bounds the list of members that differ.
const mostChanges = 5

func changes(first, a answer) []string {
	if !first.json || !a.json {
		return nil
	}
	pointers := differing(first.tree, a.tree)
	return pointers[:min(len(pointers), mostChanges)]
}
