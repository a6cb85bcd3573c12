package action

import "time"

// Work is what deed may do about an action by itself. The zero value is nothing.
type Work string

// Kinds of work.
const (
	WorkNone   Work = ""
	WorkSend   Work = "send"   // one more attempt
	WorkAsk    Work = "ask"    // a question to the target: look-up or poll
	WorkClose  Work = "close"  // absence is proved, and it will not be sent again
	WorkReview Work = "review" // nothing that deed may do can settle it: a person has to
)

// Next is deed's whole retry rule: what may be done about the action now, and as which transition. It is the one place
// that decides to send; docs/retry-rule.md is printed from it. behind says that the wall clock is earlier than the newest
// journal time: every deadline that would allow a resend then counts as lapsed.
func (a Action) Next(now time.Time, behind bool) (Work, Transition) {
	left := a.AttemptsLeft() > 0 && !a.Withdrawn && !a.Lapsed(now, behind)
	switch {
	case a.State == Authorized && left:
		return WorkSend, T11
	case a.State == Dispatched && a.Job != "":
		return WorkAsk, ""
	case a.State != Unknown || a.Recovery != Reconciling || a.Abandoned:
		return WorkNone, ""
	case a.Job != "":
		return WorkAsk, ""
	case a.Class == ReadOnly && left:
		return WorkSend, T18
	case a.Class == RepeatableWithKey && left && !behind && now.Before(a.ResendBefore):
		return WorkSend, T18
	case a.CanAsk && a.Finding != ProvedAbsent:
		return WorkAsk, ""
	case a.CanAsk && left && (a.Class == StatusQueryable || a.Class == RepeatableWithKey):
		return WorkSend, T18
	case a.CanAsk:
		return WorkClose, T20
	default:
		return WorkReview, T19
	}
}

// MaySend reports whether another attempt of the action may be sent now, and as which transition.
func (a Action) MaySend(now time.Time, behind bool) (Transition, bool) {
	work, t := a.Next(now, behind)
	if work != WorkSend {
		return "", false
	}
	return t, true
}

// RetryRule is the rule of Next as people read it, a row for each case.
var RetryRule = []struct{ State, Class, Sent, Why string }{
	{"authorized", "any", "yes, while attempts are left", "nothing that could have had an effect was sent, or the target promised that it had none"},
	{"authorized or unknown, and what a person allowed has expired or was revoked", "any", "no; authorized: a person is asked anew, or it is rejected; unknown: the target is asked, or a person settles it", "nothing is sent on a word that counts no more"},
	{"dispatched with a job id, unknown with a job id", "any", "no; the target is asked", "it has taken the work on and says when it is done"},
	{"unknown", string(ReadOnly), "yes, while attempts are left", "reading again changes nothing"},
	{"unknown", string(RepeatableWithKey), "yes, with the same token, before resend_before; from then on as status_queryable if it has a look-up, else no", "the target answers a known token with its first result, as long as it keeps the token"},
	{"unknown", string(StatusQueryable), "only after an authoritative and settled \"absent\"; until then the target is asked", "anything less proves nothing"},
	{"unknown", string(BlockedAfterUnknown), "no; only a person's redo sends it again", "nothing can prove what happened; a look-up may still find it"},
	{"unknown, closed by a person or waiting for one", "any", "no; only a person's redo sends it again", "a person decides"},
	{"dispatched, completed, failed, rejected, accepted, awaiting_approval", "any", "no", "an attempt is running, or everything is known, or nobody has allowed it"},
}

// Settlement is where an attempt's outcome leads.
type Settlement struct {
	Transition   Transition
	Reason       string
	FailureClass FailureClass
	Recovery     Recovery
	ResendOver   bool // the target has a stored answer for this token, and it proves nothing
}

// Settle chooses the transition for an outcome of the running attempt. Whatever is not proved is unknown. That a resend
// had no effect proves nothing about the attempt before it, whose outcome is still open.
func (a Action) Settle(o Outcome) Settlement {
	switch {
	case o.Certainty == EffectProven:
		return Settlement{Transition: T12}
	case a.Doubted:
		return a.unproved(o)
	case o.Certainty == NoEffectProven && o.Retry && a.AttemptsLeft() > 0:
		return Settlement{Transition: T14, Reason: o.Reason}
	case o.Certainty == NoEffectProven && o.State == AttemptNotSent && o.BytesSent == 0:
		return Settlement{Transition: T15, Reason: o.Reason, FailureClass: NotSent}
	case o.Certainty == NoEffectProven && o.State != AttemptNotSent && o.Status != 0:
		return Settlement{Transition: T13, Reason: o.Reason, FailureClass: RejectedByTarget}
	default:
		return a.unproved(o)
	}
}

func (a Action) unproved(o Outcome) Settlement {
	return Settlement{Transition: T16, Reason: o.Reason, Recovery: a.recovery(o), ResendOver: a.storedAnswer(o)}
}

// recovery is what an action that has just become unknown waits for: evidence, as long as there is a way to get any.
func (a Action) recovery(o Outcome) Recovery {
	resendable := a.Class == RepeatableWithKey && !a.storedAnswer(o) || a.Class == ReadOnly
	switch {
	case a.CanAsk || a.Job != "":
		return Reconciling
	case resendable && a.AttemptsLeft() > 0:
		return Reconciling
	default:
		return ReviewRequired
	}
}

// storedAnswer reports whether a resend was answered without proving the effect. The target would answer so again, out of
// its memory, unless it asked to be tried later.
func (a Action) storedAnswer(o Outcome) bool {
	return a.Class == RepeatableWithKey && o.Status != 0 && a.Attempt > 1 && !o.Retry
}

// Pause is how long to wait before the next attempt of an action, the first being number 1.
func Pause(attempt int) time.Duration {
	const first, longest = 50 * time.Millisecond, 2 * time.Second
	p := first
	for range attempt - 1 {
		if p *= 2; p >= longest {
			return longest
		}
	}
	return p
}

// AskAgain is how long to wait before the target is asked again, after it was asked so often in vain.
func AskAgain(asked int) time.Duration {
	const first, longest = time.Second, 5 * time.Minute
	p := first
	for range asked - 1 {
		if p *= 2; p >= longest {
			return longest
		}
	}
	return p
}
