package action

import "time"

// EventKind names what an event records.
type EventKind string

// Kinds of event. An action's events are named after the state that it reached.
const (
	RunStarted      EventKind = "run.started"
	CallAccepted    EventKind = "call.accepted" // opened a new action
	CallAttached    EventKind = "call.attached"
	CallHeld        EventKind = "call.held"
	CallRefused     EventKind = "call.refused"
	CallLeft        EventKind = "call.left" // the caller cancelled or went away; a wish, never a change of state
	IntentLogged    EventKind = "intent.logged"
	ActionAccepted  EventKind = "action.accepted"
	ActionMoved     EventKind = "action." // followed by the state reached
	ActionDelivery  EventKind = "action.delivery"
	ActionRecovered EventKind = "action.recovery" // T19: still unknown, and why

	ReconcileStarted EventKind = "action.reconcile_started" // a question to the target is planned: durable before it is asked
	ActionObserved   EventKind = "action.observed"          // what was learned, by asking or late
	ActionPurged     EventKind = "action.purged"            // its content was kept for as long as the contract says, and is erased
	ContentReadKind  EventKind = "content.read"             // a person is about to be shown protected content of an action
	ActionDelegated  EventKind = "action.delegated"         // the target accepted it and finishes later, under a job id

	ApprovalRequested EventKind = "approval.requested" // a person is asked
	ApprovalDecided   EventKind = "approval.decided"   // one approver has signed a decision
	ApprovalVoided    EventKind = "approval.void"      // a request, or what was decided about it, counts no more
	RunRevoked        EventKind = "run.revoked"        // nothing more is begun for the run
	ActionWithdrawn   EventKind = "action.revoked"     // it was sent already, and is not sent again
)

// MovedTo is the kind of the event that records a move to a state.
func MovedTo(s State) EventKind { return ActionMoved + EventKind(s) }

// Event is one entry of the journal, before it has a place in it. Rows are made from events and from nothing else, so
// that replaying the journal gives the same rows.
type Event struct {
	ID   EventID
	Time time.Time
	Kind EventKind

	Run     RunID
	Intent  IntentID
	Action  ID
	Attempt AttemptID
	Call    CallID
	Trace   Trace

	// Exactly one of these is set, as Kind says.
	RunBody       *Run
	CallBody      *CallSeen
	IntentBody    *Intent
	AcceptedBody  *Action
	MoveBody      *Moved
	DeliveryBody  *DeliveryMoved
	ObservedBody  *Observed
	DelegatedBody *Delegated
	PurgedBody    *Purged
	ReadBody      *ContentRead
	ApprovalBody  *Approval
	DecidedBody   *Decided
	VoidedBody    *Voided
	RevokedBody   *Revocation // of a run, or of an action that was sent already

	Request *RequestSeen // beside AcceptedBody: what will be sent, described without its content
}

// RequestSeen describes a resolved request without its content: how it was resolved, and what a reader of the journal may
// compare. It makes no row.
type RequestSeen struct {
	HeaderNames []string
	BodyDigest  string // keyed, since bodies may be guessed
	BodyBytes   int64
	Redaction   Redaction
	Steps       []Step
}

// Redaction says how much of a request's content a record shows.
type Redaction string

// Redactions. The journal holds no content at all: it is withheld, or there was none.
const (
	RedactionNone     Redaction = "none"     // there is nothing to show
	RedactionWithheld Redaction = "withheld" // the content stands in the protected store only
)

// CallSeen records an arriving request and what became of it.
type CallSeen struct {
	Protocol Correlation
	Upstream Upstream
	Actor    string
	Strength Strength
	Verdict  VerdictKind
	IdemKey  string // of an attached call that gave a key: the key stays with the action
	Match    MatchKind
	Prior    State // of the action attached to
	Why      string
	Code     Code // of a refusal
	Times    int  // how many refusals like it the event stands for, where they are counted; 0 is one
}

// Moved records one transition of an action, with all that became known by it.
type Moved struct {
	Transition  Transition
	FromAttempt int     // compare-and-set: the number of attempts the move starts from
	FromEpoch   int64   // compare-and-set: the fencing number that the mover held
	Owner       OwnerID // who works on the action from now on, under the next fencing number; "" when that stays
	Reason      string

	FailureClass FailureClass
	RejectReason RejectReason
	Recovery     Recovery

	Binding      *Binding  // T3, T6: what was allowed
	Started      *Attempt  // T11, T18: the planned attempt
	ResendBefore time.Time // T11, first dispatch
	ResendOver   bool      // T16: the target answers this token with a stored answer that proves nothing
	NotBefore    time.Time // T14: the target's Retry-After
	Ended        *Attempt  // the attempt that this move settles
	Result       *StoredResult
	Review       *Review     // T18 to T21: a person's decision
	Approval     DecisionID  // T4, T8, T9: the request that it waits for from now on
	Revocation   *Revocation // T5, T7, T10: who revoked it, and why
}

// StoredResult refers to a protected answer of the target.
type StoredResult struct {
	ID          ResultID
	Commitment  Commitment
	MediaType   string
	Size        int64 // bytes that the target sent, as far as they were seen
	Complete    bool
	Withheld    bool
	RepeatToken string // SHA-256 of the token that the result carries, lower-case hex
}

// DeliveryMoved records evidence about what the agent received.
type DeliveryMoved struct {
	From Delivery
	To   Delivery
	Why  string // closed words: "handed_over", "caller_left", "repeat_of_cited", "acknowledged"
}
