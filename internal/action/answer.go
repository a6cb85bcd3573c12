package action

import (
	"fmt"
	"time"
)

// EffectMode says whether an answer comes from a new effect or from a record.
type EffectMode string

// Effect modes.
const (
	Fresh    EffectMode = "fresh"  // this call's own send
	Replay   EffectMode = "replay" // from the record of an earlier send
	NoEffect EffectMode = "none"   // nothing was sent for this call and nothing replayed
)

// Answer is what a caller gets: the action as it stands, the words for people and the facts for machines.
type Answer struct {
	Action     Action
	Attached   bool // the call belongs to an action that existed before it
	Held       bool // the action stands in the way of another call
	Match      MatchKind
	EffectMode EffectMode
	Code       Code // "" when the effect is proved
	Result     []byte
	MediaType  string
	Complete   bool // the whole of the target's answer is in Result
	Withheld   bool
	ResultSize int64
	RepeatOf   string // the token that a deliberate repeat cites; only with a completed result
	RetryAfter time.Duration
	Attempts   []Attempt
	Seq        int64  // journal place of the newest event about the action
	Hash       string // of that event: the caller then holds evidence of its own
}

// Retryable reports whether the same call, unchanged, may be made again.
func (a Answer) Retryable() bool {
	if a.Code == "" {
		return false
	}
	return Codes[a.Code].Retryable
}

// The words that an answer's next may hold.
const (
	NextWait   = "wait"              // make the same call again later: it attaches
	NextStatus = "ask_status"        // look at the action by its id
	NextReview = "ask_for_review"    // a person has to settle it
	NextRetry  = "retry"             // make the same call again now or after retry_after_seconds
	NextRepeat = "repeat_on_purpose" // do it a second time, with repeat_of
	NextChange = "change_the_call"   // another call is needed
)

// Next lists what the caller can do, best first.
func (a Answer) Next() []string {
	switch s := a.Action.State; {
	case a.Held:
		return []string{NextWait, NextStatus, NextReview}
	case s == Completed:
		if a.RepeatOf != "" {
			return []string{NextRepeat}
		}
		return []string{}
	case s == Unknown && a.Action.Recovery == ReviewRequired:
		return []string{NextReview, NextStatus}
	case s == Unknown, s == Dispatched:
		return []string{NextWait, NextStatus, NextReview}
	case s == AwaitingApproval:
		return []string{NextWait, NextStatus}
	case s == Authorized, s == Accepted:
		return []string{NextRetry}
	case s == Failed && a.Action.FailureClass == NotSent && a.Code != CodeAttemptsExhausted:
		return []string{NextRetry, NextChange}
	case s == Rejected && !a.Action.RejectReason.Decision():
		return []string{NextRetry}
	default:
		return []string{NextChange}
	}
}

// CodeFor is the error code that an action in this state answers with.
func CodeFor(a Action, attached bool) Code {
	switch a.State {
	case Completed:
		return ""
	case Failed:
		switch {
		case a.FailureClass == NotSent && a.AttemptsLeft() <= 0:
			return CodeAttemptsExhausted
		case a.FailureClass == NotSent:
			return CodeNotSent
		case attached:
			return CodePreviouslyFailed
		default:
			return CodeTargetRefused
		}
	case Rejected:
		switch a.RejectReason {
		case VaultLocked:
			return CodeVaultLocked
		case Expired, Cancelled: // nobody refused it: an equal call is a new action
			return CodeTryLater
		}
		return CodeRejected
	case AwaitingApproval:
		return CodeNeedsApproval
	case Accepted, Authorized:
		return CodeTryLater
	case Dispatched:
		return CodeInProgress
	default:
		return CodeOutcomeUnknown
	}
}

// Sentence says in plain words what is known, what was not done and why.
func (a Answer) Sentence() string {
	act := a.Action
	if a.Held {
		return a.heldSentence()
	}
	prefix := ""
	if a.Attached {
		prefix = fmt.Sprintf("Nothing new was done; this is %s of %s. ", act.ID, clock(act.AcceptedAt))
	}
	return prefix + a.stateSentence() + a.repeatSentence()
}

