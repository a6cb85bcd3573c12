package action

import (
	"fmt"
	"strings"
	"time"
)

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
		return a.completedSentence()
	case Failed:
		return a.failedSentence()
	case Rejected:
		if act.RejectReason == Expired || act.RejectReason == Cancelled {
			return fmt.Sprintf("It ended before anything took effect (%s). An equal call is a new action.", act.RejectReason)
		}
		return fmt.Sprintf("Refused (%s), decision %s: nothing was sent.", act.RejectReason, orNone(string(act.Binding.Decision)))
	case AwaitingApproval:
		return a.approvalSentence()
	case Accepted, Authorized:
		if act.Reason == ReasonNotAnchored {
			return "Nothing has taken effect yet: " + NotAnchored + ". The same call carries it on."
		}
		if act.Reason != "" {
			return fmt.Sprintf("Nothing has taken effect yet (%s, attempt %d of %d). The same call tries again under the same action.",
				act.Reason, act.Attempt, act.MaxAttempts)
		}
		return "Nothing was sent yet. The same call carries it on."
	case Dispatched:
		if act.Delegated() {
			return a.delegatedSentence()
		}
		if a.Unrecorded {
			return fmt.Sprintf("It was sent at %s, and what came of it could not be written down. It may have taken effect. Do not send it in "+
				"another way: the next start of deed finds it, and the same call is then told what is known.", clock(act.DispatchedAt))
		}
		return "It was sent and is still running. Do not send it in another way; make the same call to wait for it."
	default:
		return a.unknownSentence()
	}
}

// ReasonNotAnchored is why a send waits while too much of the journal is kept by the gateway alone, and NotAnchored says so
// in words. It is a reason of answers, and on record for refused calls only.
const (
	ReasonNotAnchored = "not_anchored"
	NotAnchored       = "deed sends nothing new until the newest records of its journal are kept outside as well"
)

// approvalSentence says what a person is asked. It names what is on record, never what the agent has said.
func (a Answer) approvalSentence() string {
	p := a.Approval
	if p == nil {
		return "Waiting for a person to approve it; nothing was sent yet."
	}
	what := "approve " + a.Action.place()
	if p.Rule == AsksRun {
		what = "authorize the run of this agent's process"
	}
	s := fmt.Sprintf("Waiting for a person to %s (request %s, until %s); nothing was sent yet.", what, p.ID, clock(p.Expires))
	if p.Needed > 1 {
		s += fmt.Sprintf(" %d of %d have approved it.", len(p.Decisions), p.Needed)
	}
	return s
}

// place is the resolved destination of an action, and the credential that goes there.
func (a Action) place() string {
	s := a.Method + " " + a.Target.String() + a.Template
	if a.Credential != "" {
		s += " with the credential " + a.Credential
	}
	return s
}

func (a Answer) completedSentence() string {
	act := a.Action
	how, short := a.evidence()
	if act.Purged {
		return fmt.Sprintf("It completed at %s (%s), and its result was kept for as long as its contract says and is erased. "+
			"It was not done again. Something new needs a key of its own.", clock(act.FinishedAt), short)
	}
	if !a.Attached || act.Delivery == Delivered {
		return fmt.Sprintf("Done, once: %s.", how) + a.answerSentence()
	}
	s := fmt.Sprintf("It completed at %s (%s)", clock(act.FinishedAt), short)
	if act.Result == "" {
		return s + ". Its target's answer is not on record, so there is none to show."
	}
	s += ", but its answer "
	if act.Delivery == DeliveryInterrupted {
		s += "was interrupted on its way and "
	}
	s += "is not known to have arrived"
	switch {
	case a.Withheld:
		s += "."
	case !a.Complete:
		s += "; here is what there is of it."
	default:
		s += "; here it is."
	}
	return s + a.answerSentence()
}

// answerSentence says what is not as usual about the target's answer that is shown.
func (a Answer) answerSentence() string {
	switch {
	case a.Withheld:
		return " The answer's content is withheld, since it could not be searched for secrets."
	case !a.Complete:
		return " Only a part of the answer arrived; the effect is proved all the same."
	case a.SettledBy == SettledByReviewer && a.Action.Result != "":
		return " The answer shown came before that, and it is not what proves the effect."
	default:
		return ""
	}
}

