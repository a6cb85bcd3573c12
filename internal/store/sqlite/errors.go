package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"deed.dev/deed/internal/store"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// code is SQLite's primary result code, 0 for an error that is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// fault reports whether an error speaks about the file, the disk or the connection, and not about the change whose
// statement met it. After a fault nothing more may be written.
func fault(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return true
	}
	switch code(err) {
	case 0, sqlitelib.SQLITE_CONSTRAINT, sqlitelib.SQLITE_TOOBIG, sqlitelib.SQLITE_MISMATCH:
		return false
	}
	return true
}

// stale turns a refusal by the tables into one that callers know.
func stale(err error) error {
	if code(err) == sqlitelib.SQLITE_CONSTRAINT {
		return fmt.Errorf("%w: %w", store.ErrStale, err)
	}
	return err
}

// explain says what a person can do about a fault of the file or the disk.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch code(err) {
	case sqlitelib.SQLITE_FULL:
		advice = "no space is left on the disk: free some, then start again"
	case sqlitelib.SQLITE_NOTADB:
		advice = "this file is not a database: move it away or give another data directory"
	case sqlitelib.SQLITE_CORRUPT:
		advice = "the database is damaged: keep the file, restore a backup and verify it; nothing was repaired"
	case sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_PERM, sqlitelib.SQLITE_CANTOPEN:
		advice = "the data directory and its files must belong to this user and be writable"
	case sqlitelib.SQLITE_IOERR:
		advice = "the disk reported a fault: check it before starting again"
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED:
		advice = "another program holds a lock on the database: close it"
	default:
		switch {
		case errors.Is(err, syscall.ENOSPC):
			advice = "no space is left on the disk: free some, then start again"
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			advice = "the data directory and its files must belong to this user and be writable"
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %s: %w", path, advice, err)
}
