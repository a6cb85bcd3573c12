package action

import "time"

// Class says what may be done after the response was lost. It is declared, never guessed from a method.
type Class string

// Replay classes. The zero value allows nothing.
const (
	ReadOnly            Class = "read_only"
	RepeatableWithKey   Class = "repeatable_with_key"
	StatusQueryable     Class = "status_queryable"
	BlockedAfterUnknown Class = "blocked_after_unknown"
)

// Classes lists every class.
var Classes = []Class{ReadOnly, RepeatableWithKey, StatusQueryable, BlockedAfterUnknown}

// Action is one intended external effect, with one resolved operation. It is the current projection of its events.
type Action struct {
	ID     ID
	Intent IntentID
	Run    RunID
	Actor  string // Actor.String of the run
	Tool   string

	State        State
	Delivery     Delivery
	FailureClass FailureClass
	RejectReason RejectReason
	Recovery     Recovery
	Doubted      bool   // an earlier attempt may have had the effect, whatever a later one was answered
	Reason       string // closed words, for people and machines: "response_lost", "timeout", …

	Class        Class
	Contract     string // digest of the contract version
	Attempt      int    // number of attempts made
	MaxAttempts  int
	NotBefore    time.Time     // the target asked not to be tried again before this instant
	ResendBefore time.Time     // no same-key resend from this instant on; fixed at the first dispatch
	KeyLife      time.Duration // how long the target keeps a key, less the margin; 0 where it keeps none
	AttachFor    time.Duration // how long after a final state an equal call still attaches
	ReviewAfter  time.Duration // how long deed looks for evidence before a person is asked
	KeepResult   time.Duration // how long after a final state its content is kept
	CanAsk       bool          // the target can be asked what became of it

	Owner        OwnerID    // who dispatched it or asks about it, while its lease holds
	Epoch        int64      // fencing number: grows with every new owner and every dispatch
	Job          Commitment // of the target's job id: it accepted the action and finishes later
	Observations int        // how often something was learned apart from attempts
	Finding      Finding    // the newest one
	Hinted       bool       // something was seen that speaks against absence
	Purged       bool       // its content is erased; that it was, and what came of it, stays
	Abandoned    bool       // a person closed it without knowing: it holds nobody up any more
	Withdrawn    bool       // an operator revoked it when it was sent already: it is not sent again

	Channel    string
	Target     Target
	Method     string
	Template   string
	Credential string

	Digests     Digests
	Binding     Binding
	Approval    DecisionID // the request to a person that it waits for, or waited for last
	Operation   Commitment
	Repeats     ID // predecessor that this action repeats on purpose
	Similar     ID // an earlier equal action that was over; for the reader only
	Compensates ID // the completed action that this one undoes

	TargetStatus int
	Result       ResultID
	RepeatToken  string // digest of the token that stands in the completed result
	Trace        Trace

	AcceptedAt   time.Time
	AuthorizedAt time.Time
	DispatchedAt time.Time // of the first dispatch
	UnknownAt    time.Time // when it last became unknown
	FinishedAt   time.Time // when it became completed, failed or rejected
	UpdatedAt    time.Time
}

// AttemptsLeft is how many more sends the contract allows, whichever layer asks.
func (a Action) AttemptsLeft() int { return a.MaxAttempts - a.Attempt }

// Digests find repeats. All are keyed except Args' use: none ever goes to a target or an agent.
type Digests struct {
	KeyID       string // which HMAC key made them
	Fingerprint string // actor, tool, resolved target, credential, method, arguments, scope
	Effect      string // the same without the run
	Args        string // arguments alone: only to see that one key came with two sets of them
	Resource    string // the declared resource, or ""
}

// Binding is what was allowed: the digest that the executor recomputes in the moment of sending.
type Binding struct {
	Decision DecisionID
	Kind     string    // ByPolicy, ByPerson or ByReview
	Rule     string    // which rule of the ladder spoke
	Digest   string    // binding_digest
	Until    time.Time // nothing is sent from this instant on; zero where no person was asked
}

// The kinds of decision that a binding comes from.
const (
	ByPolicy = "policy"
	ByPerson = "person"
	ByReview = "review" // a reviewer's redo: one more send of exactly what is on record
)

// Trace is deed's own place in the causal graph.
type Trace struct {
	TraceID      string // 32 hex
	SpanID       string // 16 hex
	ParentSpanID string
}

// BytesUnknown is the count of an attempt whose process died: it says nothing, where 0 would say that nothing was sent.
const BytesUnknown int64 = -1

// Attempt is one actual send.
type Attempt struct {
	ID        AttemptID
	Action    ID
	Number    int
	State     AttemptState
	Certainty Certainty
	BytesSent int64 // written to the target's connection; BytesUnknown when nobody was left to say
	Status    int   // of the target; 0 without an answer
	Reason    string
	Remote    string // address that was dialled
	SpanID    string
	RetryOf   AttemptID
	Started   time.Time
	Ended     time.Time
}

// Counted is the number of bytes sent, or nil when nobody was left to count.
func (t Attempt) Counted() *int64 {
	if t.BytesSent == BytesUnknown {
		return nil
	}
	return &t.BytesSent
}

// Dispatch is one planned attempt, handed to an executor after its plan is durable.
type Dispatch struct {
	Action    ID
	Attempt   AttemptID
	Number    int
	Operation Operation
	Token     string // goes to the target as its idempotency key
	Allowed   string // binding digest of the decision
	Binding   string // binding digest of what is about to be sent, computed now
	Trace     Trace
	Judge     Judge
	Secret    func(name string) (string, error) // opens one of the operation's secret arguments; nil where it has none
	// Late, if given, takes the answer that comes after the attempt was given up on. It is called at most once, and only
	// after Perform has returned an outcome that proves nothing.
	Late func(Outcome)
}

// Judge decides from a target's answer what it proves. It comes from the contract version that the action was made under.
type Judge func(Response) Verdict

// Response is a target's answer as far as it was read.
type Response struct {
	Status    int
	Header    map[string][]string
	Body      []byte
	MediaType string
	Truncated bool // the body broke off, or was longer than is kept
}

// Verdict is what an answer proves. The zero value proves nothing.
type Verdict struct {
	Certainty Certainty
	Retry     bool   // no effect, and the contract promises that trying again is meant
	Rule      string // "done_when", "no_effect_when", "retry_when", "accepted_when", or why none spoke
	Job       string // under accepted_when: the target's id of the work that it has taken on
}

// Outcome is what one attempt proved. The zero value is an attempt about which nothing is known.
type Outcome struct {
	State      AttemptState
	Certainty  Certainty
	Retry      bool
	BytesSent  int64
	Status     int
	Reason     string // closed words
	RetryAfter time.Duration
	Job        string // the target has accepted the action and finishes it later, under this id
	Remote     string
	Result     Result
	Started    time.Time
	Ended      time.Time
}

// Result is a target's answer, protected: it is stored with a salt, and only its commitment is in the journal.
type Result struct {
	Body      []byte
	MediaType string
	Complete  bool
	Withheld  bool // the answer could not be searched for secrets
	Size      int64
	Headers   []Header // the few that are safe to keep
}
