package sqlite

import (
	"deed.dev/deed/internal/action"
)

// A question is one row, written when it is planned and completed when it is answered.
const putObservation = `insert into observations (id, action, number, kind, about, finding, certainty, status, reason, remote, span_id,
	evidence, started_at, ended_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (id) do update set kind = excluded.kind, finding = excluded.finding, certainty = excluded.certainty, status = excluded.status,
	reason = excluded.reason, remote = excluded.remote, evidence = excluded.evidence, ended_at = excluded.ended_at
	where action = excluded.action and number = excluded.number and ended_at is null`

func (p *projector) writeObserved(from, r row, o action.Observed) error {
	result, err := p.observation.ExecContext(background, string(o.ID), string(o.Action), int64(o.Number), string(o.Kind), string(o.About),
		string(o.Finding), o.Certainty.String(), int64(o.Status), o.Reason, o.Remote, o.SpanID, string(o.Evidence), micros(o.Started), micros(o.Ended))
	if err != nil {
		return err
	}
	if err := onlyOne(result, string(o.ID)); err != nil {
		return err
	}
	return p.compareAndSet(p.observe, from, []any{string(r.Owner), r.Epoch, int64(r.Observations), string(r.Finding), r.Hinted,
		micros(r.NotBefore), micros(r.UpdatedAt), r.eventSeq, r.eventHash[:]})
}

func (p *projector) writeDelegated(from, r row, d action.Delegated) error {
	if err := p.compareAndSet(p.delegate, from, []any{string(r.Job), micros(r.NotBefore), int64(r.TargetStatus), micros(r.UpdatedAt),
		r.eventSeq, r.eventHash[:]}); err != nil {
		return err
	}
	if d.Ended == nil {
		return nil
	}
	return p.writeEnded(*d.Ended)
}
