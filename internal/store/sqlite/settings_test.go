package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// TestDurableOrNotAtAll: a store that would lose what it acknowledged does not start. (DB-15, DB-19)
func TestDurableOrNotAtAll(t *testing.T) {
	for _, dir := range []string{"", ":memory:", "file::memory:?cache=shared"} {
		if s, err := Open(t.Context(), dir, Options{Origin: "test.example"}); err == nil {
			s.Close()
			t.Errorf("a store was opened in %q", dir)
		}
	}
	path := filepath.Join(t.TempDir(), "x.db")
	if err := makeFile(path); err != nil {
		t.Fatal(err)
	}
	good := writerName(path, false)
	for _, c := range []struct{ name, source, want string }{
		{"as it is", good, ""},
		{"synchronous=off", strings.Replace(good, "synchronous%28full%29", "synchronous%28off%29", 1), "synchronous"},
		{"synchronous=normal", strings.Replace(good, "synchronous%28full%29", "synchronous%28normal%29", 1), "synchronous"},
		{"no foreign keys", strings.Replace(good, "foreign_keys%28on%29", "foreign_keys%28off%29", 1), "foreign_keys"},
		{"in memory", strings.Replace(good, "mode=rw", "mode=memory", 1), "journal_mode"},
	} {
		db, err := sql.Open("sqlite", c.source)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = checkSettings(t.Context(), conn, false)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error about %q", c.name, err, c.want)
		}
		conn.Close()
	}
}

// TestSettingsHoldOnEveryConnection asks the second connection of the readers too, and that readers cannot write.
func TestSettingsHoldOnEveryConnection(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{Origin: "test.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		conn, err := s.reader.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // only at the end, so that the next one is another
		for name, want := range map[string]string{"query_only": "1", "foreign_keys": "1", "busy_timeout": "5000", "journal_mode": "wal"} {
			if got := pragma(t, conn, name); got != want {
				t.Errorf("a reader has %s=%s, want %s", name, got, want)
			}
		}
		if _, err := conn.ExecContext(t.Context(), `pragma query_only = off`); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), `delete from contracts`); err == nil {
			t.Error("a reader wrote")
		}
	}
	if got := pragma(t, s.write.conn, "busy_timeout"); got != "5000" {
		t.Errorf("the writer has busy_timeout=%s", got)
	}
}

func pragma(t *testing.T, conn *sql.Conn, name string) (value string) {
	t.Helper()
	if err := conn.QueryRowContext(context.Background(), "pragma "+name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
