package action

import (
	"fmt"
	"time"
)

// Finding is what was learned of an action by asking its target, or from an answer that came late. The zero value says
// nothing.
type Finding string

// Findings. Only Found and ProvedAbsent settle anything.
const (
	Inconclusive  Finding = ""
	Found         Finding = "found"                // the effect is there, and it carries the action's marker
	Absent        Finding = "absent"               // the target knows of none, which by itself proves nothing
	ProvedAbsent  Finding = "absent_settled"       // the same, where the contract calls it authoritative and the time to settle is over
	Pending       Finding = "pending"              // the target still works on it
	EndedWithout  Finding = "ended_without_effect" // the target's job is over, and the contract says that it had no effect
	LookAlike     Finding = "look_alike"           // something like it is there, and nothing shows that this action made it
	Contradictory Finding = "contradictory"        // the answer speaks for and against it
)

// Findings lists every finding.
var Findings = []Finding{Inconclusive, Found, Absent, ProvedAbsent, Pending, EndedWithout, LookAlike, Contradictory}

// hints reports whether a finding speaks against a later "absent".
func (f Finding) hints() bool {
	return f == Found || f == Pending || f == LookAlike || f == Contradictory
}

// ObservationKind says how something was learned.
type ObservationKind string

// Kinds of observation.
const (
	ByLookup ObservationKind = "lookup"        // the target was asked, by a request of its own
	ByPoll   ObservationKind = "poll"          // the target was asked about the job that it took on
	ByLate   ObservationKind = "late_answer"   // the attempt's own answer, after it was given up on
	ByStale  ObservationKind = "stale_outcome" // what an owner reported that had been overtaken: kept, and not acted on
)

// ObservationKinds lists every kind.
var ObservationKinds = []ObservationKind{ByLookup, ByPoll, ByLate, ByStale}

// Observation is what was learned of an action apart from its attempts. A question is written down before it is asked;
// it has no Ended then.
type Observation struct {
	ID        ObservationID
	Action    ID
	Number    int
	Kind      ObservationKind
	About     AttemptID // the newest attempt at that time, or the one that it came from
	Finding   Finding
	Certainty Certainty // of a late or stale outcome
	Status    int
	Reason    string // closed words: why nothing was learned
	Remote    string
	SpanID    string
	Evidence  Commitment // of the target's answer, kept apart
	Started   time.Time
	Ended     time.Time
}

// Observed records an observation, and what follows for the action.
type Observed struct {
	Observation

	FromEpoch int64
	Owner     OwnerID   // who asks from now on, under the next fencing number
	NotBefore time.Time // when to ask again
}

// Delegated records that a target took the action on and finishes it later.
type Delegated struct {
	FromAttempt int
	FromEpoch   int64
	Job         Commitment // of the target's id for it, kept apart
	Ended       *Attempt   // the attempt that was answered so
	NotBefore   time.Time  // when to ask for the first time
}

func (a Action) observe(ev Event) (Action, error) {
	o := ev.ObservedBody
	stale := o.Kind == ByStale
	switch {
	case o.FromEpoch != a.Epoch && !stale:
		return a, fmt.Errorf("%s of %s comes from an owner that was overtaken", ev.Kind, a.ID)
	case a.State != Unknown && a.State != Dispatched && !stale:
		return a, fmt.Errorf("nothing is looked for about %s, which is %s", a.ID, a.State)
	}
	a.UpdatedAt = ev.Time
	a.Observations = max(a.Observations, o.Number)
	if stale {
		return a, nil
	}
	if o.Owner != "" {
		a.Owner, a.Epoch = o.Owner, a.Epoch+1
	}
	if ev.Kind == ActionObserved {
		a.Finding, a.NotBefore = o.Finding, o.NotBefore
		a.Hinted = a.Hinted || o.Finding.hints()
	}
	return a, nil
}

func (a Action) delegate(ev Event) (Action, error) {
	d := ev.DelegatedBody
	if a.State != Dispatched && a.State != Unknown || a.Job != "" || a.Attempt != d.FromAttempt || a.Epoch != d.FromEpoch || d.Job == "" {
		return a, fmt.Errorf("%s of %s does not fit: it is %s", ev.Kind, a.ID, a.State)
	}
	a.Job, a.NotBefore, a.UpdatedAt = d.Job, d.NotBefore, ev.Time
	if d.Ended != nil && d.Ended.Status != 0 {
		a.TargetStatus = d.Ended.Status
	}
	return a, nil
}

// Delegated reports whether the target is at work on the action and will say when asked.
func (a Action) Delegated() bool { return a.Job != "" && (a.State == Dispatched || a.State == Unknown) }
