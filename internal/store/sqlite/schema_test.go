package sqlite_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/storetest"
)

// inState brings an action into each state.
func inEachState(t *testing.T, s opened) map[action.State]action.Action {
	k := new(storetest.Kit)
	actions := map[action.State]action.Action{}
	for state, path := range storetest.Paths() {
		actions[state] = k.Make(t, s, nil, path...)
	}
	return actions
}

// consequences are the columns that a state asks for, so that only the move itself can be what is refused.
func consequences(to action.State) string {
	return map[action.State]string{
		action.Failed:    `, failure_class = 'not_sent', open = 0, finished_at = 1, recovery = '', reject_reason = ''`,
		action.Rejected:  `, reject_reason = 'denied', open = 0, finished_at = 1, recovery = '', failure_class = ''`,
		action.Completed: `, open = 0, finished_at = 1, recovery = '', reject_reason = '', failure_class = ''`,
		action.Unknown:   `, recovery = 'reconciling', open = 1, finished_at = null, reject_reason = '', failure_class = ''`,
	}[to] + map[bool]string{true: `, open = 1, finished_at = null, recovery = '', reject_reason = '', failure_class = ''`}[!to.Final() && to != action.Unknown]
}

// TestHandWrittenMovesAreRefused tries every pair of states with a statement of its own. (ST-17)
func TestHandWrittenMovesAreRefused(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	actions := inEachState(t, s)
	db := byHand(t, s.dir)
	legal := map[string]bool{}
	for _, m := range action.Moves {
		legal[string(m.From)+">"+string(m.To)] = true
	}
	insert := copyAction(t, db)
	for _, from := range action.States {
		for _, to := range action.States {
			err := undone(t, db, `update actions set state = ?`+consequences(to)+` where id = ?`, string(to), string(actions[from].ID))
			if want := legal[string(from)+">"+string(to)]; (err == nil) != want {
				t.Errorf("from %s to %s: %v, legal %t", from, to, err, want)
			} else if !want && !strings.Contains(err.Error(), "no legal move") {
				t.Errorf("from %s to %s was refused for another reason: %v", from, to, err)
			}
		}
		if err := undone(t, db, insert, string(actions[from].ID)); (err == nil) != (from == action.Accepted) {
			t.Errorf("an action that begins as %s: %v", from, err)
		}
	}
}

// copyAction writes the statement that inserts a second action, in the state of one that is there.
func copyAction(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query(`select name from pragma_table_xinfo('actions') where hidden = 0`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var columns, values []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		value := map[string]string{"seq": "999", "id": "'act_new'", "repeat_token": "''"}[name]
		columns, values = append(columns, name), append(values, cmp.Or(value, name))
	}
	return "insert into actions (" + strings.Join(columns, ", ") + ") select " + strings.Join(values, ", ") + " from actions where id = ?"
}

// undone runs a statement and takes it back.
func undone(t *testing.T, db *sql.DB, statement string, args ...any) error {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	result, err := tx.Exec(statement, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n != 1 {
		t.Fatalf("%.80q changed %d rows", statement, n)
	}
	return nil
}

// TestHandWrittenDamageIsRefused tries what else the tables forbid. (EX-15, ST-14, ST-15, ST-10, HT-03)
func TestHandWrittenDamageIsRefused(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	k := new(storetest.Kit)
	a := k.Make(t, s, nil, action.T3, action.T11)
	k.Make(t, s, nil, action.T3, action.T11, action.T12)
	db := byHand(t, s.dir)
	for _, statement := range []string{
		`update journal set body = body where seq = 1`,
		`delete from journal where seq = 1`,
		`insert into journal select seq, prev, hash, body from journal where seq = 1`,
		`insert into journal select 9999, prev, hash, body from journal where seq = 1`,
		`insert into journal select 9999, prev, zeroblob(32), body from journal where seq = 1`,
		`insert into journal select 9999, x'00', zeroblob(32), body from journal where seq = 1`,

		`delete from attempts`,
		`update attempts set action = (select id from actions where state = 'completed')`,
		`update attempts set number = 2`,
		`update attempts set id = 'att_other'`,
		`update attempts set state = 'failed'`,
		`update attempts set certainty = ''`,
		`insert into attempts select 'act_none', 1, 'att_new', state, certainty, 0, 0, '', '', '', '', null, null from attempts limit 1`,

		`update actions set coarse = 'DONE'`,
		`update actions set coarse = 'COMMITTED'`,
		`update actions set state = 'DONE'`,
		`update actions set state = 'success'`,
		`update actions set open = not open`,
		`update actions set delivery = 'lost'`,
		`update actions set failure_class = 'timeout'`,
		`update actions set host = ''`,
		`update actions set port = 0`,
		`update actions set protocol = ''`,
		`update actions set host = 'elsewhere.example'`,
		`update actions set intent = 'int_other'`,
		`update actions set attempt = 6`,
		`delete from actions`,
		`delete from runs`,
		`delete from intents`,
		`delete from calls`,
		`delete from results`,
		`update tool_operations set state = 'DONE'`,
		`insert into tool_operations (idem_key, state) values ('k', 'DONE')`,
		`insert into intents select 'int_new', run, tool, contract, idem_key, step, '', '', '', 1 from intents limit 1`,
		`insert into intents select 'int_new', 'run_none', tool, contract, 'new', step, '', '', '', 1 from intents limit 1`,
	} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(statement); err == nil {
			t.Errorf("the tables allowed: %s", statement)
		}
		tx.Rollback()
	}
	if after := storetest.Get(t, s, a.ID); after.State != action.Dispatched {
		t.Errorf("%s is %s", a.ID, after.State)
	}
	storetest.Histories(t, s)
}

