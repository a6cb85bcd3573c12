package action

import "time"

// MaySend is deed's whole retry rule: whether another attempt of the action may be sent now, and as which transition. It
// is the one place that decides to send; docs/retry-rule.md is printed from it. behind says that the wall clock is
// earlier than the newest journal time: every deadline that would allow a resend then counts as lapsed.
func (a Action) MaySend(now time.Time, behind bool) (Transition, bool) {
	if a.AttemptsLeft() <= 0 {
		return "", false
	}
	switch {
	case a.State == Authorized:
		return T11, true
	case a.State != Unknown || a.Recovery == ReviewRequired:
		return "", false
	case a.Class == ReadOnly:
		return T18, true
	case a.Class == RepeatableWithKey && !behind && now.Before(a.ResendBefore):
		return T18, true
	default:
		return "", false
	}
}

// RetryRule is the rule of MaySend as people read it, a row for each case.
var RetryRule = []struct{ State, Class, Sent, Why string }{
	{"authorized", "any", "yes, while attempts are left", "nothing that could have had an effect was sent, or the target promised that it had none"},
	{"unknown", string(ReadOnly), "yes, while attempts are left", "reading again changes nothing"},
	{"unknown", string(RepeatableWithKey), "yes, with the same token, before resend_before", "the target answers a known token with its first result"},
	{"unknown", string(StatusQueryable), "no", "the target has to be asked first"},
	{"unknown", string(BlockedAfterUnknown), "no", "nothing can prove what happened; a person decides"},
	{"dispatched, completed, failed, rejected, accepted, awaiting_approval", "any", "no", "an attempt is running, or everything is known, or nobody has allowed it"},
}

// Settlement is where an attempt's outcome leads.
type Settlement struct {
	Transition   Transition
	Reason       string
	FailureClass FailureClass
	Recovery     Recovery
}

// Settle chooses the transition for an outcome of the running attempt. Whatever is not proved is unknown. That a resend
// had no effect proves nothing about the attempt before it, whose outcome is still open.
func (a Action) Settle(o Outcome) Settlement {
	switch {
	case o.Certainty == EffectProven:
		return Settlement{Transition: T12}
	case a.Doubted:
		return Settlement{Transition: T16, Reason: o.Reason, Recovery: a.recovery(o)}
	case o.Certainty == NoEffectProven && o.Retry && a.AttemptsLeft() > 0:
		return Settlement{Transition: T14, Reason: o.Reason}
	case o.Certainty == NoEffectProven && o.State == AttemptNotSent && o.BytesSent == 0:
		return Settlement{Transition: T15, Reason: o.Reason, FailureClass: NotSent}
	case o.Certainty == NoEffectProven && o.State != AttemptNotSent && o.Status != 0:
		return Settlement{Transition: T13, Reason: o.Reason, FailureClass: RejectedByTarget}
	default:
		return Settlement{Transition: T16, Reason: o.Reason, Recovery: a.recovery(o)}
	}
}

// recovery is what an action that has just become unknown waits for. A resend that was answered without proving the effect
// would be answered so again, unless the target asked to be tried later: a person has to look.
func (a Action) recovery(o Outcome) Recovery {
	switch {
	case a.Class == BlockedAfterUnknown || a.Class == "":
		return ReviewRequired
	case a.Class == StatusQueryable: // this version asks no target, so nobody but a person will find out
		return ReviewRequired
	case a.Class == RepeatableWithKey && o.Status != 0 && a.Attempt > 1 && !o.Retry:
		return ReviewRequired
	case (a.Class == RepeatableWithKey || a.Class == ReadOnly) && a.AttemptsLeft() <= 0:
		return ReviewRequired
	default:
		return Reconciling
	}
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
