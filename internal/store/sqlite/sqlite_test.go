package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

// The suite that every store passes: AU-23, EX-15, HT-03, RM-19, ST-09, ST-10, ST-16, ST-17, ST-24, ST-26, ST-27, ST-30.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB, o storetest.Options) store.Store { return openIn(t, t.TempDir(), o) })
}

// opened is a store whose rows can be looked at by hand.
type opened struct {
	*sqlite.Store
	dir string
}

func openIn(t testing.TB, dir string, o storetest.Options) opened {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit", Now: o.Now, QueueLimit: o.QueueLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		checkPrev(t, dir)
	})
	return opened{s, dir}
}

// checkPrev holds the column that makes a fork impossible against the chain, after whatever a test did.
func checkPrev(t testing.TB, dir string) {
	t.Helper()
	db := byHand(t, dir)
	defer db.Close()
	var wrong int
	err := db.QueryRow(`select count(*) from journal j left join journal p on p.seq = j.seq - 1
		where j.prev is not coalesce(p.hash, zeroblob(32))`).Scan(&wrong)
	if err != nil || wrong != 0 {
		t.Errorf("%d records stand after another record than their column prev says (%v)", wrong, err)
	}
}

// byHand opens the database as a person with a SQL shell would.
func byHand(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "deed.db")+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// Rows implements storetest.Rebuilder.
func (o opened) Rows(t testing.TB) string {
	db := byHand(t, o.dir)
	defer db.Close()
	var all strings.Builder
	for _, table := range []string{"runs", "intents", "calls", "actions", "attempts", "observations", "results", "content_reads", "approvals", "approval_decisions", "tool_operations", "tree", "log_keys"} {
		rows, err := db.Query("select * from " + table + " order by 1, 2")
		if err != nil {
			t.Fatal(err)
		}
		writeRows(t, &all, table, rows)
	}
	return all.String()
}

func writeRows(t testing.TB, to *strings.Builder, table string, rows *sql.Rows) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(to, "%s", table)
		for i, v := range values {
			fmt.Fprintf(to, " %s=%T:%v", columns[i], v, v)
		}
		fmt.Fprintln(to)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
