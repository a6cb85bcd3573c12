// Package store is the contract between the gateway and the place where its records live. Two implementations keep it,
// SQLite and PostgreSQL, and storetest is the suite that both pass.
//
// A store keeps records and refuses illegal ones. It knows no contract, no target and no rule of who may act, and it
// decides nothing: every decision is a function that the gateway hands to Commit.
package store

import (
	"context"
	"errors"
	"time"

	"deed.dev/deed/internal/action"
)

// Errors that callers tell apart.
var (
	// ErrFull means that too much waits to be committed: the change was refused at once, and nothing was written.
	ErrFull = errors.New("too many changes wait to be committed")
	// ErrLatched means that an earlier write or sync failed. Nothing is written until the store is opened again and its
	// journal verified.
	ErrLatched = errors.New("the journal is latched after a failed write")
	// ErrStale means that somebody else moved the action first.
	ErrStale = errors.New("the action has moved on")
	// ErrLocked means that another process holds the data directory. The message names it.
	ErrLocked = errors.New("the data directory is in use")
	// ErrSealed means that the reader has no keys for content: reading that is an event, which the gateway records.
	ErrSealed = errors.New("content is sealed, and this reader cannot open it: ask the gateway")
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("no such record")
)

// Store keeps events, the rows made from them and the protected payloads.
type Store interface {
	// Commit runs change alone, in one transaction with the changes of others who wait, and returns when it is durable.
	// If change returns an error, nothing of it is kept and that error comes back. change must not block on anything but
	// tx. A change that was not begun when ctx ends never will be; one that was begun is waited for, so that the answer
	// is always definite.
	Commit(ctx context.Context, change func(tx Tx) error) error
	// Later queues a change whose caller does not wait. It is lost if the process dies first, so it may carry evidence of
	// delivery and no more. It reports ErrFull instead of blocking.
	Later(change func(tx Tx) error) error

	Reader
	Close() error
}

// Reader answers questions from committed records. Nothing that it returns is shared with the store.
type Reader interface {
	Action(ctx context.Context, id action.ID) (action.Action, error)
	Attempts(ctx context.Context, id action.ID) ([]action.Attempt, error)
	Intent(ctx context.Context, id action.IntentID) (action.Intent, error)
	Run(ctx context.Context, id action.RunID) (action.Run, error)
	// RunsOf lists the runs of an actor that nobody has revoked.
	RunsOf(ctx context.Context, actor string) ([]action.RunID, error)
	// Observations gives what was learned of an action apart from its attempts, in order.
	Observations(ctx context.Context, id action.ID) ([]action.Observation, error)
	// Due lists actions that deed may find out about by itself, and whose time has come: unknown ones, and those that their
	// target still works on. The longest waiting come first.
	Due(ctx context.Context, q Due) ([]action.ID, error)
	// Approval gives a request to a person with what was decided about it, Approvals those that fit the query, and WaitingFor
	// the actions that wait for a request.
	Approval(ctx context.Context, id action.DecisionID) (action.Approval, error)
	Approvals(ctx context.Context, q ApprovalQuery) ([]action.Approval, error)
	WaitingFor(ctx context.Context, id action.DecisionID) ([]action.ID, error)
	// Pending lists the requests that are open, those that expire first coming first.
	Pending(ctx context.Context, limit int) ([]action.Approval, error)
	// Expired lists final actions whose content was kept for as long as their contracts say, those over the longest first.
	Expired(ctx context.Context, now time.Time, limit int) ([]action.ID, error)
	// Backlog counts what is unresolved.
	Backlog(ctx context.Context) (Backlog, error)
	// ForReview lists the unknown actions that a person should look at: those that wait for one, and those that are overdue
	// (action.Action.Overdue). Those that have been unknown for longest come first. Overdue counts the latter.
	ForReview(ctx context.Context, now time.Time, limit int) ([]action.Action, error)
	Overdue(ctx context.Context, now time.Time) (int, error)
	// Open counts actions that are not final, by state.
	Open(ctx context.Context) (map[action.State]int, error)
	// Actions lists actions that fit the query, newest first.
	Actions(ctx context.Context, q Query) ([]action.Action, error)
	// Result gives the stored answer of a target.
	Result(ctx context.Context, id action.ResultID) (action.StoredResult, []byte, error)
	// Payload gives a protected payload after checking it against its commitment.
	Payload(ctx context.Context, kind PayloadKind, owner string) ([]byte, error)
	// Opening is Payload with the salt of its commitment, for whoever has to check what the journal holds.
	Opening(ctx context.Context, kind PayloadKind, owner string) (salt, content []byte, err error)
	// ContractText gives the stored text of a contract version, and OpenContracts the versions that open actions of a
	// tool still use.
	ContractText(ctx context.Context, digest string) ([]byte, error)
	OpenContracts(ctx context.Context, tool string) ([]string, error)
	// OpenKeys lists the fingerprint keys that open actions still use.
	OpenKeys(ctx context.Context) ([]string, error)
	// Head is the newest journal record: its sequence number and hash, -1 when there is none.
	Head(ctx context.Context) (seq int64, hash string, err error)
	// Place gives the journal place of the newest event about an action.
	Place(ctx context.Context, id action.ID) (seq int64, hash string, err error)
	// EventsOf gives the journal bodies about an action and its intent, in order.
	EventsOf(ctx context.Context, id action.ID) ([][]byte, error)
	// Records calls each with the records from seq on, in order, until it returns an error.
	Records(ctx context.Context, seq int64, each func(seq int64, hash [32]byte, body []byte) error) error
}

