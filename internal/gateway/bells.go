package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// bells wake the calls that wait for what a person says about an action.
type bells struct {
	mu      sync.Mutex
	waiting map[action.ID]*bell
}

// bell is rung once; who goes on waiting hangs up another.
type bell struct {
	rung  chan struct{}
	calls int
}

func (b *bells) hang(id action.ID) *bell {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[action.ID]*bell{}
	}
	one, ok := b.waiting[id]
	if !ok {
		one = &bell{rung: make(chan struct{})}
		b.waiting[id] = one
	}
	one.calls++
	return one
}

// leave ends one call's waiting, and reports whether it was the last.
func (b *bells) leave(id action.ID, one *bell) (last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.calls--
	if one.calls > 0 {
		return false
	}
	if b.waiting[id] == one {
		delete(b.waiting, id)
	}
	return true
}

func (b *bells) ring(ids []action.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if one, ok := b.waiting[id]; ok {
			close(one.rung)
			delete(b.waiting, id)
		}
	}
}

// lookForDecision is how often a waiting call looks by itself: another gateway may have been told.
const lookForDecision = time.Second

// awaitDecision waits until a person has decided about the action, or the time is over. A caller that leaves only detaches;
// one that cancels, and is the last, takes back what it asked for.
func (g *Gateway) awaitDecision(ctx context.Context, act action.Action, over context.Context) action.Action {
	look := time.NewTicker(lookForDecision)
	defer look.Stop()
	for {
		one := g.bells.hang(act.ID) // before it is read, so that no decision falls in between
		if act = g.current(act); act.State != action.AwaitingApproval {
			g.bells.leave(act.ID, one)
			return act
		}
		goOn := false
		select {
		case <-one.rung:
			goOn = true
		case <-look.C:
			goOn = true
		case <-ctx.Done():
		case <-over.Done():
		case <-g.shut.Done():
		}
		last := g.bells.leave(act.ID, one)
		if goOn {
			continue
		}
		if last && errors.Is(context.Cause(ctx), ErrCancelled) {
			return g.takeBack(act)
		}
		return g.current(act)
	}
}

// takeBack ends an action whose caller cancelled it while a person was asked.
func (g *Gateway) takeBack(act action.Action) action.Action {
	next := act
	err := g.mustCommit(func(tx store.Tx) error {
		now, err := tx.Action(act.ID)
		if err != nil || now.State != action.AwaitingApproval {
			next = now
			return err
		}
		p, err := tx.Approval(now.Approval)
		if err != nil {
			return err
		}
		if p.Rule == action.AsksEachUse { // a request about a run is about more than this action
			if err := g.void(tx, p.ID, voidCancelled); err != nil {
				return err
			}
			if now, err = tx.Action(act.ID); err != nil {
				return err
			}
		}
		next, err = g.move(tx, now, action.Moved{Transition: action.T7, RejectReason: action.Cancelled, Reason: "cancel_requested"})
		return err
	})
	if err != nil {
		g.log.Error("the end of an action could not be recorded", "action_id", act.ID, "error", err)
		return act
	}
	return next
}
