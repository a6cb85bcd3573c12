package action

import "time"

// ReviewDecision is what a reviewer says of an unknown action.
type ReviewDecision string

// Decisions of a reviewer. Each is bound to the action and to what was known of it.
const (
	Happened ReviewDecision = "happened" // it took effect: T21
	DidNot   ReviewDecision = "absent"   // it did not: T20
	Redo     ReviewDecision = "redo"     // send it once more: T18
	Abandon  ReviewDecision = "abandon"  // nobody will find out: it stays unknown and holds nobody up any more
)

// ReviewDecisions lists every decision.
var ReviewDecisions = []ReviewDecision{Happened, DidNot, Redo, Abandon}

// Transition is the move that a decision makes.
func (d ReviewDecision) Transition() Transition {
	switch d {
	case Happened:
		return T21
	case DidNot:
		return T20
	case Redo:
		return T18
	case Abandon:
		return T19
	default:
		return ""
	}
}

// NeedsEvidence reports whether a reviewer has to say what shows it.
func (d ReviewDecision) NeedsEvidence() bool { return d == Happened || d == DidNot }

// ReviewAsked is a decision that a person wants recorded. Seen is the hash of the newest event about the action that the
// person has looked at: a decision about something that has moved on since is refused.
type ReviewAsked struct {
	Action   ID
	Decision ReviewDecision
	Why      string
	Evidence string
	Seen     string
	Result   []byte // with "happened": JSON that callers get as the result; nil for none
}

// Review is a person's recorded decision about an unknown action.
type Review struct {
	ID       DecisionID
	Decision ReviewDecision
	Reviewer string   // the verified principal, as records show it
	Strength Strength // how well it was verified
	Why      string   // in the reviewer's words
	Evidence string   // where it can be seen, in the reviewer's words
	SeenSeq  int64    // the newest event about the action that the reviewer had seen
	SeenHash string
}

// MaxReviewText bounds each of a reviewer's two texts, in bytes.
const MaxReviewText = 4096

// reviewed applies what a decision changes beside the state, before the move is checked.
func (a *Action) reviewed(r Review) {
	switch r.Decision {
	case Redo: // one more send was decided, whatever the contract's budget says
		a.MaxAttempts = max(a.MaxAttempts, a.Attempt+1)
		a.Withdrawn = false // whoever decides so knows of the revocation: it is on record
	case Abandon:
		a.Abandoned = true
	}
}

// Overdue reports whether deed has been looking for evidence of an unknown action for longer than its contract says that
// it may without a person.
func (a Action) Overdue(now time.Time) bool {
	return a.State == Unknown && a.Recovery == Reconciling && !now.Before(a.UnknownAt.Add(a.ReviewAfter))
}

// Closed reports whether nothing more will become of an action by itself: it is final, or a person has closed it.
func (a Action) Closed() bool { return a.State.Final() || a.Abandoned }
