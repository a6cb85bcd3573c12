package gateway

import (
	"context"
	"errors"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Undo compensates a completed action as its contract says: by another action, with an identity and a replay class of
// its own, that names what it undoes. There is one for an action, whoever asks and however often.
//
// An undo itself is not undone. call says who asks; its tool and arguments come from the contract. mine restricts it to
// actions of the same principal.
func (g *Gateway) Undo(ctx context.Context, call action.Call, id action.ID, mine bool) (action.Answer, error) {
	act, err := g.toUndo(ctx, call, id, mine)
	if err != nil {
		return action.Answer{}, err
	}
	if act.Compensates != "" {
		return action.Answer{}, refuseUndo(id, "it is itself the undo of "+string(act.Compensates)+"; to have its effect again, make a new call")
	}
	if act.State != action.Completed {
		return action.Answer{}, refuseUndo(id, "it is "+action.Shown(act.State, act.Delivery)+", and only a completed action can be undone")
	}
	c, err := g.version(ctx, act.Tool, act.Contract)
	if err != nil {
		return action.Answer{}, unavailable(err)
	}
	if c.Undo == nil {
		return action.Answer{}, refuseUndo(id, "its contract names no tool that undoes it")
	}
	requested, err := g.store.Payload(ctx, store.Arguments, string(act.Intent))
	if err != nil {
		return action.Answer{}, unavailable(err)
	}
	var result []byte
	if act.Result != "" {
		if _, result, err = g.store.Result(ctx, act.Result); err != nil {
			return action.Answer{}, unavailable(err)
		}
	}
	call.Tool, call.Undoes, call.At = c.Undo.Tool, act.ID, time.Now()
	if call.Arguments, err = c.UndoArguments(requested, result); err != nil {
		return action.Answer{}, refuseUndo(id, "the arguments of "+c.Undo.Tool+" cannot be made from its record").Because(err)
	}
	return g.Submit(ctx, call)
}

// toUndo reads the action. With mine, somebody else's is refused like one that does not exist.
func (g *Gateway) toUndo(ctx context.Context, call action.Call, id action.ID, mine bool) (act action.Action, err error) {
	if mine {
		act, err = g.own(ctx, call, id)
	} else {
		act, err = g.store.Action(ctx, id)
	}
	var known *action.Error
	switch {
	case errors.Is(err, store.ErrNotFound), errors.As(err, &known) && known.Code == action.CodeNoSuchAction:
		return act, refuseUndo(id, "you have no such action")
	case err != nil:
		return act, unavailable(err)
	}
	return act, nil
}

func refuseUndo(id action.ID, why string) *action.Error {
	return action.Errorf(action.CodeUndoRefused, "nothing was sent: %s", why).About(id)
}
