package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

const (
	approvalColumns = `id, action, run, rule, binding_digest, nonce, expires_at, needed, not_requester, state, why, requested_at, updated_at`
	selectApproval  = `select ` + approvalColumns + ` from approvals `

	insertApproval = `insert into approvals (` + approvalColumns + `) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	settleApproval = `update approvals set state = ?, why = ?, updated_at = ? where id = ? and state = ?`
	insertDecision = `insert into approval_decisions (approval, approver, decision, strength, key, signature, authenticator_data, client_data,
		via, decided_at, seq) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	selectDecisions = `select approver, decision, strength, key, signature, authenticator_data, client_data, via, decided_at
		from approval_decisions where approval = ? order by seq`
)

// approvalReads are the questions about requests that both a Reader and a change under way ask.
type approvalReads struct{ approval, decisions, ofRun, waiting, revoked *sql.Stmt }

func prepareApprovalReads(p *statements) *approvalReads {
	return &approvalReads{
		approval:  p.prepare(selectApproval + `where id = ?`),
		decisions: p.prepare(selectDecisions),
		ofRun: p.prepare(selectApproval + `where run = ? and rule = 'run' and (state = 'open' or state = 'approved')
			order by requested_at desc, id desc limit 1`),
		waiting: p.prepare(selectID + `where approval = ? and state = 'awaiting_approval' order by seq`),
		revoked: p.prepare(`select revoked_at is not null from runs where id = ?`),
	}
}

func scanApproval(scan func(...any) error) (p action.Approval, err error) {
	err = scan(&p.ID, &p.Action, &p.Run, &p.Rule, &p.Binding, &p.Nonce, instant{&p.Expires}, &p.Needed, &p.NotRequester, &p.State, &p.Why,
		instant{&p.Requested}, instant{&p.Updated})
	if err != nil {
		return p, fmt.Errorf("read a request for approval: %w", err)
	}
	return p, nil
}

// read gives one request with what was decided about it.
func (r *approvalReads) read(ctx context.Context, s *sql.Stmt, by string) (p action.Approval, err error) {
	err = one(ctx, s, func(scan func(...any) error) error {
		p, err = scanApproval(scan)
		return err
	}, by)
	if err != nil {
		return action.Approval{}, err
	}
	return r.decided(ctx, p)
}

func (r *approvalReads) decided(ctx context.Context, p action.Approval) (action.Approval, error) {
	return p, many(ctx, r.decisions, func(scan func(...any) error) error {
		d := action.Decided{Approval: p.ID, Action: p.Action, Binding: p.Binding, Nonce: p.Nonce, Expires: p.Expires}
		s := &d.Signed
		if err := scan(&d.Approver, &d.Decision, &d.Strength, &s.Key, &s.Signature, &s.AuthenticatorData, &s.ClientData, &d.Via,
			instant{&d.At}); err != nil {
			return fmt.Errorf("read a decision: %w", err)
		}
		for _, b := range []*[]byte{&s.Key, &s.AuthenticatorData, &s.ClientData} {
			if len(*b) == 0 {
				*b = nil
			}
		}
		p.Decisions = append(p.Decisions, d)
		return nil
	}, string(p.ID))
}

// Approval implements store.Reader.
func (r *reader) Approval(ctx context.Context, id action.DecisionID) (action.Approval, error) {
	p, err := r.approvals.read(ctx, r.approvals.approval, string(id))
	return p, about(err, "request", id)
}

