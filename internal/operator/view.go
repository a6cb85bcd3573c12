package operator

import (
	"encoding/json"
	"time"

	"deed.dev/deed/internal/action"
)

// Waiting is one line of the list of unknown actions that a person should look at.
type Waiting struct {
	ActionID action.ID      `json:"action_id"`
	Tool     string         `json:"tool"`
	Target   string         `json:"target"`  // method, address and path template
	Overdue  bool           `json:"overdue"` // deed still looks for evidence, for longer than the contract says
	Reason   string         `json:"reason"`
	Since    string         `json:"unknown_since"`
	Age      int64          `json:"age_seconds"`
	Attempts int            `json:"attempts"`
	Asked    int            `json:"observations"` // how often something was learned apart from the attempts
	Finding  action.Finding `json:"finding"`      // the newest; "" says nothing
}

func waiting(a action.Action, now time.Time) Waiting {
	return Waiting{
		ActionID: a.ID, Tool: a.Tool, Target: target(a), Overdue: a.Overdue(now), Reason: a.Reason,
		Since: stamp(a.UnknownAt), Age: seconds(now.Sub(a.UnknownAt)), Attempts: a.Attempt, Asked: a.Observations, Finding: a.Finding,
	}
}

// Case is one action with what a person needs to decide about it.
type Case struct {
	ActionID   action.ID       `json:"action_id"`
	Tool       string          `json:"tool"`
	Actor      string          `json:"actor"`
	State      action.State    `json:"state"`
	Recovery   action.Recovery `json:"recovery,omitempty"`
	Overdue    bool            `json:"overdue"`
	Abandoned  bool            `json:"abandoned"`
	Reason     string          `json:"reason,omitempty"`
	Class      action.Class    `json:"class"`
	Target     string          `json:"target"`
	Credential string          `json:"credential_ref,omitempty"`
	Accepted   string          `json:"accepted_at"`
	Dispatched string          `json:"dispatched_at,omitempty"`
	Unknown    string          `json:"unknown_since,omitempty"`
	Age        int64           `json:"age_seconds,omitempty"`          // since it became unknown
	Limit      int64           `json:"review_after_seconds,omitempty"` // how long deed looks for evidence before a person is asked
	Attempts   []Attempt       `json:"attempts"`
	Seen       []Observation   `json:"observations"`
	Known      []string        `json:"known"`
	NotKnown   []string        `json:"not_known"`
	Choices    []Choice        `json:"decisions"` // none when there is nothing to decide
	Journal    action.Place    `json:"journal"`   // of the newest event about it; a decision names this hash as seen
}

// Attempt is one send, as a reviewer sees it.
type Attempt struct {
	Number    int                 `json:"attempt"`
	State     action.AttemptState `json:"state"`
	Certainty string              `json:"certainty"`
	Bytes     *int64              `json:"bytes_sent"` // null when nobody was left to count
	Status    int                 `json:"target_status,omitempty"`
	Reason    string              `json:"reason,omitempty"`
	Remote    string              `json:"remote,omitempty"`
	Started   string              `json:"started_at"`
	Ended     string              `json:"ended_at,omitempty"`
}

// Observation is what was learned apart from the attempts.
type Observation struct {
	Number  int                    `json:"observation"`
	Kind    action.ObservationKind `json:"kind"`
	Finding action.Finding         `json:"finding"`
	Status  int                    `json:"target_status,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Started string                 `json:"started_at"`
	Ended   string                 `json:"ended_at,omitempty"` // "" while the question is open
}

// Choice is a decision that can be made, and what it would do.
type Choice struct {
	Decision action.ReviewDecision `json:"decision"`
	Does     string                `json:"does"`
	Needs    string                `json:"needs"` // "evidence" or "why"
}

// Decision is what a reviewer asks for.
type Decision struct {
	Decision action.ReviewDecision `json:"decision"`
	Why      string                `json:"why,omitempty"`
	Evidence string                `json:"evidence,omitempty"`
	Seen     string                `json:"seen"`
	Result   json.RawMessage       `json:"result,omitempty"`
}

// Status is the state of the whole.
type Status struct {
	Running     bool                 `json:"running"` // a gateway answers
	Version     string               `json:"version,omitempty"`
	PID         int                  `json:"pid,omitempty"`
	Started     string               `json:"started_at,omitempty"`
	Uptime      int64                `json:"uptime_seconds,omitempty"`
	VaultLocked *bool                `json:"vault_locked"` // null when no gateway runs that could say
	Head        action.Place         `json:"journal"`      // the newest record; seq is -1 when there is none
	Records     int64                `json:"journal_records"`
	Open        map[action.State]int `json:"open"` // actions that are not final, by state
	Backlog     Backlog              `json:"backlog"`
}

// Backlog is what waits for evidence or for a person.
type Backlog struct {
	Reconciling    int       `json:"reconciling"`
	ReviewRequired int       `json:"review_required"`
	Overdue        int       `json:"overdue"` // of the reconciling ones
	Abandoned      int       `json:"abandoned"`
	Delegated      int       `json:"delegated"`
	Oldest         action.ID `json:"oldest_unknown,omitempty"`
	OldestSince    string    `json:"oldest_unknown_since,omitempty"`
	OldestAge      int64     `json:"oldest_unknown_age_seconds"`
}

// ObservationOf is an observation as people and machines read it.
func ObservationOf(o action.Observation) Observation {
	return Observation{o.Number, o.Kind, o.Finding, o.Status, o.Reason, stamp(o.Started), stamp(o.Ended)}
}

func caseOf(a action.Action, attempts []action.Attempt, seen []action.Observation, at action.Place, now time.Time) Case {
	c := Case{
		ActionID: a.ID, Tool: a.Tool, Actor: a.Actor, State: a.State, Recovery: a.Recovery, Overdue: a.Overdue(now), Abandoned: a.Abandoned,
		Reason: a.Reason, Class: a.Class, Target: target(a), Credential: a.Credential,
		Accepted: stamp(a.AcceptedAt), Dispatched: stamp(a.DispatchedAt),
		Attempts: []Attempt{}, Seen: []Observation{}, Journal: at,
	}
	if a.State == action.Unknown {
		c.Unknown, c.Age, c.Limit = stamp(a.UnknownAt), seconds(now.Sub(a.UnknownAt)), seconds(a.ReviewAfter)
	}
	for _, t := range attempts {
		c.Attempts = append(c.Attempts, Attempt{
			t.Number, t.State, t.Certainty.String(), t.Counted(), t.Status, t.Reason, t.Remote, stamp(t.Started), stamp(t.Ended),
		})
	}
	for _, o := range seen {
		c.Seen = append(c.Seen, ObservationOf(o))
	}
	c.Known, c.NotKnown = knowledge(a, attempts)
	c.Choices = choices(a, now)
	return c
}

func target(a action.Action) string { return a.Method + " " + a.Target.String() + a.Template }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
