package gateway

import (
	"errors"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/ladder"
	"deed.dev/deed/internal/store"
)

// Reasons for which a request to a person, or what was decided about it, counts no more.
const (
	voidExpired   = "expired"          // nobody decided in time
	voidLapsed    = "approval_expired" // it was approved, and nothing was sent in time
	voidChanged   = "binding_changed"
	voidCancelled = "cancelled"
	voidRevoked   = "revoked"
)

// authorize asks the ladder, and binds what it says to exactly this action: its target, its credential, its bytes.
func (g *Gateway) authorize(tx store.Tx, act action.Action, op action.Operation) (action.Action, error) {
	decision, until, err := g.ladder(tx, act)
	if err != nil {
		return act, err
	}
	switch decision.Verdict {
	case ladder.Allow:
		binding, err := bound(act, op, action.ByPolicy, decision.Rule, until)
		if err != nil {
			return act, err
		}
		return g.move(tx, act, action.Moved{Transition: action.T3, Binding: binding})
	case ladder.Ask:
		return g.request(tx, act, op, decision.Rule, action.T4)
	default:
		return g.move(tx, act, action.Moved{
			Transition: action.T5, RejectReason: decision.Reason, Reason: decision.Rule,
			Binding: &action.Binding{Decision: newDecision(), Kind: action.ByPolicy, Rule: decision.Rule},
		})
	}
}

// bound is what is allowed: a decision, and the digest that is computed again in the moment of sending.
func bound(act action.Action, op action.Operation, kind, rule string, until time.Time) (*action.Binding, error) {
	sum, err := digest.Binding(act.ID, op, act.Operation)
	return &action.Binding{Decision: newDecision(), Kind: kind, Rule: rule, Digest: sum, Until: until}, err
}

func newDecision() action.DecisionID { return action.DecisionID(newID(action.DecisionPrefix)) }

// ladder asks the ladder about an action as things stand, and gives the time at which a session ends that a person
// authorized; zero where no person was asked about it.
func (g *Gateway) ladder(tx store.Tx, act action.Action) (ladder.Decision, time.Time, error) {
	facts := ladder.Facts{ActorVerified: true, RunAuthorized: true, VaultLocked: act.Credential != "" && g.vault.Locked()}
	if c, ok := g.contracts.Tool(act.Tool); ok {
		facts.EachUse = c.EachUse
	}
	if g.eachUse != nil && act.Credential != "" {
		facts.EachUse = facts.EachUse || g.eachUse(act.Credential)
	}
	var err error
	if facts.RunRevoked, err = tx.RunRevoked(act.Run); err != nil {
		return ladder.Decision{}, time.Time{}, err
	}
	var until time.Time
	if g.authorizeRuns && strings.HasPrefix(act.Actor, "process:") { // a token was given out by a person already
		p, err := tx.ApprovalOfRun(act.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return ladder.Decision{}, time.Time{}, err
		}
		facts.RunAuthorized = err == nil && p.State == action.ApprovalApproved && !p.Lapsed(tx.Now())
		until = p.Expires
	}
	return ladder.Decide(facts), until, nil
}

// request lets a person be asked, in the same change in which the action begins to wait for the answer. All actions of a
// run wait for one request about the run.
func (g *Gateway) request(tx store.Tx, act action.Action, op action.Operation, rule string, t action.Transition) (action.Action, error) {
	p, err := g.openRequest(tx, act, rule)
	if err != nil {
		return act, err
	}
	if p.ID == "" {
		if p, err = g.newRequest(tx, act, op, rule); err != nil {
			return act, err
		}
		if act, err = g.say(tx, act, action.ApprovalRequested, action.Event{ApprovalBody: &p}); err != nil {
			return act, err
		}
	}
	return g.move(tx, act, action.Moved{Transition: t, Approval: p.ID, Reason: rule})
}

// openRequest finds the request about the action's run that is open already. One that has expired ends here.
func (g *Gateway) openRequest(tx store.Tx, act action.Action, rule string) (action.Approval, error) {
	if rule != action.AsksRun {
		return action.Approval{}, nil
	}
	p, err := tx.ApprovalOfRun(act.Run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return action.Approval{}, nil
	case err != nil:
		return action.Approval{}, err
	case p.State == action.ApprovalOpen && p.Lapsed(tx.Now()):
		_, err = g.expire(tx, p)
		return action.Approval{}, err
	case p.State != action.ApprovalOpen:
		return action.Approval{}, nil
	}
	return p, nil
}

