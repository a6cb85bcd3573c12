package gateway

import (
	"sync"
	"time"

	"deed.dev/deed/internal/action"
)

// Gate is asked before something new is sent: nil, or why not now. It must not wait; what was sent already goes on whatever
// it says. The journal's anchor is one: it bounds how many records may be kept nowhere outside.
type Gate interface {
	Open() error
}

// openGate is the gate of a gateway that was given none.
type openGate struct{}

func (openGate) Open() error { return nil }

// waitsForAnchor keeps a send back while the gate is closed, and says why in the answer. It is on no record: what comes of
// the action does not depend on it, and the same call carries it on.
func (g *Gateway) waitsForAnchor(act action.Action) (action.Action, bool) {
	err := g.gate.Open()
	if err == nil {
		return act, false
	}
	g.log.Debug("nothing new is sent", "action_id", act.ID, "reason", err)
	if act.State == action.Authorized {
		act.Reason = action.ReasonNotAnchored
	}
	return act, true
}

// notAnchored is the answer to a call that would have been a new action, while nothing new is sent. It becomes none: an
// action that may not be sent would only be more that is kept nowhere else.
func notAnchored() *action.Error {
	err := action.Errorf(action.CodeTryLater, "%s; nothing was done, and the same call may be made again", action.NotAnchored)
	err.Reason = action.ReasonNotAnchored
	return err
}

// rare lets one refusal of a kind on record for each period, and counts the others, so that callers who are kept waiting do
// not fill the journal meanwhile. Those after the last one on record stand in the log alone.
type rare struct {
	mu    sync.Mutex
	last  time.Time
	times int // since the last one that was recorded
}

const refusalPeriod = time.Minute

// record says whether a refusal now goes on record, and for how many it stands.
func (r *rare) record(now time.Time) (times int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times++
	if since := now.Sub(r.last); since >= 0 && since < refusalPeriod {
		return 0, false
	}
	times = r.times
	r.last, r.times = now, 0
	return times, true
}
