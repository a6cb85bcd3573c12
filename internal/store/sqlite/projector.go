package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/eventlog"
)

// projector makes rows from events, and nothing else does. The same code runs when an event is appended and when the
// journal is replayed, so both give the same rows.
type projector struct {
	reads *reads
	insertRun, insertCall, insertIntent, insertAction, insertAttempt, endAttempt, insertResult,
	move, finish, deliver, observation, observe, delegate, purge, touch, toolOf, insertRead *sql.Stmt

	approvals                                                 *approvalReads
	insertApproval, settleApproval, insertDecision, revokeRun *sql.Stmt

	// Actions and tools of the change under way, so that a chain of moves reads its action once.
	seen  map[action.ID]row
	tools map[action.IntentID]string
}

func prepareProjector(p *statements, r *reads) *projector {
	return &projector{
		reads: r, seen: map[action.ID]row{}, tools: map[action.IntentID]string{},
		insertRun:     p.prepare(insertRun),
		insertCall:    p.prepare(insertCall),
		insertIntent:  p.prepare(insertIntent),
		insertAction:  p.prepare(insertAction),
		insertAttempt: p.prepare(insertAttempt),
		endAttempt:    p.prepare(endAttempt),
		insertResult:  p.prepare(insertResult),
		move:          p.prepare(moveAction + ofAction),
		finish:        p.prepare(moveActionAcross),
		deliver:       p.prepare(deliverAction),
		observation:   p.prepare(putObservation),
		observe:       p.prepare(observeAction),
		delegate:      p.prepare(delegateAction),
		purge:         p.prepare(purgeAction),
		insertRead:    p.prepare(insertRead),
		touch:         p.prepare(touchAction),
		toolOf:        p.prepare(`select tool from intents where id = ?`),

		approvals:      r.approvals,
		insertApproval: p.prepare(insertApproval),
		settleApproval: p.prepare(settleApproval),
		insertDecision: p.prepare(insertDecision),
		revokeRun:      p.prepare(revokeRun),
	}
}

// forget drops what was remembered of a change. After a rollback it would be wrong, and otherwise only grow.
func (p *projector) forget() {
	clear(p.seen)
	clear(p.tools)
}

// step is an event that fits the rows as they are: what its record needs to know, and what its rows will be.
type step struct {
	event action.Event
	about action.Action // as it stands before the event
	after string        // hash of its previous event
	from  row
	to    row

	approval    action.Approval // as it will be, if the event says something about one
	approvalWas action.ApprovalState
}

// prepare holds an event against the rows, without writing.
func (p *projector) prepare(ev action.Event) (step, error) {
	ev, err := eventlog.Normal(ev)
	if err != nil {
		return step{}, err
	}
	switch {
	case ev.AcceptedBody != nil:
		return p.prepareAccepted(ev)
	case ev.MoveBody != nil, ev.DeliveryBody != nil, ev.ObservedBody != nil, ev.DelegatedBody != nil,
		ev.PurgedBody != nil, ev.ApprovalBody != nil, ev.DecidedBody != nil, ev.VoidedBody != nil,
		ev.RevokedBody != nil && ev.Action != "":
		return p.prepareChange(ev)
	case ev.ReadBody != nil:
		return p.prepareRead(ev)
	default:
		return step{event: ev}, nil
	}
}

func (p *projector) prepareAccepted(ev action.Event) (step, error) {
	tool, err := p.tool(ev.Intent)
	if err != nil {
		return step{}, about(err, "intent", ev.Intent)
	}
	a := *ev.AcceptedBody
	if a.Tool != "" && a.Tool != tool {
		return step{}, fmt.Errorf("%s is of the tool %s, and its intent of %s", a.ID, a.Tool, tool)
	}
	a.Tool = tool
	return step{event: ev, to: row{Action: a}}, nil
}

func (p *projector) prepareChange(ev action.Event) (step, error) {
	r, err := p.action(ev.Action)
	if err != nil {
		return step{}, about(err, "action", ev.Action)
	}
	if ev.Run == "" {
		ev.Run = r.Run
	}
	if ev.Intent == "" {
		ev.Intent = r.Intent
	}
	if ev.Trace.TraceID == "" {
		ev.Trace = r.Trace
	}
	if ev.Run != r.Run || ev.Intent != r.Intent {
		return step{}, fmt.Errorf("%s belongs to %s of %s, not to %s of %s", r.ID, r.Intent, r.Run, ev.Intent, ev.Run)
	}
	next, err := r.Apply(ev)
	if err != nil {
		return step{}, refusal(err)
	}
	was, approval, err := p.prepareApproval(ev, r.Action)
	if err != nil {
		return step{}, err
	}
	to := r
	to.Action = next
	return step{event: ev, about: r.Action, after: r.eventHash.String(), from: r, to: to, approval: approval, approvalWas: was.State}, nil
}

// refusal is the core's refusal of an event in the words of the store's contract.
func refusal(err error) error {
	var illegal *action.IllegalMoveError
	var known *action.Error
	if errors.As(err, &illegal) || errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrStale, err)
}

// action reads a row, from what this change has written if it did.
func (p *projector) action(id action.ID) (row, error) {
	if r, ok := p.seen[id]; ok {
		return r, nil
	}
	r, err := p.reads.actionRow(background, p.reads.action, string(id))
	if err == nil {
		p.seen[id] = r
	}
	return r, err
}

func (p *projector) tool(id action.IntentID) (tool string, err error) {
	if tool, ok := p.tools[id]; ok {
		return tool, nil
	}
	err = one(background, p.toolOf, func(scan func(...any) error) error { return scan(&tool) }, string(id))
	return tool, err
}

// write makes the rows of a step whose record stands at at.
func (p *projector) write(s step, at place) error {
	switch ev := s.event; {
	case ev.RunBody != nil:
		return p.writeRun(*ev.RunBody)
	case ev.CallBody != nil:
		return p.writeCall(ev, at)
	case ev.RevokedBody != nil && ev.Action == "":
		return p.writeRevoked(ev.Run, ev.Time)
	case ev.IntentBody != nil:
		return p.writeIntent(*ev.IntentBody)
	case ev.ReadBody != nil:
		return p.writeRead(ev, at)
	case ev.AcceptedBody != nil:
		return p.writeAccepted(s.to, at)
	default:
		return p.writeChange(s, at)
	}
}
