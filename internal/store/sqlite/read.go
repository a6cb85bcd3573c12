package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// reads are the questions that both a Reader and a change under way ask.
type reads struct {
	action, attempts, intent, run, result, payload *sql.Stmt
	approvals                                      *approvalReads
}

func prepareReads(p *statements) *reads {
	return &reads{
		approvals: prepareApprovalReads(p),
		action:    p.prepare(`select ` + actionColumns + ` from actions where id = ?`),
		attempts: p.prepare(`select action, number, id, state, certainty, bytes_sent, status, reason, remote, span_id, retry_of,
			started_at, ended_at from attempts where action = ? order by number`),
		intent: p.prepare(`select id, run, tool, contract, idem_key, step, tool_call_id, key_source, arguments, logged_at
			from intents where id = ?`),
		run: p.prepare(`select id, key, kind, identity, strength, shared, pid, start_ticks, boot_id, executable, digest, via,
			started_at from runs where id = ?`),
		result: p.prepare(`select id, commitment, media_type, size, complete, withheld, repeat_token from results where id = ?`),
		payload: p.prepare(`select p.sealed, p.commitment, l.lock from payloads p join content_locks l on l.slot = p.slot
			where p.kind = ? and p.owner = ?`),
	}
}

func (q *reads) actionRow(ctx context.Context, s *sql.Stmt, args ...any) (r row, err error) {
	err = one(ctx, s, func(scan func(...any) error) error {
		r, err = scanAction(scan)
		return err
	}, args...)
	return r, err
}

// head reads the newest journal record; seq is -1 when there is none.
func head(ctx context.Context, s *sql.Stmt) (seq int64, hash journal.Hash, err error) {
	seq = -1
	err = many(ctx, s, func(scan func(...any) error) error {
		var h []byte
		if err := scan(&seq, &h); err != nil {
			return err
		}
		if len(h) != len(hash) {
			return fmt.Errorf("the hash of record %d has %d bytes", seq, len(h))
		}
		hash = journal.Hash(h)
		return nil
	})
	return seq, hash, err
}

const headQuery = `select seq, hash from journal order by seq desc limit 1`

func actionsOf(rows []row) []action.Action {
	if len(rows) == 0 {
		return nil
	}
	actions := make([]action.Action, len(rows))
	for i, r := range rows {
		actions[i] = r.Action
	}
	return actions
}
