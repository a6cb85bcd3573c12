package operator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/audit"
)

// Gateway is what this door needs of the line.
type Gateway interface {
	// Review records a decision about an unknown action and does what it says.
	Review(ctx context.Context, by action.Actor, asked action.ReviewAsked) (action.Answer, error)
	// Undo compensates a completed action. mine would restrict it to actions of the caller's own.
	Undo(ctx context.Context, call action.Call, id action.ID, mine bool) (action.Answer, error)
	// Requested gives a request to a person with everything that is needed to decide about it.
	Requested(ctx context.Context, by action.Actor, id string) (action.ApprovalShown, error)
	// Decide records what an approver has signed, and does what it says.
	Decide(ctx context.Context, by action.Actor, asked action.ApprovalAsked) (action.Answer, error)
	// Revoke takes back what was allowed or asked and not sent yet.
	Revoke(ctx context.Context, by action.Actor, asked action.RevokeAsked) (action.RevokeDone, error)
	// ReadContent opens protected content, after it has recorded who reads it and why.
	ReadContent(ctx context.Context, by action.Actor, asked action.ReadAsked) (action.Content, error)
}

// Records is what this door reads.
type Records interface {
	Action(ctx context.Context, id action.ID) (action.Action, error)
	Attempts(ctx context.Context, id action.ID) ([]action.Attempt, error)
	Observations(ctx context.Context, id action.ID) ([]action.Observation, error)
	Place(ctx context.Context, id action.ID) (seq int64, hash string, err error)
	ForReview(ctx context.Context, now time.Time, limit int) ([]action.Action, error)
	// Pending lists the requests to people that are open, those that expire first coming first.
	Pending(ctx context.Context, limit int) ([]action.Approval, error)
}

// Journal hands out the journal.
type Journal interface {
	// Export writes records as they are stored.
	Export(ctx context.Context, to io.Writer, span audit.Span) (audit.Exported, error)
	// Verify verifies what is stored.
	Verify(ctx context.Context) (audit.Report, error)
	// Checkpoint gives the signed checkpoint of the records before size, 0 for all.
	Checkpoint(ctx context.Context, size uint64) ([]byte, error)
	// Receipt gives the receipt of an action.
	Receipt(ctx context.Context, id action.ID) ([]byte, error)
	// Keys lists the public keys of the log, the one in use first, and Rotate lets a new one sign.
	Keys(ctx context.Context) ([]audit.KeyInUse, error)
	Rotate(ctx context.Context) (audit.Rotated, error)
}

// Vault is what this door needs of the vault. Its errors are of *action.Error.
type Vault interface {
	// Unlock opens the vault with a passphrase, or with the gateway's own key where there is none. It wipes the passphrase.
	Unlock(passphrase []byte) error
	// Reload reads the file again in the same way; a locked vault stays locked.
	Reload(passphrase []byte) error
	Lock()
	// Entries lists what is in the vault, without a value, as JSON can show it.
	Entries() (any, error)
	Locked() bool
}

// Options are the parts of the door.
type Options struct {
	Gateway  Gateway // nil where there is nothing but records to read
	Records  Records
	NotFound error // what Records says of a record that is not there
	Status   func(ctx context.Context) (Status, error)
	Metrics  http.Handler
	Journal  Journal // nil where none is handed out
	Vault    Vault   // nil where there is none to open
	Log      *slog.Logger
	// RotateContentKey makes a new key for protected content and gives its identifier. nil where there are only records.
	RotateContentKey func(ctx context.Context) (id string, err error)
}

// Server is the door. It can be used without a socket too, by the process that it is in.
type Server struct{ o Options }

// New makes the door. It opens nothing.
func New(o Options) *Server { return &Server{o} }

// mostListed bounds one list. A longer backlog is worked off from its old end.
const mostListed = 1000