// Query selects actions. Empty fields select all.
type Query struct {
	States     []action.State
	Run        action.RunID
	Intent     action.IntentID
	Tool       string
	TraceID    string
	Host       string
	Credential string
	Attempt    action.AttemptID
	Limit      int // 0 means 100
	Before     action.ID
}

// ApprovalQuery selects requests to people: the open ones, those that expire first coming first; of them those that have
// expired at an instant; or all that an action waited for, oldest first.
type ApprovalQuery struct {
	Action  action.ID
	Expired time.Time
	Limit   int // 0 means 100
}

// Due says for whom and when actions are due.
type Due struct {
	For    action.OwnerID // those of other owners that live are left out
	Now    time.Time
	Locked bool // the vault is: those that wait for it are left out
	Limit  int
}

// Backlog is what waits for evidence or for a person.
type Backlog struct {
	Reconciling int       // unknown, and deed is looking for evidence
	Review      int       // unknown, and only a person can settle it
	Abandoned   int       // unknown for good: a person closed it so
	Delegated   int       // their target is at work on them
	Oldest      time.Time // when the oldest of the first two became unknown; zero when there is none
	OldestOf    action.ID
}

// Tx is one change under way. Its reads see everything committed before it and all that it has written itself.
type Tx interface {
	// Now is the time of this change: never earlier than the newest journal time, so that a clock which goes backwards
	// neither reorders events nor reopens a window. ClockBack reports whether the wall clock is behind the journal.
	Now() time.Time
	ClockBack() bool

	RunByKey(key string) (action.Run, error)
	Action(id action.ID) (action.Action, error)
	Attempts(id action.ID) ([]action.Attempt, error) // in the order of their numbers
	// ActionByIdemKey finds the action that a key opened, or the one that a call with it was attached to.
	ActionByIdemKey(idemKey string) (action.Action, error)
	ActionByRepeatToken(digest string) (action.Action, error)
	ActionRepeating(id action.ID) (action.Action, error)
	// ActionUndoing finds the newest action that compensates another.
	ActionUndoing(id action.ID) (action.Action, error)
	// ActionsByFingerprint gives those with any of the fingerprints, newest first, at most 20, open ones first.
	ActionsByFingerprint(fingerprints []string) ([]action.Action, error)
	// Unknown gives the actor's actions that are in doubt (unknown, or sent again while an earlier send is unexplained) with
	// any of these effects, or with any of these resources.
	UnknownByEffect(actor string, effects []string) ([]action.Action, error)
	UnknownByResource(actor string, resources []string) ([]action.Action, error)

	// Approval gives a request with what was decided about it. ApprovalOfRun gives the newest one about a run that is open or
	// approved. WaitingFor lists the actions that wait for a request.
	Approval(id action.DecisionID) (action.Approval, error)
	ApprovalOfRun(run action.RunID) (action.Approval, error)
	WaitingFor(id action.DecisionID) ([]action.ID, error)
	// RunRevoked reports whether an operator has revoked the run.
	RunRevoked(run action.RunID) (bool, error)

	// Lease says that an owner lives so long from now on, and Alive whether one does. Leases are no part of the record.
	Lease(owner action.OwnerID, d time.Duration) error
	Alive(owner action.OwnerID) (bool, error)

	// Append writes events to the journal and makes the rows from them. An event that does not fit the rows as they are
	// is ErrStale or an *action.IllegalMoveError, and the whole change is dropped.
	Append(events ...action.Event) error
	// Place gives the journal place of the newest event about an action, as written so far.
	Place(id action.ID) (seq int64, hash string, err error)
	// PutPayload keeps a protected payload and returns its salted commitment.
	PutPayload(kind PayloadKind, owner string, content []byte) (action.Commitment, error)
	// Erase removes a protected payload; what the journal committed to stays. Nothing to remove is no error.
	Erase(kind PayloadKind, owner string) error
	// PutContract keeps a contract version's text, once.
	PutContract(digest, tool string, text []byte) error
}

// LogKey is a public key that the journal names as its own.
type LogKey struct {
	Seq int64 // the record that names it
	Key string
}

// PayloadKind says what a protected payload is.
type PayloadKind string

// Kinds of payload. Owner is the intent, the action or the result that it belongs to.
const (
	Arguments PayloadKind = "arguments"
	Operation PayloadKind = "operation"
	Answer    PayloadKind = "answer"
	Headers   PayloadKind = "answer_headers" // the few of the target's that are kept
	Repeat    PayloadKind = "repeat"         // the token itself: replays show it again
	Job       PayloadKind = "job"            // the id that a target gave to work which it took on
	Evidence  PayloadKind = "evidence"       // a target's answer to a question
)
