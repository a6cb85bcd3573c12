package gateway

import (
	"context"
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/ladder"
	"deed.dev/deed/internal/store"
)

// Approvers says who may decide, as the policy stands now. An error means that nobody can.
type Approvers interface {
	Policy() (*approval.Policy, error)
}

// Pending lists the requests that wait for a person, those that expire first coming first.
func (g *Gateway) Pending(ctx context.Context) ([]action.Approval, error) {
	return g.store.Approvals(ctx, store.ApprovalQuery{Limit: 1000})
}

// decided is what a decision has led to for one action.
type decided struct {
	action action.Action
	plan   plan
}

// deciding is one decision on its way into the record.
type deciding struct {
	asked  action.ApprovalAsked
	via    string
	policy *approval.Policy
	held   map[action.ID]*flight // of actions that may be sent if it says so

	moved   []decided
	refusal *action.Error // recorded all the same: what it found out is kept
}

// Decide records what an approver has signed, and does what it says. What was approved is sent although its caller may be
// gone. A decision about anything else than what is asked, by anybody else than the policy says, or too late, changes
// nothing.
func (g *Gateway) Decide(ctx context.Context, by action.Actor, asked action.ApprovalAsked) (action.Answer, error) {
	if !by.Verified() {
		return action.Answer{}, action.Errorf(action.CodeUnauthenticated, "nothing was proved about who brings the decision, so nothing was changed")
	}
	d := deciding{asked: asked, via: by.String()}
	var err error
	if d.policy, err = g.policy(); err != nil {
		return action.Answer{}, refuseDecision(asked.Action, err.Error())
	}
	if !g.enter() {
		return action.Answer{}, action.Errorf(action.CodeOverloaded, "deed is stopping; nothing was changed, try again in a moment")
	}
	defer g.work.Done()
	first, err := g.decide(ctx, &d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return action.Answer{}, refuseDecision(asked.Action, "no such request is on record")
	case err != nil:
		return action.Answer{}, unavailable(err)
	case d.refusal != nil:
		return action.Answer{}, d.refusal
	}
	act, err := g.store.Action(context.WithoutCancel(ctx), asked.Action)
	if err != nil {
		return action.Answer{}, unavailable(err)
	}
	if first != nil {
		select {
		case <-first.done:
			act = first.action
		case <-ctx.Done():
		}
	}
	return g.deliver(context.WithoutCancel(ctx), action.Call{}, claimed{action: act}, act, nil)
}

// decide commits the decision, and starts what was allowed by it. One decision is taken at a time: two about one request
// would wait for each other's flights.
func (g *Gateway) decide(ctx context.Context, d *deciding) (first *flight, err error) {
	g.oneDecision.Lock()
	defer g.oneDecision.Unlock()
	if err := g.hold(ctx, d); err != nil {
		return nil, err
	}
	g.live()
	err = g.store.Commit(ctx, func(tx store.Tx) error {
		d.moved, d.refusal = nil, nil
		return g.decideIn(tx, d)
	})
	if err != nil {
		d.moved = nil
	}
	return g.release(d), err
}

// policy reads who may decide. Without one nobody may.
func (g *Gateway) policy() (*approval.Policy, error) {
	if g.approvers == nil {
		return nil, errors.New("this gateway has no policy that says who may approve")
	}
	policy, err := g.approvers.Policy()
	if err != nil {
		return nil, fmt.Errorf("nobody can approve or deny: %w", err)
	}
	if len(policy.Approvers) == 0 {
		return nil, errors.New("nobody can approve or deny: the policy names no approver")
	}
	return policy, nil
}

// hold reserves the flights of the actions that wait, so that nobody takes them for abandoned once they are allowed.
func (g *Gateway) hold(ctx context.Context, d *deciding) error {
	waiting, err := g.store.WaitingFor(ctx, d.asked.Approval)
	if err != nil {
		return err
	}
	d.held = map[action.ID]*flight{}
	for _, id := range waiting {
		f, free := g.flights.take(id)
		for !free { // it has only just begun to wait
			if landing := g.flights.landing(id); landing != nil {
				select {
				case <-landing:
				case <-ctx.Done():
					g.letGo(d)
					return ctx.Err()
				}
			}
			f, free = g.flights.take(id)
		}
		d.held[id] = f
	}
	return nil
}

