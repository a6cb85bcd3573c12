package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/store"
)

// compareRestart measures live calls while a gateway that has just started takes up what an earlier one left unknown,
// beside the same with nothing left. Each run is a restart of its own.
func compareRestart(ctx context.Context, s settings, t *target, agents int) (map[string]measured, error) {
	contenders := map[string]func() (measured, error){}
	for name, open := range map[string]int{"none": 0, "many": s.open} {
		sub, err := newSubject(t, false, false)
		if err != nil {
			return nil, err
		}
		defer sub.close()
		if err := sub.call(ctx, 0, "template"); err != nil {
			return nil, err
		}
		if err := sub.leaveUnknown(ctx, open); err != nil {
			return nil, err
		}
		if err := sub.gateway.Close(ctx); err != nil {
			return nil, err
		}
		round := 0
		contenders[name] = func() (measured, error) {
			round++
			sub.gateway = sub.start()
			if _, err := sub.gateway.Recover(ctx); err != nil {
				return measured{}, err
			}
			running, stop := context.WithCancel(ctx)
			over := make(chan struct{})
			go func() { defer close(over); sub.gateway.Run(running) }()
			m, err := load(ctx, agents, s.duration, func(ctx context.Context, agent, n int) error {
				return sub.call(ctx, agent+1, fmt.Sprintf("live_%d_%d_%d", round, agent, n))
			})
			stop()
			<-over
			if err == nil {
				err = sub.gateway.Close(ctx)
			}
			return m, err
		}
	}
	return inTurn(s, contenders)
}

// leaveUnknown puts so many actions on record that were sent and of which nothing was heard: copies of one that is there,
// each with an identity, a request and a key of its own.
func (s *subject) leaveUnknown(ctx context.Context, n int) error {
	all, err := s.store.Actions(ctx, store.Query{Limit: 1})
	if err != nil {
		return err
	}
	template := all[0]
	recorded, err := s.store.Payload(ctx, store.Operation, string(template.ID))
	if err != nil {
		return err
	}
	var op action.Operation
	if err := json.Unmarshal(recorded, &op); err != nil {
		return err
	}
	const batch = 500
	for done := 0; done < n; done += batch {
		err := s.store.Commit(ctx, func(tx store.Tx) error {
			for range min(batch, n-done) {
				if err := plant(tx, template, op, recorded); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func plant(tx store.Tx, template action.Action, op action.Operation, recorded []byte) error {
	id := func(prefix string) string { return prefix + uuid.Must(uuid.NewV7()).String() }
	act := action.Action{
		ID: action.ID(id(action.Prefix)), Intent: action.IntentID(id(action.IntentPrefix)), Run: template.Run, Actor: template.Actor,
		Tool: template.Tool, Class: template.Class, Contract: template.Contract, MaxAttempts: template.MaxAttempts, KeyLife: template.KeyLife,
		AttachFor: template.AttachFor, ReviewAfter: template.ReviewAfter, KeepResult: template.KeepResult, Channel: template.Channel,
		Target: template.Target, Method: template.Method, Template: template.Template, Trace: template.Trace, Digests: template.Digests,
	}
	act.Digests.Fingerprint, act.Digests.Effect, act.Digests.Args = id("f"), id("e"), id("a")
	intent := action.Intent{ID: act.Intent, Run: act.Run, Tool: act.Tool, Contract: act.Contract, IdemKey: id("k"), ToolCallID: id("t"), KeySource: "bench"}
	var err error
	if act.Operation, err = tx.PutPayload(store.Operation, string(act.ID), recorded); err != nil {
		return err
	}
	if intent.Arguments, err = tx.PutPayload(store.Arguments, string(intent.ID), []byte(`{}`)); err != nil {
		return err
	}
	event := func(kind action.EventKind) action.Event {
		return action.Event{ID: action.EventID(id(action.EventPrefix)), Kind: kind, Run: act.Run, Intent: act.Intent, Action: act.ID, Trace: act.Trace}
	}
	logged, accepted := event(action.IntentLogged), event(action.ActionAccepted)
	logged.IntentBody, accepted.AcceptedBody = &intent, &act
	logged.Action = ""
	if err := tx.Append(logged, accepted); err != nil {
		return err
	}
	binding := action.Binding{Decision: action.DecisionID(id(action.DecisionPrefix)), Kind: "policy", Rule: "bench"}
	if binding.Digest, err = digest.Binding(act.ID, op, act.Operation); err != nil {
		return err
	}
	attempt := action.Attempt{ID: action.AttemptID(id(action.AttemptPrefix)), Action: act.ID, Number: 1, State: action.AttemptSent,
		BytesSent: action.BytesUnknown, SpanID: act.Trace.SpanID, Started: tx.Now()}
	lost := attempt
	lost.State, lost.Ended = action.AttemptTimeout, tx.Now()
	for i, m := range []action.Moved{
		{Transition: action.T3, Binding: &binding},
		{Transition: action.T11, Started: &attempt, ResendBefore: tx.Now().Add(time.Hour)},
		{Transition: action.T16, Reason: "timeout", Recovery: action.Reconciling, Ended: &lost},
	} {
		m.FromAttempt = i / 2
		ev := event(action.MovedTo(m.Transition.To()))
		ev.MoveBody = &m
		if err := tx.Append(ev); err != nil {
			return err
		}
	}
	return nil
}
