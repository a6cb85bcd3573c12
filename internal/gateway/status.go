package gateway

import (
	"context"
	"errors"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Status says how an action of the caller's stands, as a call that attaches to it would be told. It sends nothing, moves
// nothing and is no call on record.
//
// An error is always an *action.Error. An action of another principal is answered exactly like one that does not exist.
func (g *Gateway) Status(ctx context.Context, call action.Call, id action.ID) (action.Answer, error) {
	return g.Await(ctx, call, id, 0)
}

// Await is Status once nothing more will become of the action by itself, or when time is over: atMost, or what a call may
// wait if that is shorter. Whoever awaits is no caller of the action: their leaving stops nothing, and their staying
// carries nothing on.
func (g *Gateway) Await(ctx context.Context, call action.Call, id action.ID, atMost time.Duration) (action.Answer, error) {
	over := time.NewTimer(min(atMost, g.wait))
	defer over.Stop()
	look, seldom := time.NewTicker(lookEvery), time.NewTicker(10*lookEvery)
	defer look.Stop()
	defer seldom.Stop()
	for waits := atMost > 0; ; {
		landed := g.flights.landing(id) // before the action is read, so that no landing falls in between
		act, err := g.own(ctx, call, id)
		if err != nil {
			return action.Answer{}, err
		}
		if !waits || settled(act) {
			attached := claimed{Claim: action.Claim{Kind: action.Attach}, action: act}
			return g.deliver(context.WithoutCancel(ctx), call, attached, act, nil)
		}
		tick := look.C
		switch {
		case landed != nil:
			tick = nil
		case act.State == action.AwaitingApproval: // a person takes longer than a target
			tick = seldom.C
		}
		select {
		case <-landed:
		case <-tick:
		case <-over.C:
			waits = false
		case <-ctx.Done():
			waits = false
		case <-g.ctx.Done():
			waits = false
		}
	}
}

// lookEvery is how often an action is read that nobody in this process works on.
const lookEvery = 50 * time.Millisecond

// settled reports whether waiting longer would show nothing new unless a person does something.
func settled(act action.Action) bool {
	return act.Closed() || act.State == action.Unknown && act.Recovery == action.ReviewRequired
}

// landing is closed when the flight of an action ends; it is nil when none runs here. Unlike join it counts nobody.
func (s *flights) landing(id action.ID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.running[id]; ok {
		return f.done
	}
	return nil
}

// own reads an action for the principal that it belongs to. Holders of a token that strangers share are told apart by the
// run that they name: it is all that shows which of them it is.
func (g *Gateway) own(ctx context.Context, call action.Call, id action.ID) (action.Action, error) {
	if !call.Actor.Verified() {
		return action.Action{}, action.Errorf(action.CodeUnauthenticated, "nothing was proved about the caller, so nothing is shown")
	}
	ctx = context.WithoutCancel(ctx) // a look is short, and one that was begun is finished
	act, err := g.store.Action(ctx, id)
	if err != nil {
		return action.Action{}, g.unseen(err)
	}
	if act.Actor != call.Actor.String() {
		return action.Action{}, g.unseen(store.ErrNotFound)
	}
	if !call.Actor.Shared {
		return act, nil
	}
	run, err := g.store.Run(ctx, act.Run)
	if err != nil {
		return action.Action{}, g.unseen(err)
	}
	if call.Caller.Run == "" || run.Key != runKey(call) {
		return action.Action{}, g.unseen(store.ErrNotFound)
	}
	return act, nil
}

// unseen is the answer about an action that cannot be shown. It has the same words for one that is somebody else's.
func (g *Gateway) unseen(err error) *action.Error {
	if errors.Is(err, store.ErrNotFound) {
		return action.Errorf(action.CodeNoSuchAction, "there is no such action of yours; take the action_id from an answer that "+
			"you were given. Where several share a token, name the run of that call (dev.deed/run)")
	}
	g.log.Error("an action could not be read", "error", err)
	return action.Errorf(action.CodeInternal, "the record could not be read; nothing was sent or changed").Because(err)
}
