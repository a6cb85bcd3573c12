package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// defaultLimit is how many actions a query without a limit gives.
const defaultLimit = 100

// Actions implements store.Reader.
func (r *reader) Actions(ctx context.Context, q store.Query) ([]action.Action, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	before := int64(0)
	if q.Before != "" {
		err := one(ctx, r.placeOf, func(scan func(...any) error) error { return scan(&before) }, string(q.Before))
		if err != nil {
			return nil, about(err, "action", q.Before)
		}
	}
	var found []row
	parts := split(q)
	for _, part := range parts {
		text, args := selectActions(part, before)
		rows, err := r.rows(ctx, text, args)
		if err != nil {
			return nil, fmt.Errorf("list actions: %w", err)
		}
		found = append(found, rows...)
	}
	if len(parts) > 1 {
		slices.SortFunc(found, newestFirst)
	}
	return actionsOf(found[:min(len(found), q.Limit)]), nil
}

func (r *reader) rows(ctx context.Context, text string, args []any) (found []row, err error) {
	rows, err := r.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanAction(rows.Scan)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, rows.Err()
}

// split makes queries of which each is served by one index, newest first. Only the states need it: open actions are few
// and looked at together, and each final state has a range of its own.
func split(q store.Query) []store.Query {
	if len(q.States) == 0 || indexOf(q) != "" {
		return []store.Query{q}
	}
	var parts []store.Query
	open, final := q, q
	open.States = nil
	for _, s := range q.States {
		if s.Final() {
			final.States = []action.State{s}
			parts = append(parts, final)
		} else {
			open.States = append(open.States, s)
		}
	}
	if len(open.States) > 0 {
		parts = append(parts, open)
	}
	return parts
}

// indexOf names the index that serves a query by its most telling field. SQLite has no statistics to choose by, and
// prefers the order of the result.
func indexOf(q store.Query) string {
	switch {
	case q.Attempt != "":
		return "sqlite_autoindex_actions_1"
	case q.Intent != "":
		return "actions_by_intent"
	case q.TraceID != "":
		return "actions_by_trace"
	case q.Run != "":
		return "actions_by_run"
	case allOpen(q.States): // they are few, whatever else is asked
		return "actions_open"
	case q.Credential != "":
		return "actions_by_credential"
	case q.Tool != "":
		return "actions_by_tool"
	case q.Host != "":
		return "actions_by_host"
	}
	return ""
}

// selectActions writes the statement for one part of a query. before is the place of the first action that is left out
// again, 0 for none.
func selectActions(q store.Query, before int64) (string, []any) {
	var conditions []string
	var args []any
	add := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	index := indexOf(q)
	switch {
	case index == "actions_open":
		add("open = 1")
	case index == "" && len(q.States) == 1: // a final one, see split
		index = "actions_final"
		add("open = 0")
	}
	if q.Attempt != "" {
		add("id = (select action from attempts where id = ?)", string(q.Attempt))
	}
	if q.Credential != "" {
		add("credential = ? and credential <> ''", q.Credential)
	}
	for _, c := range []struct{ column, value string }{
		{"intent", string(q.Intent)}, {"trace_id", q.TraceID}, {"run", string(q.Run)}, {"tool", q.Tool}, {"host", q.Host},
	} {
		if c.value != "" {
			add(c.column+" = ?", c.value)
		}
	}
	if len(q.States) > 0 {
		values := make([]any, len(q.States))
		for i, s := range q.States {
			values[i] = string(s)
		}
		add("state in (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	if before > 0 {
		add("seq < ?", before)
	}
	text := "select " + actionColumns + " from actions"
	if index != "" {
		text += " indexed by " + index
	}
	if len(conditions) > 0 {
		text += " where " + strings.Join(conditions, " and ")
	}
	return text + " order by seq desc limit ?", append(args, q.Limit)
}

func allOpen(states []action.State) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, action.State.Final)
}
