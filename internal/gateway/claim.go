package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/crashpoint"
	"deed.dev/deed/internal/store"
)

// claimed is a call that belongs to an action: its own new one, or one that existed.
type claimed struct {
	action.Claim
	action  action.Action
	planned plan    // of a new action whose first attempt stands in the journal already
	flight  *flight // of a new action
	refusal *action.Error
}

// carriesOn says whether this call has anything to do for its action, or to wait for.
func (c claimed) carriesOn() bool {
	switch s := c.action.State; {
	case c.Kind == action.Hold:
		return false
	case s == action.Failed: // an explicit retry of what was never sent
		return c.Kind == action.Attach && c.action.FailureClass == action.NotSent && c.action.AttemptsLeft() > 0
	default:
		return !s.Final() && s != action.AwaitingApproval // a person says whether it goes on
	}
}

// asksAPerson says whether the call may wait for what a person says.
func (c claimed) asksAPerson() bool {
	return c.Kind != action.Hold && c.action.State == action.AwaitingApproval
}

// claim finds the action that a call belongs to or creates one, in one atomic and durable step. A new action that needs
// nobody's consent is allowed and planned in the same step.
func (g *Gateway) claim(ctx context.Context, call action.Call, a asked) (claimed, error) {
	crashpoint.Here(crashpoint.BeforeClaim) // W1
	if !g.enter() {
		return claimed{}, action.Errorf(action.CodeOverloaded, "deed is stopping; nothing was done, try again in a moment")
	}
	defer g.work.Done()
	g.live()
	id := action.ID(newID(action.Prefix))
	f := g.flights.reserve(id)
	f.stranger = a.Actor.Shared && !a.Hinted && !a.Keyed
	c, err := g.claimAs(ctx, call, a, id)
	if err == nil && c.Kind == action.Open {
		g.kept.Store(a.contract.Digest, true)
	}
	switch {
	case err != nil || c.Kind != action.Open:
		g.flights.land(f, action.Action{})
		return c, err
	case c.planned.nothing(): // refused by the ladder, or a person is asked
		g.flights.land(f, c.action)
		return c, nil
	default:
		c.flight = f
		g.fly(f, c.action, c.planned)
		return c, nil
	}
}

// claimAs commits the claim, under the identifier that a new action will have.
func (g *Gateway) claimAs(ctx context.Context, call action.Call, a asked, id action.ID) (claimed, error) {
	for {
		var c claimed
		err := g.store.Commit(ctx, func(tx store.Tx) (err error) {
			c, err = g.claimIn(tx, call, a, id)
			return err
		})
		var older *olderVersion
		switch {
		case errors.As(err, &older) && older.contract:
			if err := g.under(ctx, &a, call, older.action.Contract); err != nil {
				return claimed{}, err
			}
		case errors.As(err, &older):
			if err := g.underKey(ctx, &a, call, older.action); err != nil {
				return claimed{}, err
			}
		case err != nil:
			return claimed{}, unavailable(err)
		case c.refusal != nil:
			return claimed{}, c.refusal
		default:
			return c, nil
		}
	}
}

// olderVersion asks for the call's digests under the contract version, or else the key, that an earlier action was made
// with.
type olderVersion struct {
	action   action.Action
	contract bool
}

func (o *olderVersion) Error() string {
	return string(o.action.ID) + " was made under another contract version or key"
}

// claimIn is the decision and its consequences, inside one change.
func (g *Gateway) claimIn(tx store.Tx, call action.Call, a asked, id action.ID) (claimed, error) {
	priors, err := g.priors(tx, a)
	if err != nil {
		return claimed{}, err
	}
	c := claimed{Claim: action.Match(a.Asked, priors, tx.Now())}
	if expired, err := g.expirePrior(tx, c.Prior); expired || err != nil {
		if err != nil {
			return claimed{}, err
		}
		return g.claimIn(tx, call, a, id) // what it would wait for is over: the call is looked at again
	}
	if err := g.proved(tx, c.Proved); err != nil {
		return claimed{}, err
	}
	switch c.Kind {
	case action.Open:
		c.action, c.planned, err = g.open(tx, call, a, id, c.Claim)
	case action.Attach:
		c.action = *c.Prior
		seen := g.seen(c)
		if a.Keyed && c.Match != action.MatchKey {
			seen.IdemKey = a.idemKey
		}
		err = tx.Append(callEvent(tx.Now(), call, a.run, c.action.ID, action.CallAttached, seen))
	case action.Hold:
		c.action = *c.Prior
		err = tx.Append(callEvent(tx.Now(), call, a.run, c.action.ID, action.CallHeld, g.seen(c)))
	default:
		c.refusal = c.Refusal
		c.refusal.Journalled = true
		err = tx.Append(callEvent(tx.Now(), call, a.run, "", action.CallRefused, g.seen(c)))
	}
	return c, err
}