// TestCoarseStatesFollow: for every state the table says what the core says, and the view shows it. (ST-14, ST-15)
func TestCoarseStatesFollow(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	db := byHand(t, s.dir)
	five := map[string]bool{}
	for state, a := range inEachState(t, s) {
		var column, shown, key string
		if err := db.QueryRow(`select coarse from actions where id = ?`, string(a.ID)).Scan(&column); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow(`select t.state, t.idem_key from tool_operations t join intents i using (idem_key) where i.id = ?`,
			string(a.Intent)).Scan(&shown, &key); err != nil {
			t.Fatal(err)
		}
		if column != state.Coarse() || shown != column {
			t.Errorf("%s is %s in the table and %s in the view, want %s", state, column, shown, state.Coarse())
		}
		five[column] = true
	}
	if len(five) != 5 {
		t.Errorf("%d coarse states, want 5", len(five))
	}
}

// TestToolOperationsView has the columns that readers of that table know. (DB-13, IK-20)
func TestToolOperationsView(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	a := new(storetest.Kit).Make(t, s, nil, action.T3, action.T11, action.T12)
	db := byHand(t, s.dir)
	rows, err := db.Query(`select * from tool_operations`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	want := []string{"idem_key", "run_id", "tool", "args_fingerprint", "state", "result", "updated_at"}
	if err != nil || !slices.Equal(columns, want) {
		t.Fatalf("columns %v (%v), want %v", columns, err, want)
	}
	var v [7]string
	if !rows.Next() {
		t.Fatal("the view is empty")
	}
	if err := rows.Scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]); err != nil {
		t.Fatal(err)
	}
	updated := a.UpdatedAt.Format("2006-01-02T15:04:05.000000Z")
	if got, want := fmt.Sprint(v[1:]), fmt.Sprint([]string{string(a.Run), a.Tool, a.Digests.Args, "COMMITTED", string(a.Result), updated}); got != want {
		t.Errorf("row %s, want %s", got, want)
	}
}

// TestOneRowForAKey: the base table takes a key once, and the view shows one row for it, also when a second action
// stands for the intent of one that was cancelled. (IK-20)
func TestOneRowForAKey(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	k := new(storetest.Kit)
	run := k.Run()
	first := k.Claim(run)
	second := k.Claim(run)
	second.Intent, second.Action.Intent = first.Intent, first.Intent.ID
	err := s.Commit(t.Context(), func(tx store.Tx) error {
		if err := tx.Append(k.Started(run)); err != nil {
			return err
		}
		if err := tx.Append(k.Accepted(first)...); err != nil {
			return err
		}
		if err := k.Bring(tx, first.Action.ID, action.T5); err != nil {
			return err
		}
		again := slices.DeleteFunc(k.Accepted(second), func(ev action.Event) bool { return ev.Kind == action.IntentLogged })
		return tx.Append(again...)
	})
	if err != nil {
		t.Fatal(err)
	}
	db := byHand(t, s.dir)
	var rows int
	var state string
	if err := db.QueryRow(`select count(*), max(state) from tool_operations where idem_key = ?`, first.Intent.IdemKey).Scan(&rows, &state); err != nil {
		t.Fatal(err)
	}
	if rows != 1 || state != action.Accepted.Coarse() {
		t.Errorf("%d rows for one key, state %s; want the newer action alone, %s", rows, state, action.Accepted.Coarse())
	}
	err = undone(t, db, `insert into intents select 'int_other', run, tool, contract, idem_key, step, tool_call_id, key_source, arguments, logged_at
		from intents where id = ?`, string(first.Intent.ID))
	if err == nil || !strings.Contains(err.Error(), "idem_key") {
		t.Errorf("a second intent took the key: %v", err)
	}
}
