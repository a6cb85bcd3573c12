package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// ReadContent opens the protected content of an action for a person. Who reads, what and why stands durably in the journal
// before any of it is given. It is no part of the agents' doors.
func (g *Gateway) ReadContent(ctx context.Context, by action.Actor, asked action.ReadAsked) (action.Content, error) {
	asked.Why = strings.TrimSpace(asked.Why)
	if err := checkRead(by, asked); err != nil {
		return action.Content{}, err
	}
	if !g.enter() {
		return action.Content{}, action.Errorf(action.CodeOverloaded, "deed is stopping; nothing was shown, try again in a moment")
	}
	defer g.work.Done()
	act, err := g.store.Action(ctx, asked.Action)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return action.Content{}, action.Errorf(action.CodeNoSuchAction, "no such action is on record; nothing was shown").About(asked.Action)
	case err != nil:
		return action.Content{}, unshown(asked.Action, err)
	case act.Purged:
		return action.Content{}, erased(act.ID)
	}
	content, kinds, err := g.unseal(ctx, act)
	if err != nil {
		return action.Content{}, unshown(act.ID, err)
	}
	if len(kinds) == 0 {
		return action.Content{}, erased(act.ID)
	}
	content.At, err = g.recordRead(ctx, by, asked, kinds)
	if err != nil {
		return action.Content{}, action.Errorf(action.CodeJournalUnavailable,
			"the reading could not be recorded, so nothing was shown; try again when the journal can be written").About(act.ID).Because(err)
	}
	g.log.Info("protected content was read", "action_id", act.ID, "by", by.String())
	return content, nil
}

// recordRead writes the reading down, and returns when it is durable.
func (g *Gateway) recordRead(ctx context.Context, by action.Actor, asked action.ReadAsked, kinds []string) (at time.Time, err error) {
	err = g.store.Commit(ctx, func(tx store.Tx) error {
		act, err := tx.Action(asked.Action)
		if err != nil {
			return err
		}
		at = tx.Now()
		ev := about(tx, act, action.ContentReadKind)
		ev.ReadBody = &action.ContentRead{Reader: by.String(), Strength: by.Strength, Why: asked.Why, Kinds: kinds}
		return tx.Append(ev)
	})
	return at, err
}

// unseal reads what there is. Content of a kind that the action never had is left out; content that does not open is an error.
// The token of a repeat is not content: who has it can have the action done again.
func (g *Gateway) unseal(ctx context.Context, act action.Action) (c action.Content, kinds []string, err error) {
	piece := func(kind store.PayloadKind, owner string) []byte {
		if err != nil || owner == "" {
			return nil
		}
		content, e := g.store.Payload(ctx, kind, owner)
		switch {
		case errors.Is(e, store.ErrNotFound):
			return nil
		case e != nil:
			err = e
			return nil
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != string(kind) {
			kinds = append(kinds, string(kind))
		}
		return content
	}
	c.Arguments = piece(store.Arguments, string(act.Intent))
	if sent := piece(store.Operation, string(act.ID)); sent != nil {
		c.Operation = new(action.Operation)
		if e := json.Unmarshal(sent, c.Operation); e != nil {
			return c, nil, fmt.Errorf("the recorded operation of %s: %w", act.ID, e)
		}
	}
	c.Answer = piece(store.Answer, string(act.Result))
	c.Headers = piece(store.Headers, string(act.Result))
	c.Job = piece(store.Job, string(act.ID))
	seen, e := g.store.Observations(ctx, act.ID)
	if e != nil {
		return c, nil, e
	}
	for _, o := range seen {
		if body := piece(store.Evidence, string(o.ID)); body != nil {
			c.Evidence = append(c.Evidence, action.EvidenceContent{Observation: o.ID, Body: body})
		}
	}
	return c, kinds, err
}

func checkRead(by action.Actor, r action.ReadAsked) error {
	switch {
	case !by.Verified():
		return action.Errorf(action.CodeUnauthenticated, "nothing was proved about the reader, so nothing was shown")
	case r.Why == "":
		return action.Errorf(action.CodeInvalidArguments, "say why; the reason is recorded with who reads. Nothing was shown").About(r.Action)
	case len(r.Why) > action.MaxReviewText || !utf8.ValidString(r.Why):
		return action.Errorf(action.CodeInvalidArguments, "the reason is longer than %d bytes or is not UTF-8. Nothing was shown", action.MaxReviewText).About(r.Action)
	}
	return nil
}

func erased(id action.ID) *action.Error {
	return action.Errorf(action.CodeContentErased, "the content was kept for as long as its contract says, and is erased. "+
		"Nothing was shown; the journal still says what was done and when").About(id)
}

func unshown(id action.ID, err error) *action.Error {
	return action.Errorf(action.CodeInternal, "the content could not be opened, so nothing was shown; deed's log says why").About(id).Because(err)
}
