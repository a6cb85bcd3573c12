package sqlite

import (
	"context"
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// defaultLimit is how many actions a query without a limit gives.
const defaultLimit = 100

// Actions implements store.Reader.
func (r *reader) Actions(ctx context.Context, q store.Query) ([]action.Action, error) {
	before := int64(0)
	if q.Before != "" {
		err := one(ctx, r.placeOf, func(scan func(...any) error) error { return scan(&before) }, string(q.Before))
		if err != nil {
			return nil, about(err, "action", q.Before)
		}
	}
	text, args := selectActions(q, before)
	rows, err := r.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	defer rows.Close()
	var list []row
	for rows.Next() {
		a, err := scanAction(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	return actionsOf(list), nil
}

// selectActions writes the statement for a query. The first field that is given, most telling first, chooses the index;
// the others carry a + that keeps SQLite from choosing another, since it has no statistics to choose by.
func selectActions(q store.Query, before int64) (string, []any) {
	var conditions []string
	var args []any
	add := func(column, condition string, values ...any) {
		if len(conditions) > 0 {
			column = "+" + column
		}
		conditions = append(conditions, column+" "+condition)
		args = append(args, values...)
	}
	if q.Attempt != "" {
		add("id", "= (select action from attempts where id = ?)", string(q.Attempt))
	}
	if q.Intent != "" {
		add("intent", "= ?", string(q.Intent))
	}
	if q.TraceID != "" {
		add("trace_id", "= ?", q.TraceID)
	}
	if q.Run != "" {
		add("run", "= ?", string(q.Run))
	}
	if allOpen(q.States) { // open actions are few, whatever else was asked
		add("open", "= 1")
	}
	if q.Credential != "" {
		add("credential", "= ?", q.Credential)
	}
	if q.Tool != "" {
		add("tool", "= ?", q.Tool)
	}
	if q.Host != "" {
		add("host", "= ?", q.Host)
	}
	if len(q.States) > 0 {
		values := make([]any, len(q.States))
		for i, s := range q.States {
			values[i] = string(s)
		}
		add("state", "in (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	if before > 0 {
		conditions = append(conditions, "seq < ?")
		args = append(args, before)
	}
	text := "select " + actionColumns + " from actions"
	if len(conditions) > 0 {
		text += " where " + strings.Join(conditions, " and ")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	return text + " order by seq desc limit ?", append(args, limit)
}

func allOpen(states []action.State) bool {
	for _, s := range states {
		if s.Final() {
			return false
		}
	}
	return len(states) > 0
}
