package sqlite

import (
	"context"
	"fmt"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
)

// EventsOf implements store.Reader. It follows the action's own events back by their hashes, so that it reads what belongs
// to the action and not the whole journal.
func (r *reader) EventsOf(ctx context.Context, id action.ID) ([][]byte, error) {
	act, err := r.actionRow(ctx, r.action, string(id))
	if err != nil {
		return nil, about(err, "action", id)
	}
	found := map[int64][]byte{}
	for hash := act.eventHash; hash != (journal.Hash{}); {
		var seq int64
		var body []byte
		row := r.db.QueryRowContext(ctx, `select seq, body from journal where hash = ?`, hash[:])
		if err := row.Scan(&seq, &body); err != nil {
			return nil, fmt.Errorf("follow the events of %s: %w", id, err)
		}
		rec, err := eventlog.Decode(body)
		if err != nil {
			return nil, err
		}
		found[seq] = body
		if hash, err = after(rec.After); err != nil {
			return nil, fmt.Errorf("follow the events of %s: %w", id, err)
		}
	}
	if err := r.beside(ctx, act, found); err != nil {
		return nil, fmt.Errorf("read the calls and the intent of %s: %w", id, err)
	}
	var seqs []int64
	for seq := range found {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	events := make([][]byte, len(seqs))
	for i, seq := range seqs {
		events[i] = found[seq]
	}
	return events, nil
}

// after reads the link to the event before; the first event has none.
func after(text string) (journal.Hash, error) {
	if text == "" {
		return journal.Hash{}, nil
	}
	return journal.ParseHash(text)
}

// beside adds the calls of the action, the readings of its content, and its intent, which was written in the same change and stands just before it.
func (r *reader) beside(ctx context.Context, act row, found map[int64][]byte) error {
	const asks = `select seq, body from journal where seq in (select seq from calls where action = ?1 and action <> '')
		or seq in (select seq from content_reads where action = ?1) or seq between ?2 and ?3`
	rows, err := r.db.QueryContext(ctx, asks, string(act.ID), act.seq-2, act.seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var body []byte
		if err := rows.Scan(&seq, &body); err != nil {
			return err
		}
		rec, err := eventlog.Decode(body)
		if err != nil {
			continue // the opening of the journal is no event of ours
		}
		if ev := rec.Event; ev.Action == act.ID || ev.IntentBody != nil && ev.IntentBody.ID == act.Intent {
			found[seq] = body
		}
	}
	return rows.Err()
}