// Approvals implements store.Reader.
func (r *reader) Approvals(ctx context.Context, q store.ApprovalQuery) (all []action.Approval, err error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	text, args := selectApprovals(q)
	rows, err := r.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list requests for approval: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		p, err := scanApproval(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list requests for approval: %w", err)
	}
	for i := range all {
		if all[i], err = r.approvals.decided(ctx, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// selectApprovals writes the statement of a query. Each is served by one index.
func selectApprovals(q store.ApprovalQuery) (string, []any) {
	switch {
	case q.Action != "":
		return selectApproval + `where action = ? or id = (select approval from actions where id = ?) order by requested_at, id limit ?`,
			[]any{string(q.Action), string(q.Action), q.Limit}
	case !q.Expired.IsZero():
		return selectApproval + `indexed by approvals_open where state = 'open' and expires_at <= ? order by expires_at, id limit ?`,
			[]any{micros(q.Expired), q.Limit}
	default:
		return selectApproval + `indexed by approvals_open where state = 'open' order by expires_at, id limit ?`, []any{q.Limit}
	}
}

// WaitingFor implements store.Reader.
func (r *reader) WaitingFor(ctx context.Context, id action.DecisionID) ([]action.ID, error) {
	return waitingFor(ctx, r.approvals, id)
}

func waitingFor(ctx context.Context, r *approvalReads, id action.DecisionID) (ids []action.ID, err error) {
	err = many(ctx, r.waiting, func(scan func(...any) error) error {
		var id action.ID
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, string(id))
	return ids, err
}

// Approval implements store.Tx.
func (t *tx) Approval(id action.DecisionID) (action.Approval, error) {
	if err := t.usable(); err != nil {
		return action.Approval{}, err
	}
	p, err := t.w.approvals.read(background, t.w.approvals.approval, string(id))
	return p, about(t.note(err), "request", id)
}

// ApprovalOfRun implements store.Tx.
func (t *tx) ApprovalOfRun(run action.RunID) (action.Approval, error) {
	if err := t.usable(); err != nil {
		return action.Approval{}, err
	}
	p, err := t.w.approvals.read(background, t.w.approvals.ofRun, string(run))
	return p, about(t.note(err), "request of the run", run)
}

// WaitingFor implements store.Tx.
func (t *tx) WaitingFor(id action.DecisionID) ([]action.ID, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	ids, err := waitingFor(background, t.w.approvals, id)
	return ids, t.note(err)
}

// RunRevoked implements store.Tx.
func (t *tx) RunRevoked(run action.RunID) (revoked bool, err error) {
	if err := t.usable(); err != nil {
		return false, err
	}
	err = one(background, t.w.approvals.revoked, func(scan func(...any) error) error { return scan(&revoked) }, string(run))
	return revoked, about(t.note(err), "run", run)
}

// prepareApproval holds what an event says about requests against the requests as they are.
func (p *projector) prepareApproval(ev action.Event, about action.Action) (from, to action.Approval, err error) {
	var id action.DecisionID
	switch {
	case ev.ApprovalBody != nil:
		return from, *ev.ApprovalBody, nil
	case ev.DecidedBody != nil:
		id = ev.DecidedBody.Approval
	case ev.VoidedBody != nil:
		id = ev.VoidedBody.Approval
	case ev.MoveBody != nil && ev.MoveBody.Approval != "":
		id = ev.MoveBody.Approval
	case ev.MoveBody != nil && ev.MoveBody.Transition == action.T6 && about.Approval != "":
		id = ev.MoveBody.Binding.Decision
	case ev.MoveBody != nil && ev.MoveBody.Started != nil && ev.MoveBody.Review == nil && about.Binding.Kind == action.ByPerson:
		id = about.Binding.Decision
	default:
		return from, to, nil
	}
	if from, err = p.approvals.read(background, p.approvals.approval, string(id)); err != nil {
		return from, to, err
	}
	to = from
	switch m := ev.MoveBody; {
	case ev.DecidedBody != nil:
		to, err = from.Decide(*ev.DecidedBody)
	case ev.VoidedBody != nil:
		to, err = from.Void(*ev.VoidedBody, ev.Time)
	case m.Approval != "" && (from.State != action.ApprovalOpen || from.Action != about.ID && (from.Rule != action.AsksRun || from.Run != about.Run)):
		err = fmt.Errorf("%s cannot wait for %s", about.ID, id)
	case m.Transition == action.T6 && !from.Covers(about, *m.Binding):
		err = fmt.Errorf("%s does not allow %s as it is bound", id, about.ID)
	case m.Started != nil && (from.State != action.ApprovalApproved || about.Lapsed(ev.Time, false)): // (AP-10, AP-17)
		err = fmt.Errorf("%s, by which %s was allowed, is %s and ends at %s", id, about.ID, from.State, about.Binding.Until)
	}
	if err != nil {
		return from, to, fmt.Errorf("%w: %w", store.ErrStale, err)
	}
	return from, to, nil
}

func (p *projector) writeApproval(s step, at place) error {
	a := s.approval
	switch ev := s.event; {
	case ev.ApprovalBody != nil:
		_, err := p.insertApproval.ExecContext(background, string(a.ID), string(a.Action), string(a.Run), a.Rule, a.Binding, a.Nonce,
			micros(a.Expires), int64(a.Needed), a.NotRequester, string(a.State), a.Why, micros(a.Requested), micros(a.Updated))
		return err
	case ev.DecidedBody != nil:
		if err := p.writeDecided(*ev.DecidedBody, at.seq); err != nil {
			return err
		}
	case ev.VoidedBody == nil:
		return nil
	}
	if a.State == s.approvalWas {
		return nil
	}
	result, err := p.settleApproval.ExecContext(background, string(a.State), a.Why, micros(a.Updated), string(a.ID), string(s.approvalWas))
	if err != nil {
		return err
	}
	return onlyOne(result, string(a.ID))
}

func (p *projector) writeDecided(d action.Decided, seq int64) error {
	some := func(b []byte) []byte { return append([]byte{}, b...) } // a null is no empty value
	_, err := p.insertDecision.ExecContext(background, string(d.Approval), d.Approver, string(d.Decision), string(d.Strength),
		some(d.Signed.Key), some(d.Signed.Signature), some(d.Signed.AuthenticatorData), some(d.Signed.ClientData), d.Via, micros(d.At), seq)
	return err
}

const revokeRun = `update runs set revoked_at = coalesce(revoked_at, ?) where id = ?`

func (p *projector) writeRevoked(run action.RunID, at time.Time) error {
	result, err := p.revokeRun.ExecContext(background, micros(at), string(run))
	if err != nil {
		return err
	}
	return onlyOne(result, string(run))
}

// RunsOf implements store.Reader.
func (r *reader) RunsOf(ctx context.Context, actor string) (runs []action.RunID, err error) {
	err = many(ctx, r.runsOf, func(scan func(...any) error) error {
		var run action.RunID
		err := scan(&run)
		runs = append(runs, run)
		return err
	}, actor)
	return runs, err
}

// Pending implements store.Reader.
func (r *reader) Pending(ctx context.Context, limit int) ([]action.Approval, error) {
	return r.Approvals(ctx, store.ApprovalQuery{Limit: limit})
}
