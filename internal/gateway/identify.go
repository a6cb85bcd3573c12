package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// identify finds the run that a call belongs to, or opens it. The run is deed's own: it is mapped from the verified
// actor and from what the caller calls its run, or from the life of its process when it names none.
func (g *Gateway) identify(ctx context.Context, call action.Call) (action.Run, error) {
	if !call.Actor.Verified() {
		return action.Run{}, action.Errorf(action.CodeUnauthenticated, "nothing was proved about the caller, so nothing was done")
	}
	key := runKey(call)
	if run, ok := g.runs.get(key); ok {
		return run, nil
	}
	var run action.Run
	err := g.store.Commit(ctx, func(tx store.Tx) error {
		found, err := tx.RunByKey(key)
		if err == nil {
			run = found
			return nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		run = action.Run{ID: action.RunID(newID(action.RunPrefix)), Key: key, Actor: call.Actor, Started: tx.Now()}
		return tx.Append(action.Event{
			ID: action.EventID(newID(action.EventPrefix)), Time: tx.Now(), Kind: action.RunStarted, Run: run.ID, RunBody: &run,
		})
	})
	if err != nil {
		return action.Run{}, unavailable(err)
	}
	g.runs.put(key, run)
	return run, nil
}

// runKey finds a run again. It is a digest, so that what a caller names its run stays out of the record.
func runKey(call action.Call) string {
	e := call.Actor.Evidence
	whose := "token"
	switch {
	case call.Caller.Run != "":
		whose = "caller\x00" + call.Caller.Run
	case e.PID != 0:
		whose = fmt.Sprintf("process\x00%s\x00%d\x00%d", e.BootID, e.PID, e.StartTime)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"deed-run/1", call.Actor.String(), whose}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// knownRuns remembers runs that were seen in this process, so that most calls need no look-up. Forgetting costs a look-up
// and nothing else.
type knownRuns struct {
	mu  sync.Mutex
	all map[string]action.Run
}

const runsRemembered = 4096

func (k *knownRuns) get(key string) (action.Run, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run, ok := k.all[key]
	return run, ok
}

func (k *knownRuns) put(key string, run action.Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= runsRemembered {
		k.all = make(map[string]action.Run)
	}
	k.all[key] = run
}

// unavailable turns a store's error into what a caller should know: nothing was written, so nothing was sent.
func unavailable(err error) error {
	var known *action.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return action.Errorf(action.CodeNotSent, "the call was given up before anything was recorded, so nothing was sent").Because(err)
	case errors.Is(err, store.ErrFull):
		return action.Errorf(action.CodeOverloaded, "too much waits to be recorded; nothing was sent, try again in a moment").Because(err)
	case errors.Is(err, store.ErrLatched):
		return action.Errorf(action.CodeJournalUnavailable, "the journal cannot be written, so nothing is sent until deed is started again").Because(err)
	default:
		return action.Errorf(action.CodeJournalUnavailable, "the call could not be recorded, so nothing was sent").Because(err)
	}
}

// refused journals that a call was turned away before it belonged to any action, and gives the answer for its caller.
// The event is evidence only: nobody waits for it, and a flood of bad calls cannot hold up good ones.
func (g *Gateway) refused(call action.Call, run action.Run, err error) error {
	var known *action.Error
	if !errors.As(err, &known) {
		known = action.Errorf(action.CodeInternal, "deed met a fault of its own; nothing was sent").Because(err)
	}
	g.log.Info("call refused", "call_id", call.ID, "code", known.Code, "error", known.Err)
	if run.ID == "" || known.Journalled {
		return known
	}
	seen := action.CallSeen{Code: known.Code, Why: known.Reason}
	if known.Reason == action.ReasonNotAnchored {
		var on bool
		if seen.Times, on = g.refusals.record(time.Now()); !on {
			return known
		}
	}
	g.later(func(tx store.Tx) error {
		return tx.Append(callEvent(tx.Now(), call, run, "", action.CallRefused, seen))
	})
	return known
}

// callEvent records an arriving request with its protocol's own numbers.
func callEvent(now time.Time, call action.Call, run action.Run, id action.ID, kind action.EventKind, seen action.CallSeen) action.Event {
	seen.Protocol, seen.Upstream, seen.Actor, seen.Strength = call.Protocol, call.Upstream, call.Actor.String(), call.Actor.Strength
	return action.Event{
		ID: action.EventID(newID(action.EventPrefix)), Time: now, Kind: kind, Run: run.ID, Action: id, Call: call.ID, CallBody: &seen,
	}
}

// later queues evidence that nobody waits for.
func (g *Gateway) later(change func(store.Tx) error) {
	if err := g.store.Later(change); err != nil {
		g.log.Warn("evidence was not recorded", "error", err)
	}
}
