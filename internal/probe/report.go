package probe

import (
	"fmt"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

// Verdict is how what was found stands to what the contract says. The zero value confirms nothing.
type Verdict string

// Verdicts.
const (
	Unknown     Verdict = "unknown"
	Agrees      Verdict = "agrees"
	Contradicts Verdict = "contradicts"
)

// StoredErrors says whether the target keeps an error under its key and gives it again (IK-21).
type StoredErrors string

// What may be known of stored errors. "" means that it was not tried.
const (
	ErrorsReplayed  StoredErrors = "replayed"
	ErrorsNotStored StoredErrors = "not_stored"
	ErrorsUnknown   StoredErrors = "unknown"
)

// Report is what a probe showed.
type Report struct {
	Plan    Plan            `json:"plan"`
	Steps   []Step          `json:"steps"`
	Found   contract.Repeat `json:"found"` // unspecified where it could not be found out
	Errors  StoredErrors    `json:"stored_errors,omitempty"`
	Verdict Verdict         `json:"verdict"`
	Means   string          `json:"means"`
	At      time.Time       `json:"observed_at"`
}

// report judges what was seen.
func (e *evidence) report(p Plan, class action.Class, now time.Time) Report {
	r := Report{Plan: p, Steps: e.steps, Errors: e.storedErrors(p), At: now}
	found, clear, why := e.repeat()
	r.Found = found
	switch {
	case !clear:
		r.Verdict, r.Means = Unknown, why
	case p.Declared == contract.RepeatUnspecified:
		r.Verdict, r.Means = Agrees, "the contract promises nothing about a key that comes again; "+why
	case p.Declared == found && found == contract.ReturnsOriginalOnly:
		r.Verdict, r.Means = Agrees, why
	case p.Declared == found:
		r.Verdict, r.Means = Agrees, "the target does what the contract says"
	case p.Declared == contract.ReturnsOriginalOnly && found == contract.ReturnsOriginalRefusesChanged:
		r.Verdict, r.Means = Agrees, "the target does what the contract says, and refuses a changed request as well"
	default:
		r.Verdict, r.Means = Contradicts, why
		if class == action.RepeatableWithKey && found != contract.ReturnsOriginalOnly {
			r.Means += ": class repeatable_with_key is not true for this target"
		}
	}
	if r.Errors == ErrorsUnknown && r.Verdict == Agrees {
		r.Verdict, r.Means = Unknown, "whether errors are stored could not be found out: "+e.steps[len(e.steps)-1].Why
	}
	return r
}

// repeat is what the target does when a key comes again, in the contract's words. clear is false where it could not be
// found out; what was found is then unspecified.
func (e *evidence) repeat() (found contract.Repeat, clear bool, why string) {
	same, changed := e.step(Same), e.step(Changed)
	switch {
	case same.Finding == Original && changed.Finding == Refused:
		return contract.ReturnsOriginalRefusesChanged, true, "the same request gets the original, and a changed one is refused"
	case same.Finding == Original && changed.Finding == Original:
		return contract.ReturnsOriginalOnly, true, "a changed request under a used key is answered with the original, so an answer does not prove that what was sent was done"
	case same.Finding == Original && changed.Finding == AnotherEffect:
		return contract.RepeatUnspecified, true, "a changed request with a used key is a second effect"
	case same.Finding == AnotherEffect && changed.Finding == Refused:
		return contract.RepeatUnspecified, false, fmt.Sprintf("the target refused a changed request, so it may know the key, and yet answered the "+
			"same request in another way (%s); name with --ignore what differs each time and probe again", strings.Join(same.Differs, ", "))
	case same.Finding == AnotherEffect:
		return contract.RepeatIgnored, true, "a resend with this key is a second effect"
	case same.Finding == Refused:
		return contract.RepeatUnspecified, true, fmt.Sprintf("a resend with this key is refused (%d) although the first was done, and would be taken for a failure", same.Status)
	}
	last := e.steps[len(e.steps)-1]
	return contract.RepeatUnspecified, false, fmt.Sprintf("request %d (%s) %s: %s", len(e.steps), last.Name, last.Finding, last.Why)
}

func (e *evidence) storedErrors(p Plan) StoredErrors {
	if p.Requests[len(p.Requests)-1].Name != FailingAgain {
		return ""
	}
	switch e.finding(FailingAgain) {
	case ErrorStored:
		return ErrorsReplayed
	case ErrorNotStored:
		return ErrorsNotStored
	default:
		return ErrorsUnknown
	}
}

// Evidence is the sentence that a contract keeps, or "" where the probe confirms nothing.
func (r Report) Evidence() string {
	if r.Verdict != Agrees {
		return ""
	}
	text := fmt.Sprintf("probed %s against %s: %s", r.At.UTC().Format(time.DateOnly), r.Plan.Target, r.Found)
	switch r.Errors {
	case ErrorsReplayed:
		text += ", stored errors replayed"
	case ErrorsNotStored:
		text += ", errors not stored"
	}
	return text
}