func (g *Gateway) seen(c claimed) action.CallSeen {
	seen := action.CallSeen{Verdict: c.Kind, Match: c.Match, Why: c.Why}
	if c.Prior != nil {
		seen.Prior = c.Prior.State
	}
	if c.refusal != nil {
		seen.Code = c.refusal.Code
	}
	return seen
}

// priors reads every earlier action that could matter to the call.
func (g *Gateway) priors(tx store.Tx, a asked) (p action.Priors, err error) {
	find := func(act action.Action, err error) (*action.Action, error) {
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if contract, key := a.knows(act); !contract || !key {
			return nil, &olderVersion{action: act, contract: !contract}
		}
		return &act, nil
	}
	if a.Keyed {
		if p.ByKey, err = find(tx.ActionByIdemKey(a.idemKey)); err != nil {
			return p, err
		}
	}
	if a.Repeat {
		if p.Repeated, err = find(tx.ActionByRepeatToken(tokenDigest(a.resolved.RepeatOf))); err != nil || p.Repeated == nil {
			return p, err
		}
		if p.Successor, err = find(tx.ActionRepeating(p.Repeated.ID)); err != nil || p.Successor != nil {
			return p, err
		}
	}
	if a.Undoes != "" {
		if p.Undoing, err = find(tx.ActionUndoing(a.Undoes)); err != nil || p.Undoing != nil {
			return p, err
		}
	}
	var fingerprints, effects, resources []string
	for _, v := range a.Variants {
		if v.Digests.Fingerprint == "" {
			continue
		}
		fingerprints, effects = append(fingerprints, v.Digests.Fingerprint), append(effects, v.Digests.Effect)
		if v.Digests.Resource != "" {
			resources = append(resources, v.Digests.Resource)
		}
	}
	if p.ByFingerprint, err = tx.ActionsByFingerprint(fingerprints); err != nil {
		return p, err
	}
	if a.contract.HasEffects {
		if p.OpenByEffect, err = tx.UnknownByEffect(a.Actor.String(), effects); err != nil {
			return p, err
		}
		if len(resources) > 0 {
			p.OpenResource, err = tx.UnknownByResource(a.Actor.String(), resources)
		}
	}
	return p, err
}

// proved settles the delivery of a result that the caller has just shown to hold.
func (g *Gateway) proved(tx store.Tx, act *action.Action) error {
	if act == nil || !act.Delivery.CanBecome(action.Delivered) {
		return nil
	}
	return tx.Append(deliveryEvent(tx.Now(), *act, action.Delivered, "repeat_of_cited"))
}

// open makes a new action: accepted, and then allowed and planned, or refused.
func (g *Gateway) open(tx store.Tx, call action.Call, a asked, id action.ID, claim action.Claim) (action.Action, plan, error) {
	op, err := a.resolved.Operation(id, a.idemKey)
	if err == nil {
		err = g.sealSecrets(&op, a, id)
	}
	if err != nil {
		return action.Action{}, plan{}, err
	}
	intent := action.Intent{
		ID: action.IntentID(newID(action.IntentPrefix)), Run: a.run.ID, Tool: a.Tool, Contract: a.contract.Digest,
		IdemKey: a.idemKey, Step: a.step, ToolCallID: a.toolCallID, KeySource: a.keySource, At: tx.Now(),
	}
	again := claim.Match == action.MatchKey // the intent is on record, and its earlier action ended undecided
	if again {
		intent.ID = claim.Prior.Intent
	}
	act := g.newAction(tx, a, intent, op, id, claim)
	if err := g.keepPlan(tx, a, &intent, &act, op, again); err != nil {
		return act, plan{}, err
	}
	header := action.Event{Time: tx.Now(), Run: a.run.ID, Intent: intent.ID, Trace: act.Trace}
	logged, accepted := header, header
	logged.ID, logged.Kind, logged.IntentBody = action.EventID(newID(action.EventPrefix)), action.IntentLogged, &intent
	accepted.ID, accepted.Kind, accepted.AcceptedBody = action.EventID(newID(action.EventPrefix)), action.ActionAccepted, &act
	accepted.Action, accepted.Request = act.ID, g.described(a, op)
	seen := action.CallSeen{Verdict: action.Open, Match: claim.Match}
	events := []action.Event{callEvent(tx.Now(), call, a.run, act.ID, action.CallAccepted, seen), logged, accepted}
	if again {
		events = slices.Delete(events, 1, 2)
	}
	if err = tx.Append(events...); err != nil {
		return act, plan{}, err
	}
	if act, err = g.authorize(tx, act, op); err != nil {
		return act, plan{}, err
	}
	act, planned, err := g.planIn(tx, act)
	if err == nil && act.Reason == action.ReasonNotAnchored {
		err = notAnchored()
	}
	return act, planned, err
}

