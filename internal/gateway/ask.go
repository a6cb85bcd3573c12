package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/store"
)

// question is what deed asks a target about one action: a request without effect, and how its answer is read.
type question struct {
	contract  *contract.Contract
	identity  contract.Identity
	poll      bool
	operation action.Operation
	binding   string
	finding   action.Finding // set when the answer is judged
}

// reply is what came of a question.
type reply struct {
	finding       action.Finding
	outcome       action.Outcome
	result        action.Result // what to give the caller, if the finding settles the action
	authoritative bool          // the contract calls "absent" a proof, once it has settled
}

// question makes the request from the arguments on record, under the action's own contract version.
func (g *Gateway) question(ctx context.Context, act action.Action, planned action.Observation) (*question, error) {
	c, err := g.version(ctx, act.Tool, act.Contract)
	if err != nil {
		return nil, err
	}
	intent, err := g.store.Intent(ctx, act.Intent)
	if err != nil {
		return nil, err
	}
	requested, err := g.store.Payload(ctx, store.Arguments, string(act.Intent))
	if err != nil {
		return nil, err
	}
	q := &question{contract: c, poll: planned.Kind == action.ByPoll, identity: contract.Identity{Action: act.ID, IdemKey: intent.IdemKey}}
	if q.poll {
		job, err := g.store.Payload(ctx, store.Job, string(act.ID))
		if err != nil {
			return nil, err
		}
		q.identity.Job = string(job)
		q.operation, err = c.PollOperation(requested, q.identity)
		if err != nil {
			return nil, err
		}
	} else if q.operation, err = c.LookupOperation(requested, q.identity); err != nil {
		return nil, err
	}
	if q.operation.Method != "GET" && q.operation.Method != "HEAD" {
		return nil, errors.New("a question may not use the method " + q.operation.Method)
	}
	q.binding, err = digest.Binding(act.ID, q.operation, "")
	return q, err
}

// dispatch hands the question out like an attempt, under its own span and without a token.
func (q *question) dispatch(act action.Action, planned action.Observation) action.Dispatch {
	return action.Dispatch{
		Action: act.ID, Attempt: action.AttemptID(planned.ID), Number: planned.Number,
		Operation: q.operation, Allowed: q.binding, Binding: q.binding,
		Trace: action.Trace{TraceID: act.Trace.TraceID, SpanID: planned.SpanID, ParentSpanID: act.Trace.SpanID},
		Judge: q.judge,
	}
}

// judge reads the answer. It proves nothing about the request that it answers, which had no effect.
func (q *question) judge(r action.Response) action.Verdict {
	if q.poll {
		q.finding = q.contract.Poll.Find(r, q.identity)
	} else {
		q.finding = q.contract.Lookup.Find(r, q.identity)
	}
	if q.finding == action.Inconclusive {
		return action.Verdict{Rule: "inconclusive"}
	}
	return action.Verdict{Certainty: action.EffectProven, Rule: string(q.finding)}
}

// reply puts together what the answer says. The result is computed from the answer without secrets.
func (q *question) reply(o action.Outcome) reply {
	r := reply{finding: q.finding, outcome: o, result: o.Result}
	if !q.poll {
		r.authoritative = q.contract.Lookup.Authoritative
	}
	if o.Status == 0 {
		r.finding = action.Inconclusive
		return r
	}
	headers := map[string][]string{}
	for _, h := range o.Result.Headers {
		headers[h.Name] = append(headers[h.Name], h.Value)
	}
	response := action.Response{Status: o.Status, Header: headers, Body: o.Result.Body, MediaType: o.Result.MediaType, Truncated: !o.Result.Complete}
	find := func() ([]byte, bool, error) { return q.contract.Lookup.Result(response, q.identity) }
	if q.poll {
		find = func() ([]byte, bool, error) { return q.contract.Poll.Result(response, q.identity) }
	}
	if body, given, err := find(); given && err == nil && !o.Result.Withheld {
		r.result = action.Result{Body: body, MediaType: "application/json", Complete: json.Valid(body), Size: int64(len(body))}
	}
	return r
}

// notAsked is the reply to a question that could not be put.
func (g *Gateway) notAsked(act action.Action, reason string, err error) reply {
	g.log.Error("nothing was asked", "action_id", act.ID, "reason", reason, "error", err)
	return reply{outcome: action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: reason}}
}