// letGo ends the flights that were reserved in vain.
func (g *Gateway) letGo(d *deciding) {
	for id, f := range d.held {
		g.flights.land(f, g.current(action.Action{ID: id}))
	}
	d.held = nil
}

// release starts what was allowed, lets go of the rest and wakes who waits. It gives the flight of the action that was
// decided about, nil if nothing is sent for it.
func (g *Gateway) release(d *deciding) (first *flight) {
	var ids []action.ID
	for _, m := range d.moved {
		ids = append(ids, m.action.ID)
		f, held := d.held[m.action.ID]
		if !held {
			continue
		}
		delete(d.held, m.action.ID)
		if m.plan.nothing() {
			g.flights.land(f, m.action)
			continue
		}
		g.fly(f, m.action, m.plan)
		if m.action.ID == d.asked.Action {
			first = f
		}
	}
	g.letGo(d)
	g.bells.ring(ids)
	return first
}

// decideIn makes the decision part of the record, and the moves that follow from it, inside one change.
func (g *Gateway) decideIn(tx store.Tx, d *deciding) error {
	p, err := tx.Approval(d.asked.Approval)
	if err != nil {
		return err
	}
	act, err := tx.Action(p.Action)
	if err != nil {
		return err
	}
	switch {
	case p.Action != d.asked.Action:
		d.refusal = refuseDecision(d.asked.Action, "the request is about another action")
		return nil
	case p.State != action.ApprovalOpen:
		d.refusal = refuseDecision(act.ID, "the request is "+string(p.State)+" already, and the action is "+action.Shown(act.State, act.Delivery))
		return nil
	case p.Lapsed(tx.Now()):
		d.refusal = refuseDecision(act.ID, "the request has expired; an equal call of the agent asks anew")
		return g.expireFor(tx, d, p)
	}
	if d.refusal = g.count(tx, d, p, act); d.refusal != nil {
		return nil
	}
	if changed, err := g.changed(tx, d, p, act); changed || err != nil {
		return err
	}
	strength, err := d.policy.InTime(d.statement(p), d.asked.Signed, tx.Now())
	if err != nil {
		d.refusal = refuseDecision(act.ID, err.Error())
		return nil
	}
	said := action.Decided{
		Approval: p.ID, Action: p.Action, Binding: p.Binding, Nonce: p.Nonce, Expires: p.Expires, Decision: d.asked.Decision,
		Approver: d.asked.Approver, Strength: strength, Signed: d.asked.Signed, Via: d.via, At: tx.Now(),
	}
	if p, err = p.Decide(said); err != nil {
		d.refusal = refuseDecision(act.ID, err.Error())
		return nil
	}
	if act, err = g.say(tx, act, action.ApprovalDecided, action.Event{DecidedBody: &said}); err != nil {
		return err
	}
	switch p.State {
	case action.ApprovalDenied:
		return g.denied(tx, d, p)
	case action.ApprovalApproved:
		return g.approved(tx, d, p)
	default: // others have to approve it too
		d.moved = append(d.moved, decided{action: act})
		return nil
	}
}

// count refuses what cannot count whoever signed it.
func (g *Gateway) count(tx store.Tx, d *deciding, p action.Approval, act action.Action) *action.Error {
	approver, _ := d.policy.Approver(d.asked.Approver) // one that is unknown is refused with the signature
	switch {
	case d.asked.Decision != action.Approve && d.asked.Decision != action.Deny:
		return refuseDecision(act.ID, "a decision is approve or deny")
	case d.asked.Decision == action.Approve && p.NotRequester && approver.ActsAs(act.Actor):
		return refuseDecision(act.ID, "the contract lets nobody approve what was asked for in their own name")
	case d.asked.Decision == action.Approve && act.Credential != "" && g.vault.Locked():
		return action.Errorf(action.CodeVaultLocked, "the vault is locked, so nothing was decided and nothing was sent").About(act.ID)
	}
	return nil
}