// described says what will be sent, and how it was resolved, without its content.
func (g *Gateway) described(a asked, op action.Operation) *action.RequestSeen {
	seen := &action.RequestSeen{Steps: a.resolved.Steps, BodyBytes: int64(len(op.Body)), Redaction: action.RedactionNone}
	if len(op.Body) > 0 {
		seen.BodyDigest, seen.Redaction = g.keys.Current().Body(op.Body), action.RedactionWithheld
	}
	for _, h := range op.Headers {
		seen.HeaderNames = append(seen.HeaderNames, h.Name)
	}
	for _, name := range []string{op.Key.Header, "Content-Type"} {
		if name != "" && (name != "Content-Type" || op.MediaType != "") {
			seen.HeaderNames = append(seen.HeaderNames, name)
		}
	}
	slices.Sort(seen.HeaderNames)
	seen.HeaderNames = slices.Compact(seen.HeaderNames)
	return seen
}

// keepPlan stores the arguments and the exact bytes of the operation apart from the journal.
func (g *Gateway) keepPlan(tx store.Tx, a asked, intent *action.Intent, act *action.Action, op action.Operation, again bool) (err error) {
	if _, kept := g.kept.Load(a.contract.Digest); !kept {
		if err = tx.PutContract(a.contract.Digest, a.Tool, a.contract.Source); err != nil {
			return err
		}
	}
	if !again {
		if intent.Arguments, err = tx.PutPayload(store.Arguments, string(intent.ID), a.resolved.Requested); err != nil {
			return err
		}
	}
	data, err := json.Marshal(op)
	if err != nil {
		return err
	}
	act.Operation, err = tx.PutPayload(store.Operation, string(act.ID), data)
	return err
}

func (g *Gateway) newAction(tx store.Tx, a asked, intent action.Intent, op action.Operation, id action.ID, claim action.Claim) action.Action {
	c := a.contract
	act := action.Action{
		ID: id, Intent: intent.ID, Run: a.run.ID, Actor: a.Actor.String(), Tool: a.Tool,
		State: action.Accepted, Delivery: action.DeliveryNone,
		Class: c.Class, Contract: c.Digest, MaxAttempts: c.MaxAttempts, KeyLife: c.KeyLife, AttachFor: c.AttachFor,
		ReviewAfter: c.ReviewAfter, KeepResult: c.KeepResult, CanAsk: c.Lookup != nil, Compensates: a.Undoes,
		Channel: op.Channel, Target: op.Target, Method: op.Method, Template: op.Template, Credential: op.Credential,
		Digests: a.Variants[0].Digests, Trace: action.Trace{TraceID: newTraceID(), SpanID: newSpanID()},
		AcceptedAt: tx.Now(), UpdatedAt: tx.Now(),
	}
	switch {
	case claim.Match == action.MatchRepeat:
		act.Repeats = claim.Prior.ID
	case claim.Prior != nil:
		act.Similar = claim.Prior.ID
	}
	return act
}

// expirePrior ends an earlier action that waits for a person who did not answer in time.
func (g *Gateway) expirePrior(tx store.Tx, prior *action.Action) (bool, error) {
	if prior == nil || prior.State != action.AwaitingApproval || prior.Approval == "" {
		return false, nil
	}
	p, err := tx.Approval(prior.Approval)
	if err != nil || p.State != action.ApprovalOpen || !p.Lapsed(tx.Now()) {
		return false, err
	}
	_, err = g.expire(tx, p)
	return true, err
}
