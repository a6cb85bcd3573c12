package action

import "time"

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
	Unrecorded bool // it was sent, and what came of it could not be written down
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
	Job        string // the target's own id of the work that it has taken on; "" when there is none, or it is not to be shown
	SettledBy  string // what settled it, if not the answer to an attempt: one of the words below
	Attempts   []Attempt
	Approval   *Approval // the request that the action waits for; nil when it waits for nobody
	Seq        int64     // journal place of the newest event about the action
	Hash       string    // of that event: the caller then holds evidence of its own
}

// The words for what settled an action, if not the answer to one of its attempts.
const (
	SettledByLookUp   = "look_up"     // the target was asked
	SettledByPoll     = "poll"        // the target was asked about the job that it had taken on
	SettledByLate     = "late_answer" // the attempt's own answer, after it was given up on
	SettledByReviewer = "reviewer"    // a person's recorded finding
)

// NeedsHumanApproval is the type of error where deed can do nothing more until a person decides.
const NeedsHumanApproval = "NeedsHumanApproval"

// Retryable reports whether the same call, unchanged, may be made again.
func (a Answer) Retryable() bool {
	if a.Code == "" || a.Action.neverKnown() && !a.Held {
		return false
	}
	return Codes[a.Code].Retryable
}

// ErrorType is NeedsHumanApproval where a person is waited for, beside a code that says what is known; "" elsewhere.
func (a Answer) ErrorType() string {
	act := a.Action
	if !a.Held && (act.State == AwaitingApproval || act.waitsForReview()) {
		return NeedsHumanApproval
	}
	return ""
}

// neverKnown reports whether a person has closed the action without knowing what came of it.
func (a Action) neverKnown() bool { return a.State == Unknown && a.Abandoned }

func (a Action) waitsForReview() bool {
	return a.State == Unknown && a.Recovery == ReviewRequired && !a.Abandoned
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
	case a.Action.Purged:
		return []string{NextChange}
	case s == Completed:
		if a.RepeatOf != "" {
			return []string{NextRepeat}
		}
		return []string{}
	case a.Action.neverKnown():
		return []string{NextChange}
	case a.Action.waitsForReview():
		return []string{NextReview, NextStatus}
	case a.Action.Delegated():
		return []string{NextStatus, NextWait, NextReview}
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

// StateCode is the error code that the action's state answers with, "" where there is none.
func (a Answer) StateCode() Code {
	act := a.Action
	switch act.State {
	case Completed:
		if act.Purged {
			return CodeResultExpired
		}
		return ""
	case Failed:
		switch {
		case act.FailureClass == NotSent && act.AttemptsLeft() <= 0:
			return CodeAttemptsExhausted
		case act.FailureClass == NotSent:
			return CodeNotSent
		case a.Attached, act.FailureClass == NoEffectConfirmed: // nobody refused it: it was found so afterwards
			return CodePreviouslyFailed
		default:
			return CodeTargetRefused
		}
	case Rejected:
		switch act.RejectReason {
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
		if !a.Unrecorded {
			return CodeInProgress
		}
		return CodeOutcomeUnknown
	default:
		return CodeOutcomeUnknown
	}
}