func (g *Gateway) newRequest(tx store.Tx, act action.Action, op action.Operation, rule string) (action.Approval, error) {
	terms := contract.Approval{Approvers: 1, Expires: g.runLife}
	var sum string
	var err error
	if rule == action.AsksRun {
		var run action.Run
		if run, err = g.store.Run(g.ctx, act.Run); err == nil {
			sum, err = digest.RunBinding(run)
		}
	} else {
		terms.Expires = 15 * time.Minute
		if c, ok := g.contracts.Tool(act.Tool); ok {
			terms = c.Approval
		}
		sum, err = digest.Binding(act.ID, op, act.Operation)
	}
	return action.Approval{
		ID: newDecision(), Action: act.ID, Run: act.Run, Rule: rule, Binding: sum, Nonce: newToken("n_"),
		Expires: tx.Now().Add(terms.Expires).Truncate(time.Microsecond), Needed: terms.Approvers, NotRequester: terms.NotRequester,
		State: action.ApprovalOpen,
	}, err
}

// say journals an event about requests that moves no action.
func (g *Gateway) say(tx store.Tx, act action.Action, kind action.EventKind, body action.Event) (action.Action, error) {
	ev := about(tx, act, kind)
	ev.ApprovalBody, ev.DecidedBody, ev.VoidedBody, ev.RevokedBody = body.ApprovalBody, body.DecidedBody, body.VoidedBody, body.RevokedBody
	return apply(tx, act, ev)
}

// void ends a request, or what was approved by it. One that is over already stays as it is.
func (g *Gateway) void(tx store.Tx, id action.DecisionID, why string) error {
	p, err := tx.Approval(id)
	if err != nil || p.State != action.ApprovalOpen && p.State != action.ApprovalApproved {
		return err
	}
	act, err := tx.Action(p.Action)
	if err != nil {
		return err
	}
	_, err = g.say(tx, act, action.ApprovalVoided, action.Event{VoidedBody: &action.Voided{Approval: id, Action: p.Action, Why: why}})
	return err
}

// expire ends a request that nobody answered in time, and the actions that waited for it. It is no decision: an equal call
// is a new action.
func (g *Gateway) expire(tx store.Tx, p action.Approval) ([]action.ID, error) {
	if err := g.void(tx, p.ID, voidExpired); err != nil {
		return nil, err
	}
	return g.rejectWaiting(tx, p, action.Moved{RejectReason: action.Expired, Reason: "approval_" + voidExpired})
}

// rejectWaiting rejects every action that waits for a request.
func (g *Gateway) rejectWaiting(tx store.Tx, p action.Approval, m action.Moved) ([]action.ID, error) {
	waiting, err := tx.WaitingFor(p.ID)
	if err != nil {
		return nil, err
	}
	for _, id := range waiting {
		act, err := tx.Action(id)
		if err != nil {
			return nil, err
		}
		m.Transition, m.Binding = action.T7, &action.Binding{Decision: p.ID, Kind: action.ByPerson, Rule: p.Rule}
		if _, err := g.move(tx, act, m); err != nil {
			return nil, err
		}
	}
	return waiting, nil
}

// lapsed takes an action back that a person allowed and that was not sent in time: what was allowed is void, and a person
// is asked anew, unless the ladder now denies it.
func (g *Gateway) lapsed(tx store.Tx, act action.Action, why string) (action.Action, error) {
	op, err := g.recorded(g.ctx, act)
	if err != nil {
		return act, err
	}
	if act.Binding.Kind == action.ByPerson {
		if p, err := tx.Approval(act.Binding.Decision); err != nil {
			return act, err
		} else if p.Rule == action.AsksEachUse || p.Lapsed(tx.Now()) { // a run's stands for its other actions as long as it lasts
			if err := g.void(tx, p.ID, why); err != nil {
				return act, err
			}
		}
		if act, err = tx.Action(act.ID); err != nil {
			return act, err
		}
	}
	decision, _, err := g.ladder(tx, act)
	switch {
	case err != nil:
		return act, err
	case decision.Verdict == ladder.Deny:
		return g.move(tx, act, action.Moved{Transition: action.T10, RejectReason: decision.Reason, Reason: decision.Rule})
	case decision.Verdict == ladder.Ask:
		return g.request(tx, act, op, decision.Rule, action.T9)
	default: // a person was asked once, and the contract asks for nobody any more: asking again is the way that harms nobody
		return g.request(tx, act, op, action.AsksEachUse, action.T9)
	}
}

// expireRequests ends the requests that nobody answered in time.
func (g *Gateway) expireRequests() error {
	open, err := g.store.Approvals(g.ctx, store.ApprovalQuery{Limit: atOnce})
	if err != nil || len(open) == 0 {
		return err
	}
	var over []action.ID
	err = g.store.Commit(g.ctx, func(tx store.Tx) error {
		over = nil
		for _, p := range open {
			if !p.Lapsed(tx.Now()) {
				continue
			}
			now, err := tx.Approval(p.ID)
			if err != nil {
				return err
			}
			if now.State != action.ApprovalOpen {
				continue
			}
			rejected, err := g.expire(tx, now)
			if err != nil {
				return err
			}
			over = append(over, rejected...)
		}
		return nil
	})
	g.bells.ring(over)
	return err
}
