package sqlite

import (
	"fmt"
	"strings"

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

// prepareRead names the run and the intent of the action whose content is read. The action itself is as it was: a decision
// about it does not have to be thought over because somebody looked.
func (p *projector) prepareRead(ev action.Event) (step, error) {
	r, err := p.action(ev.Action)
	if err != nil {
		return step{}, about(err, "action", ev.Action)
	}
	if ev.Run != "" && ev.Run != r.Run || ev.Intent != "" && ev.Intent != r.Intent {
		return step{}, fmt.Errorf("%s belongs to %s of %s, not to %s of %s", r.ID, r.Intent, r.Run, ev.Intent, ev.Run)
	}
	ev.Run, ev.Intent = r.Run, r.Intent
	if ev.Trace.TraceID == "" {
		ev.Trace = r.Trace
	}
	return step{event: ev}, nil
}

const insertRead = `insert into content_reads (seq, action, reader, why, kinds, at) values (?, ?, ?, ?, ?, ?)`

func (p *projector) writeRead(ev action.Event, at place) error {
	r := ev.ReadBody
	_, err := p.insertRead.ExecContext(background, at.seq, string(ev.Action), r.Reader, r.Why, strings.Join(r.Kinds, " "), micros(ev.Time))
	return err
}
