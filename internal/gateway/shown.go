package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// Requested gives a request with everything that a person needs to decide about it, read from the record: by its own id, or
// by that of an action that waits for it. It shows protected content, so who looks stands in the journal first.
func (g *Gateway) Requested(ctx context.Context, by action.Actor, id string) (action.ApprovalShown, error) {
	if !by.Verified() {
		return action.ApprovalShown{}, action.Errorf(action.CodeUnauthenticated, "nothing was proved about who asks, so nothing is shown")
	}
	s, err := g.requested(ctx, id)
	if err != nil {
		return action.ApprovalShown{}, err
	}
	asked := action.ReadAsked{Action: s.Action.ID, Why: "asked to decide about " + string(s.Approval.ID)}
	if _, err := g.recordRead(ctx, by, asked, []string{string(store.Operation)}); err != nil {
		return action.ApprovalShown{}, action.Errorf(action.CodeJournalUnavailable,
			"the reading could not be recorded, so nothing was shown; try again when the journal can be written").About(s.Action.ID).Because(err)
	}
	return s, nil
}

func (g *Gateway) requested(ctx context.Context, id string) (action.ApprovalShown, error) {
	var s action.ApprovalShown
	approvalID := action.DecisionID(id)
	if strings.HasPrefix(id, action.Prefix) {
		act, err := g.store.Action(ctx, action.ID(id))
		if err != nil {
			return s, noRequest(err)
		}
		if approvalID = act.Approval; approvalID == "" {
			return s, action.Errorf(action.CodeNoSuchAction, "nobody is asked about %s: it is %s", act.ID, action.Shown(act.State, act.Delivery)).About(act.ID)
		}
	}
	var err error
	if s.Approval, err = g.store.Approval(ctx, approvalID); err != nil {
		return s, noRequest(err)
	}
	if s.Action, err = g.store.Action(ctx, s.Approval.Action); err != nil {
		return s, noRequest(err)
	}
	if s.Run, err = g.store.Run(ctx, s.Action.Run); err != nil {
		return s, noRequest(err)
	}
	if s.Attempts, err = g.store.Attempts(ctx, s.Action.ID); err != nil {
		return s, noRequest(err)
	}
	if s.Salt, s.Recorded, err = g.store.Opening(ctx, store.Operation, string(s.Action.ID)); err != nil {
		return s, noRequest(err)
	}
	if err := json.Unmarshal(s.Recorded, &s.Operation); err != nil {
		return s, noRequest(fmt.Errorf("the recorded operation of %s: %w", s.Action.ID, err))
	}
	s.Impact = g.impact(ctx, s.Action)
	return s, nil
}

// impact is what happens, computed anew from the arguments on record. It is a help: nobody is bound by it.
func (g *Gateway) impact(ctx context.Context, act action.Action) string {
	c, err := g.version(ctx, act.Tool, act.Contract)
	if err != nil {
		return ""
	}
	asked, err := g.store.Payload(ctx, store.Arguments, string(act.Intent))
	if err != nil {
		return ""
	}
	resolved, err := c.Resolve(asked)
	if err != nil {
		return ""
	}
	return resolved.Impact
}

func noRequest(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return action.Errorf(action.CodeNoSuchAction, "no such request is on record; nothing was done")
	}
	return action.Errorf(action.CodeInternal, "the record could not be read; nothing was done").Because(err)
}
