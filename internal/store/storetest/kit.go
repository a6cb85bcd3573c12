package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Kit makes runs, intents, actions and moves that a store takes. It is safe for concurrent use, and what two kits make
// never has one name: a store may be opened again by another process.
type Kit struct{}

var last atomic.Int64

func init() { last.Store(time.Now().UnixNano()) }

// ID gives the next identifier of a kind.
func (k *Kit) ID(prefix string) string { return fmt.Sprintf("%s%026d", prefix, last.Add(1)) }

// Digest gives a new digest in the form that keyed digests have.
func (k *Kit) Digest() string {
	sum := sha256.Sum256([]byte(k.ID("")))
	return "hmac-sha256:" + hex.EncodeToString(sum[:])
}

// Actor is the principal of every run that a kit makes.
var Actor = action.Actor{Kind: "process", Identity: "uid=1000 exe=/usr/bin/agent", Strength: action.StrengthPeerPIDFD,
	Evidence: action.Evidence{PID: 4242, StartTime: 18446744073709551615, BootID: "b0", Executable: "/usr/bin/agent"}}

// Run makes a run with a key of its own.
func (k *Kit) Run() action.Run {
	return action.Run{ID: action.RunID(k.ID(action.RunPrefix)), Key: k.ID("key-"), Actor: Actor}
}

// Claim is what one accepted call brings: its run, its intent and its action.
type Claim struct {
	Run    action.Run
	Call   action.CallID
	Intent action.Intent
	Action action.Action
}

// Claim makes an accepted call of the tool deploy_release in the run. What it differs in, the caller changes.
func (k *Kit) Claim(run action.Run) Claim {
	c := Claim{Run: run, Call: action.CallID(k.ID(action.CallPrefix))}
	c.Intent = action.Intent{ID: action.IntentID(k.ID(action.IntentPrefix)), Run: run.ID, Tool: "deploy_release",
		Contract: "sha256:c1", IdemKey: k.ID("idem-"), Step: 3, ToolCallID: "toolu_1", KeySource: "deed"}
	c.Action = action.Action{
		ID: action.ID(k.ID(action.Prefix)), Intent: c.Intent.ID, Run: run.ID, Actor: run.Actor.String(), Tool: c.Intent.Tool,
		Class: action.RepeatableWithKey, Contract: c.Intent.Contract, MaxAttempts: 5,
		Channel: "http", Target: action.Target{Scheme: "https", Host: "deploy.example", Port: 443},
		Method: "POST", Template: "/v1/services/{service}/releases", Credential: "deploy-service",
		Digests: action.Digests{KeyID: "k1", Fingerprint: k.Digest(), Effect: k.Digest(), Args: k.Digest()},
		Trace:   action.Trace{TraceID: fmt.Sprintf("%032x", last.Add(1)), SpanID: fmt.Sprintf("%016x", last.Add(1))},
	}
	return c
}

// Started is the event that begins the run.
func (k *Kit) Started(run action.Run) action.Event {
	return action.Event{ID: k.event(), Kind: action.RunStarted, Run: run.ID, RunBody: &run}
}

func (k *Kit) event() action.EventID { return action.EventID(k.ID(action.EventPrefix)) }

// Accepted are the events of an accepted call: the call, its intent, its action.
func (k *Kit) Accepted(c Claim) []action.Event {
	about := action.Event{Run: c.Run.ID, Intent: c.Intent.ID, Action: c.Action.ID, Call: c.Call, Trace: c.Action.Trace}
	call, intent, accepted := about, about, about
	call.ID, call.Kind = k.event(), action.CallAccepted
	call.CallBody = &action.CallSeen{Actor: c.Run.Actor.String(), Strength: c.Run.Actor.Strength,
		Protocol: action.Correlation{Transport: "mcp-http", Era: "2025-11-25", RequestID: "41", Session: action.NoSession},
		Upstream: action.Upstream{Source: action.UpstreamNone}}
	intent.ID, intent.Kind, intent.IntentBody = k.event(), action.IntentLogged, &c.Intent
	accepted.ID, accepted.Kind, accepted.AcceptedBody = k.event(), action.ActionAccepted, &c.Action
	return []action.Event{call, intent, accepted}
}

// Move is the event by which a transition happens to the action, with all that its state asks for.
func (k *Kit) Move(a action.Action, t action.Transition) action.Event {
	m := action.Moved{Transition: t, FromAttempt: a.Attempt, FromEpoch: a.Epoch, Reason: "because"}
	ev := action.Event{ID: k.event(), Kind: action.MovedTo(t.To()), Action: a.ID, MoveBody: &m}
	if t == action.T19 {
		ev.Kind = action.ActionRecovered
	}
	switch t {
	case action.T3, action.T6:
		m.Binding = &action.Binding{Decision: action.DecisionID(k.ID(action.DecisionPrefix)), Kind: "policy", Rule: "allow", Digest: k.Digest()}
	case action.T11, action.T18:
		m.Started = &action.Attempt{ID: action.AttemptID(k.ID(action.AttemptPrefix)), Action: a.ID, Number: a.Attempt + 1, SpanID: "00f067aa0ba902b7"}
	case action.T12, action.T17, action.T21:
		m.Result = &action.StoredResult{ID: action.ResultID(k.ID(action.ResultPrefix)), MediaType: "application/json", Size: 2, Complete: true, RepeatToken: k.ID("token-")}
	case action.T13:
		m.FailureClass = action.RejectedByTarget
	case action.T15:
		m.FailureClass = action.NotSent
	case action.T20:
		m.FailureClass = action.NoEffectConfirmed
	case action.T5, action.T7, action.T10:
		m.RejectReason = action.Denied
	case action.T16, action.T19:
		m.Recovery = action.Reconciling
	}
	return ev
}

// Paths gives for each state the transitions by which a new action can be brought there, T1 left out.
func Paths() map[action.State][]action.Transition {
	paths := map[action.State][]action.Transition{action.Accepted: {}}
	for range action.States {
		for _, m := range action.Moves {
			path, known := paths[m.From]
			if _, done := paths[m.To]; known && !done {
				paths[m.To] = append(path[:len(path):len(path)], m.Name)
			}
		}
	}
	return paths
}

// Bring appends the moves one by one.
func (k *Kit) Bring(tx store.Tx, id action.ID, moves ...action.Transition) error {
	for _, t := range moves {
		a, err := tx.Action(id)
		if err != nil {
			return err
		}
		if err := tx.Append(k.Move(a, t)); err != nil {
			return err
		}
	}
	return nil
}

// Make commits a new action in a new run, brought along the moves.
func (k *Kit) Make(t testing.TB, s store.Store, change func(*Claim), moves ...action.Transition) action.Action {
	t.Helper()
	run := k.Run()
	c := k.Claim(run)
	if change != nil {
		change(&c)
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		if err := tx.Append(k.Started(run)); err != nil {
			return err
		}
		if err := tx.Append(k.Accepted(c)...); err != nil {
			return err
		}
		return k.Bring(tx, c.Action.ID, moves...)
	})
	if err != nil {
		t.Fatalf("make an action by %v: %v", moves, err)
	}
	return Get(t, s, c.Action.ID)
}

// Get reads an action that must be there.
func Get(t testing.TB, s store.Reader, id action.ID) action.Action {
	t.Helper()
	a, err := s.Action(context.Background(), id)
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	return a
}

// Refused reports whether an error is one of the two by which a store refuses an event that does not fit.
func Refused(err error) bool {
	var illegal *action.IllegalMoveError
	return errors.Is(err, store.ErrStale) || errors.As(err, &illegal)
}
