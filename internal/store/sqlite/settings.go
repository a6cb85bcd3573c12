package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Settings of SQLite hold for one connection, so they stand in the name under which every connection is opened.
const (
	busyTimeout = "busy_timeout(5000)"
	// A checkpoint copies pages from the WAL into the database and syncs twice. Random index pages are written again and
	// again, so a longer WAL copies each of them less often.
	checkpoint = "wal_autocheckpoint(4000)"
	cache      = "cache_size(-16000)" // KiB, taken only as it fills
)

func writerName(path string, noSync bool) string {
	sync := "synchronous(full)"
	if noSync {
		sync = "synchronous(off)"
	}
	return dataSource(path, "rw", busyTimeout, "journal_mode(wal)", sync, "foreign_keys(on)", checkpoint, cache,
		"temp_store(memory)", "trusted_schema(off)", "secure_delete(on)") // what is erased is overwritten
}

func readerName(path string) string {
	return dataSource(path, "ro", busyTimeout, "query_only(on)", "foreign_keys(on)", "trusted_schema(off)")
}

// dataSource is a file URI, in which no character of the path can be taken for a setting.
func dataSource(path, mode string, pragmas ...string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a Windows drive
		path = "/" + path
	}
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// wantedSettings are those without which an acknowledged change could be lost or a row stand alone.
func wantedSettings(noSync bool) map[string]string {
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"}
	if noSync {
		want["synchronous"] = "0"
	}
	return want
}

// checkSettings reads the settings back. A database in memory has no WAL, and some file systems cannot have one: SQLite
// then goes on with less and says nothing.
func checkSettings(ctx context.Context, conn *sql.Conn, noSync bool) error {
	for name, want := range wantedSettings(noSync) {
		var got string
		if err := conn.QueryRowContext(ctx, "pragma "+name).Scan(&got); err != nil {
			return fmt.Errorf("read the setting %s: %w", name, err)
		}
		if got != want {
			return fmt.Errorf("the database has %s=%s where %s is needed: it could lose what it acknowledged", name, got, want)
		}
	}
	return nil
}
