package eventlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
	"github.com/go-json-experiment/json"
)

// ErrNoEvent means that a record is none of the events that rows are made from, such as record 0.
var ErrNoEvent = errors.New("not an event that rows are made from")

// Record is a journal body as it is read back.
type Record struct {
	Seq   int64
	Prev  string
	After string // hash of the previous event about the same action, "" for its first
	Event action.Event
}

// Decode reads a body. It is strict: a member that it does not know is an error, since rows made without it would not be
// the rows that its writer made.
func Decode(body []byte) (Record, error) {
	var head struct {
		Event string `json:"event"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return Record{}, fmt.Errorf("read a journal body: %w", err)
	}
	if !recorded(action.EventKind(head.Event)) {
		return Record{}, fmt.Errorf("%q: %w", head.Event, ErrNoEvent)
	}
	var w wire
	if err := json.Unmarshal(body, &w, json.RejectUnknownMembers(true)); err != nil {
		return Record{}, fmt.Errorf("read a journal body: %w", err)
	}
	ev, err := w.event()
	if err != nil {
		return Record{}, fmt.Errorf("read the body of record %d: %w", w.Seq, err)
	}
	if ev, err = Normal(ev); err != nil {
		return Record{}, fmt.Errorf("read the body of record %d: %w", w.Seq, err)
	}
	return Record{Seq: w.Seq, Prev: w.Prev, After: w.After, Event: ev}, nil
}

// recorded says whether rows are made from events of this kind.
func recorded(k action.EventKind) bool {
	switch k {
	case action.RunStarted, action.IntentLogged, action.ActionAccepted, action.ActionDelivery, action.ActionRecovered,
		action.ReconcileStarted, action.ActionObserved, action.ActionDelegated, action.ActionPurged,
		action.ContentReadKind, action.ApprovalRequested, action.ApprovalDecided, action.ApprovalVoided, action.RunRevoked,
		action.ActionWithdrawn:
		return true
	}
	if _, ok := verdicts[k]; ok {
		return true
	}
	for _, s := range action.States {
		if k == action.MovedTo(s) {
			return true
		}
	}
	return false
}

// event puts the action's event together from what was read.
func (w *wire) event() (action.Event, error) {
	r := reader{}
	ev := action.Event{
		ID: action.EventID(w.EventID), Kind: action.EventKind(w.Event), Time: r.time(w.Time),
		Run: action.RunID(w.RootRunID), Intent: action.IntentID(w.IntentID), Action: action.ID(w.ActionID),
		Attempt: action.AttemptID(w.AttemptID), Call: action.CallID(w.CallID),
		Trace: action.Trace{TraceID: w.TraceID, SpanID: w.SpanID, ParentSpanID: w.ParentSpanID},
	}
	switch {
	case w.Run != nil:
		ev.RunBody = w.run(&r)
	case w.Call != nil:
		ev.CallBody = w.call()
	case w.Intent != nil:
		ev.IntentBody = w.intent(&r)
	case w.Read != nil:
		ev.ReadBody = w.read()
	case w.Delivery != nil:
		ev.DeliveryBody = &action.DeliveryMoved{
			From: action.Delivery(w.Delivery.From), To: action.Delivery(w.Delivery.To), Why: w.Delivery.Why}
	case w.Action != nil && ev.Kind == action.ActionAccepted:
		ev.AcceptedBody, ev.Request = w.accepted(), w.request()
	case w.Observed != nil && w.Action != nil:
		ev.ObservedBody = w.observed(&r)
	case w.Purge != nil && w.Action != nil:
		ev.PurgedBody = &action.Purged{Kept: time.Duration(w.Purge.KeptUS) * time.Microsecond}
	case w.Approval != nil && w.Action != nil:
		ev.ApprovalBody = w.approval(&r)
	case w.Decision != nil && w.Action != nil:
		ev.DecidedBody = w.decided(&r)
	case w.Void != nil && w.Action != nil:
		ev.VoidedBody = &action.Voided{Approval: action.DecisionID(w.Void.ApprovalID), Action: action.ID(w.ActionID), Why: w.Void.Why}
	case w.Revocation != nil && (w.Action == nil || ev.Kind == action.ActionWithdrawn):
		ev.RevokedBody = w.Revocation.revocation()
	case w.Job != nil && w.Action != nil:
		ev.DelegatedBody = w.delegated(&r)
	case w.Action != nil:
		ev.MoveBody = w.move(&r)
	}
	return ev, r.err
}

// reader keeps the first error, so that a body is read in one piece.
type reader struct{ err error }

func (r *reader) time(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := journal.ParseTime(s)
	if err != nil && r.err == nil {
		r.err = err
	}
	return t
}

// bytes reads what is written as base64url.
func (r *reader) bytes(s string) []byte {
	if s == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil && r.err == nil {
		r.err = err
	}
	return b
}

func (r *reader) uint(s string) uint64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}
