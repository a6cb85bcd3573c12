package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// TestDecisionsAreOneLookUp: no question that is asked while a call waits may grow with the number of actions.
func TestDecisionsAreOneLookUp(t *testing.T) {
	s := openAt(t, t.TempDir())
	for where, index := range map[string]string{
		runByKey:        "sqlite_autoindex_runs_2",
		byIdemKey:       "actions_by_intent",
		byAttachedKey:   "calls_by_key",
		byToken:         "actions_one_token",
		repeating:       "actions_one_successor",
		openEqual:       "actions_by_fingerprint",
		finalEqual:      "actions_by_fingerprint",
		unknownEffect:   "actions_unknown_by_effect",
		unknownResource: "actions_unknown_by_resource",
		`where id = ?`:  "sqlite_autoindex_actions_1",
	} {
		query := where
		if !strings.HasPrefix(where, "select") {
			query = selectAction + where
		}
		plan := planOf(t, s.write.conn, query)
		if !strings.Contains(plan, index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%.100s…\nis planned as\n%swant %s alone", query, plan, index)
		}
	}
}

// TestQueriesUseAnIndex does the same for what people ask.
func TestQueriesUseAnIndex(t *testing.T) {
	s := openAt(t, t.TempDir())
	open, final := []action.State{action.Unknown, action.Dispatched}, []action.State{action.Failed, action.Completed}
	for _, c := range []struct {
		query store.Query
		index string
	}{
		{store.Query{Run: "r", Tool: "t", Host: "h", States: final}, "actions_by_run"},
		{store.Query{Intent: "i", Run: "r"}, "actions_by_intent"},
		{store.Query{TraceID: "t", Run: "r", Credential: "c"}, "actions_by_trace"},
		{store.Query{Attempt: "a", Host: "h"}, "sqlite_autoindex_actions_1"},
		{store.Query{Tool: "t", Host: "h"}, "actions_by_tool"},
		{store.Query{Host: "h", States: final}, "actions_by_host"},
		{store.Query{Credential: "c", Host: "h"}, "actions_by_credential"},
		{store.Query{States: open, Tool: "t"}, "actions_open"},
		{store.Query{States: final}, "actions_final"},
	} {
		for _, part := range split(c.query) {
			text, _ := selectActions(part, 5)
			if plan := planOf(t, s.write.conn, text); !strings.Contains(plan, c.index) {
				t.Errorf("%+v is planned as\n%swant %s", part, plan, c.index)
			}
			if plan := planOf(t, s.write.conn, text); strings.Contains(plan, "TEMP B-TREE") && c.index != "actions_open" {
				t.Errorf("%+v is sorted:\n%s", part, plan)
			}
		}
	}
}

// TestTheBacklogIsReadByIndex: what waits for a person is found without reading what does not. (UN-26)
func TestTheBacklogIsReadByIndex(t *testing.T) {
	s := openAt(t, t.TempDir())
	for query, index := range map[string]string{selectWaiting: "actions_unknown", selectOverdue: "actions_overdue", countOverdue: "actions_overdue", countOpen: "actions_open"} {
		plan := planOf(t, s.write.conn, query)
		if !strings.Contains(plan, index) || query != countOpen && (strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE")) {
			t.Errorf("%.100s…\nis planned as\n%swant %s alone", query, plan, index)
		}
	}
}

func planOf(t *testing.T, conn *sql.Conn, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	for i := range args {
		args[i] = "x"
	}
	rows, err := conn.QueryContext(t.Context(), "explain query plan "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	return plan.String()
}