func (a Answer) heldSentence() string {
	act := a.Action
	if act.State.Final() {
		return fmt.Sprintf("Nothing was sent: an equal call was made %s by a holder of the same token, and it is not known "+
			"to be yours (%s). Give the call a run of its own (dev.deed/run) to tell them apart.",
			clock(act.AcceptedAt), act.ID)
	}
	if act.State.Effect() == EffectNo {
		return fmt.Sprintf("Nothing was sent: an equal call (%s of %s) waits to be tried, and it is not known to be yours. Give the call "+
			"a run of its own (dev.deed/run) to tell them apart.", act.ID, clock(act.AcceptedAt))
	}
	return fmt.Sprintf("Nothing was sent: this call is a possible duplicate of %s or touches what it touches. %s is %s since %s, "+
		"and its effect may have happened. It has to be settled first.",
		act.ID, act.ID, act.State, clock(act.DispatchedAt))
}

func (a Answer) stateSentence() string {
	act := a.Action
	switch act.State {
	case Completed:
		s := fmt.Sprintf("Done, once: the target answered %d.", act.TargetStatus)
		if a.Attached && act.Delivery != Delivered {
			s = fmt.Sprintf("It completed at %s (target status %d), but its answer is not known to have arrived; here it is.",
				clock(act.FinishedAt), act.TargetStatus)
		}
		if a.Withheld {
			return s + " The answer's content is withheld, since it could not be searched for secrets."
		}
		if !a.Complete {
			return s + " Only a part of the answer arrived; the effect is proved all the same."
		}
		return s
	case Failed:
		return a.failedSentence()
	case Rejected:
		if act.RejectReason == Expired || act.RejectReason == Cancelled {
			return fmt.Sprintf("It ended before anything took effect (%s). An equal call is a new action.", act.RejectReason)
		}
		return fmt.Sprintf("Refused (%s), decision %s: nothing was sent.", act.RejectReason, orNone(string(act.Binding.Decision)))
	case AwaitingApproval:
		return "Waiting for a person to approve it; nothing was sent yet."
	case Accepted, Authorized:
		if act.Reason != "" {
			return fmt.Sprintf("Nothing has taken effect yet (%s, attempt %d of %d). The same call tries again under the same action.",
				act.Reason, act.Attempt, act.MaxAttempts)
		}
		return "Nothing was sent yet. The same call carries it on."
	case Dispatched:
		return "It was sent and is still running. Do not send it in another way; make the same call to wait for it."
	default:
		return a.unknownSentence()
	}
}

func (a Answer) failedSentence() string {
	act := a.Action
	switch act.FailureClass {
	case RejectedByTarget:
		return fmt.Sprintf("The target refused it (%s, status %d), and its contract says that a refusal like this comes before any effect.",
			orNone(act.Reason), act.TargetStatus)
	case NotSent:
		left := "No attempt is left."
		if act.AttemptsLeft() > 0 {
			left = "The same call tries again under the same action."
		}
		return fmt.Sprintf("Nothing was sent: %s. %s", orNone(act.Reason), left)
	default:
		return "It is confirmed that it had no effect."
	}
}

func (a Answer) unknownSentence() string {
	act := a.Action
	if act.Abandoned {
		return fmt.Sprintf("It was sent at %s, and it will never be known whether it took effect: a reviewer has closed it so. "+
			"It was not sent again.", clock(act.DispatchedAt))
	}
	s := fmt.Sprintf("It was sent at %s and what came of it is not known (%s). It may have taken effect. ",
		clock(act.DispatchedAt), orNone(act.Reason))
	if act.Recovery == ReviewRequired {
		return s + "There is no way to find out by itself, so it was not sent again; a person has to settle it."
	}
	return s + "It was not sent again; the same call attaches to it."
}

func (a Answer) repeatSentence() string {
	if a.RepeatOf == "" || !a.Attached {
		return ""
	}
	return fmt.Sprintf(" To do it again on purpose, pass repeat_of=%s.", a.RepeatOf)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("15:04:05Z on 2006-01-02")
}

func orNone(s string) string {
	if s == "" {
		return "no reason recorded"
	}
	return s
}