// List gives the unknown actions that a person should look at, oldest first, 1000 at most.
func (s *Server) List(ctx context.Context) ([]Waiting, error) {
	now := time.Now()
	found, err := s.o.Records.ForReview(ctx, now, mostListed)
	if err != nil {
		return nil, s.unreadable(err)
	}
	all := make([]Waiting, len(found))
	for i, act := range found {
		all[i] = waiting(act, now)
	}
	return all, nil
}

// Show gives what is on record about an action, for a person who has to decide. It holds neither arguments nor bodies.
func (s *Server) Show(ctx context.Context, id action.ID) (Case, error) {
	if !action.ValidID(action.Prefix, string(id)) {
		return Case{}, noSuchAction(id)
	}
	// The place is read first: were something recorded in between, a decision on it would be refused and not be blind.
	seq, hash, err := s.o.Records.Place(ctx, id)
	if err != nil {
		return Case{}, s.unseen(id, err)
	}
	act, err := s.o.Records.Action(ctx, id)
	if err != nil {
		return Case{}, s.unseen(id, err)
	}
	attempts, err := s.o.Records.Attempts(ctx, id)
	if err != nil {
		return Case{}, s.unreadable(err)
	}
	seen, err := s.o.Records.Observations(ctx, id)
	if err != nil {
		return Case{}, s.unreadable(err)
	}
	return caseOf(act, attempts, seen, action.Place{Seq: seq, Hash: hash}, time.Now()), nil
}

// Status gives the state of the whole.
func (s *Server) Status(ctx context.Context) (Status, error) {
	status, err := s.o.Status(ctx)
	if err != nil {
		return Status{}, s.unreadable(err)
	}
	return status, nil
}

// Desk is the door as one verified principal uses it.
type Desk struct {
	*Server
	By action.Actor
}

// Decide records a decision about an unknown action, and gives the action as it stands afterwards.
func (d Desk) Decide(ctx context.Context, id action.ID, asked Decision) (action.Status, error) {
	if _, err := d.Show(ctx, id); err != nil {
		return action.Status{}, err
	}
	if asked.Seen == "" {
		return action.Status{}, action.Errorf(action.CodeReviewRefused,
			"nothing was changed: say what you looked at (seen: the journal hash that stands beside the action)").About(id)
	}
	review := action.ReviewAsked{
		Action: id, Decision: asked.Decision, Why: strings.TrimSpace(asked.Why), Evidence: strings.TrimSpace(asked.Evidence), Seen: asked.Seen,
	}
	if string(asked.Result) != "null" {
		review.Result = asked.Result
	}
	a, err := d.o.Gateway.Review(ctx, d.By, review)
	if err != nil {
		return action.Status{}, err
	}
	d.o.Log.Info("an unknown action was reviewed", "action_id", id, "decision", asked.Decision, "by", d.By.String(), "state", a.Action.State)
	return a.Status(), nil
}

// Undo compensates a completed action as its contract says. The status is that of the action which does so.
func (d Desk) Undo(ctx context.Context, id action.ID) (action.Status, error) {
	if !action.ValidID(action.Prefix, string(id)) {
		return action.Status{}, noSuchAction(id)
	}
	if _, err := d.o.Records.Action(ctx, id); err != nil {
		return action.Status{}, d.unseen(id, err)
	}
	call := action.Call{
		Actor: d.By, At: time.Now(), Upstream: action.Upstream{Source: action.UpstreamNone},
		Protocol: action.Correlation{Transport: "operator", Session: action.NoSession},
	}
	a, err := d.o.Gateway.Undo(ctx, call, id, false)
	if err != nil {
		return action.Status{}, err
	}
	return a.Status(), nil
}

func noSuchAction(id action.ID) *action.Error {
	return action.Errorf(action.CodeNoSuchAction, "no such action is on record; nothing was done").About(id)
}

func (s *Server) unseen(id action.ID, err error) *action.Error {
	if errors.Is(err, s.o.NotFound) {
		return noSuchAction(id)
	}
	return s.unreadable(err)
}

func (s *Server) unreadable(err error) *action.Error {
	return action.Errorf(action.CodeInternal, "the record could not be read; nothing was done").Because(err)
}