func (d *deciding) statement(p action.Approval) approval.Statement {
	return approval.StatementOf(p, d.asked.Decision, d.asked.Approver)
}

// changed holds what is on record against what was asked about. If it differs, the question is void and is asked anew: what
// a person saw is not what would be sent.
func (g *Gateway) changed(tx store.Tx, d *deciding, p action.Approval, act action.Action) (bool, error) {
	if p.Rule == action.AsksRun {
		return false, nil
	}
	op, err := g.recorded(g.ctx, act)
	if err != nil {
		d.refusal = action.Errorf(action.CodeApprovalVoid, "the recorded operation cannot be read, so nothing was decided and nothing was sent").
			Because(err).About(act.ID)
		return true, nil
	}
	sum, err := digest.Binding(act.ID, op, act.Operation)
	if err != nil || sum == p.Binding {
		return false, err
	}
	d.refusal = action.Errorf(action.CodeApprovalVoid,
		"the operation on record is not the one that the request was about, so nothing was decided; look at the new request").About(act.ID)
	if err := g.void(tx, p.ID, voidChanged); err != nil {
		return true, err
	}
	if act, err = tx.Action(act.ID); err != nil {
		return true, err
	}
	act, err = g.request(tx, act, op, p.Rule, action.T8)
	d.moved = append(d.moved, decided{action: act})
	return true, err
}

func (g *Gateway) expireFor(tx store.Tx, d *deciding, p action.Approval) error {
	over, err := g.expire(tx, p)
	return errors.Join(err, g.note(tx, d, over))
}

func (g *Gateway) denied(tx store.Tx, d *deciding, p action.Approval) error {
	over, err := g.rejectWaiting(tx, p, action.Moved{RejectReason: action.Denied, Reason: string(action.Denied)})
	return errors.Join(err, g.note(tx, d, over))
}

// note remembers the actions that a decision has moved.
func (g *Gateway) note(tx store.Tx, d *deciding, ids []action.ID) error {
	for _, id := range ids {
		act, err := tx.Action(id)
		if err != nil {
			return err
		}
		d.moved = append(d.moved, decided{action: act})
	}
	return nil
}

// approved allows what waited for the request, and plans it. What waited for its run goes on up the ladder.
func (g *Gateway) approved(tx store.Tx, d *deciding, p action.Approval) error {
	waiting, err := tx.WaitingFor(p.ID)
	if err != nil {
		return err
	}
	for _, id := range waiting {
		act, err := tx.Action(id)
		if err != nil {
			return err
		}
		op, err := g.recorded(g.ctx, act)
		if err != nil {
			return err
		}
		moved := decided{}
		if moved.action, err = g.allow(tx, p, act, op); err != nil {
			return err
		}
		if _, held := d.held[id]; held {
			if moved.action, moved.plan, err = g.planIn(tx, moved.action); err != nil {
				return err
			}
		}
		d.moved = append(d.moved, moved)
	}
	return nil
}

// allow moves an action on after its request was approved.
func (g *Gateway) allow(tx store.Tx, p action.Approval, act action.Action, op action.Operation) (action.Action, error) {
	if p.Rule == action.AsksRun {
		decision, _, err := g.ladder(tx, act)
		switch {
		case err != nil:
			return act, err
		case decision.Verdict == ladder.Ask:
			return g.request(tx, act, op, decision.Rule, action.T8)
		case decision.Verdict == ladder.Deny:
			return g.move(tx, act, action.Moved{Transition: action.T7, RejectReason: decision.Reason, Reason: decision.Rule})
		}
	}
	binding, err := bound(act, op, action.ByPerson, p.Rule, p.Expires)
	if err != nil {
		return act, err
	}
	binding.Decision = p.ID
	return g.move(tx, act, action.Moved{Transition: action.T6, Binding: binding})
}

func refuseDecision(id action.ID, why string) *action.Error {
	return action.Errorf(action.CodeApprovalRefused, "nothing was decided and nothing was sent: %s", why).About(id)
}