// evidence says what proves the effect, as a clause and in few words. A status that was not what proved it is not named.
func (a Answer) evidence() (how, short string) {
	status := a.Action.TargetStatus
	switch {
	case a.SettledBy == SettledByLookUp:
		return "the target was asked afterwards, and it has the effect", "a look-up found it"
	case a.SettledBy == SettledByPoll:
		return "the target has finished the work that it had accepted", "the target said so when it was asked about its job"
	case a.SettledBy == SettledByReviewer:
		return "a reviewer has found that it took effect", "a reviewer found it"
	case a.SettledBy == SettledByLate && status != 0:
		return fmt.Sprintf("the target's answer came late, and it was %d", status), fmt.Sprintf("target status %d, which came late", status)
	case a.SettledBy == SettledByLate:
		return "the target's answer came late", "the answer came late"
	case status != 0:
		return fmt.Sprintf("the target answered %d", status), fmt.Sprintf("target status %d", status)
	default:
		return "what proves it is on record", "what proves it is on record"
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
	}
	const confirmed = "It is confirmed that it had no effect"
	switch a.SettledBy {
	case SettledByLookUp:
		return confirmed + ": the target was asked afterwards, and its contract says that its answer proves it."
	case SettledByPoll:
		return confirmed + ": the target has ended the work that it had accepted, and its contract says that it ended without one."
	case SettledByLate:
		return confirmed + ": the target's answer came late, and its contract says that a refusal like this comes before any effect."
	case SettledByReviewer:
		return confirmed + ": a reviewer has found so."
	default:
		return confirmed + "."
	}
}

// delegatedSentence is about an action that the target has taken on and finishes later.
func (a Answer) delegatedSentence() string {
	return fmt.Sprintf("The target has accepted it and is still working on it%s. Nothing has to be sent again; ask for its status.%s",
		a.job(), a.lockedSentence())
}

// job names the target's own id of the work. The target chose it, so a model reads it only if it is a plain word.
func (a Answer) job() string {
	const longest = 64
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	if a.Job == "" || len(a.Job) > longest || strings.ContainsFunc(a.Job, func(c rune) bool { return !plain(c) }) {
		return ""
	}
	return fmt.Sprintf(" (job %s)", a.Job)
}

// lockedSentence says why deed asks nothing and sends nothing at the moment, if the vault is why.
func (a Answer) lockedSentence() string {
	if a.Action.Reason != string(VaultLocked) {
		return ""
	}
	return " The credentials are locked, so deed can find out nothing now; it goes on by itself when they are unlocked."
}

func (a Answer) unknownSentence() string {
	act := a.Action
	if act.neverKnown() {
		return fmt.Sprintf("It was sent at %s, and it will never be known whether it took effect: a reviewer has closed it so. "+
			"It is not sent again. A new call with a key of its own, or without one, is a new action, and may do it a second time.", clock(act.DispatchedAt))
	}
	if act.Delegated() && !act.waitsForReview() {
		return a.delegatedSentence()
	}
	s := fmt.Sprintf("It was sent at %s and what came of it is not known (%s). It may have taken effect.",
		clock(act.DispatchedAt), orNone(act.Reason))
	switch locked := a.lockedSentence(); {
	case act.waitsForReview():
		return s + a.reviewSentence()
	case locked != "":
		return s + locked + " The same call attaches to it."
	default:
		return s + act.workSentence() + " The same call attaches to it."
	}
}

func (a Answer) reviewSentence() string {
	s := ""
	if a.Action.Job != "" {
		s = fmt.Sprintf(" The target had accepted it%s and has not said how it ended.", a.job())
	}
	if n := a.Action.Attempt; n > 1 {
		return s + fmt.Sprintf(" It was tried %d times, and there is no way left to find out by itself; a person has to settle it.", n)
	}
	return s + " There is no way to find out by itself, so it was not sent again; a person has to settle it."
}

// workSentence says what deed does by itself to find out. It follows the order of Next, and names the instant after which
// a resend is over, since no clock is read here.
func (a Action) workSentence() string {
	left := a.AttemptsLeft() > 0
	switch {
	case a.Class == ReadOnly && left:
		return " It only reads, so deed reads again by itself."
	case a.Class == RepeatableWithKey && left && !a.ResendBefore.IsZero():
		then := "a person has to settle it"
		if a.CanAsk {
			then = "deed asks the target what became of it"
		}
		return fmt.Sprintf(" deed sends it again by itself under the same key, which the target takes for the same request until %s; "+
			"after that %s.", clock(a.ResendBefore), then)
	case a.CanAsk:
		return " deed is asking the target what became of it, and sends nothing again unless the answer shows that it may."
	default:
		return " deed has nothing left to try, so a person will have to settle it."
	}
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
