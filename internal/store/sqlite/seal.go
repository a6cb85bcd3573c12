package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
)

// KeysName is the file of content keys in a data directory. It stands beside the database, not in it: a copy of the
// database alone gives no content away.
const KeysName = "content.keys"

// openKeys reads the content keys, and makes the first one where nothing was sealed yet. A file that lacks a key which has
// sealed something is refused: what it sealed could not be read, sent or given back.
func (w *writer) openKeys(ctx context.Context) error {
	path := filepath.Join(filepath.Dir(w.path), KeysName)
	used, err := w.usedKeys(ctx)
	if err != nil {
		return fmt.Errorf("read which content keys are in use: %w", err)
	}
	w.content, err = sealed.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(used) > 0:
		return fmt.Errorf("the content keys are missing: %s is not there, and content in %s is sealed with them. Nothing was started, "+
			"since arguments, requests and answers of open actions could not be read. Restore the file from its backup", path, w.path)
	case errors.Is(err, fs.ErrNotExist):
		w.content, err = sealed.Make(path)
	}
	if err != nil {
		return err
	}
	for _, id := range used {
		if !slices.Contains(w.content.IDs(), id) {
			return fmt.Errorf("the content keys in %s lack %s, and content in %s is sealed with it. Nothing was started, since that content "+
				"could not be read. Restore the newest backup of the file", path, id, w.path)
		}
	}
	return nil
}

func (w *writer) usedKeys(ctx context.Context) (ids []string, err error) {
	rows, err := w.conn.QueryContext(ctx, `select id from content_keys`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// noteKey writes down which key seals, with the first value that it sealed. A batch that fails latches the store, so what
// was noted in it is not asked again.
func (w *writer) noteKey() error {
	key := w.content.Current()
	if key == w.noted {
		return nil
	}
	_, err := w.putKey.ExecContext(background, key.ID())
	if err == nil {
		w.noted = key
	}
	return err
}

// RotateContentKey makes a new key, which seals from now on, and gives its identifier. Older keys stay in the file for
// what they sealed.
func (s *Store) RotateContentKey(ctx context.Context) (id string, err error) {
	err = s.Commit(ctx, func(t store.Tx) error {
		w := t.(*tx).w
		if err := w.content.Rotate(); err != nil {
			return fmt.Errorf("no new content key was made, and the one that was there goes on: %w", err)
		}
		id = w.content.Current().ID()
		return nil
	})
	return id, err
}

// sealPlain seals what an earlier version kept in the clear, and rewrites the file so that none of it is left in free
// pages. It can be broken off anywhere: the table of plain content is dropped last.
func (w *writer) sealPlain(ctx context.Context) error {
	var there int
	err := w.conn.QueryRowContext(ctx, `select count(*) from sqlite_schema where type = 'table' and name = 'plain_payloads'`).Scan(&there)
	if err != nil || there == 0 {
		return err
	}
	for more := true; more; {
		err := w.inTransaction(func() (err error) {
			more, err = w.sealSome(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("seal the content that was kept in the clear: %w", err)
		}
	}
	seq, _, err := w.headNow(ctx)
	if err != nil {
		return err
	}
	if seq >= 0 { // in a new file there was nothing
		if err := w.rewrite(ctx); err != nil {
			return fmt.Errorf("content was sealed, and what stood in the clear may still be in free parts of %s: rewriting the file: %w. "+
				"Nothing was started; start again when no other process reads it and there is room for a copy of it", w.path, err)
		}
	}
	_, err = w.conn.ExecContext(ctx, `drop table plain_payloads`)
	return err
}

// sealSome moves a piece of the plain table into the sealed one.
func (w *writer) sealSome(ctx context.Context) (more bool, err error) {
	const piece = 50
	found, err := w.somePlain(ctx, piece)
	if err != nil {
		return false, err
	}
	if len(found) > 0 {
		if err := w.noteKey(); err != nil {
			return false, err
		}
	}
	for _, p := range found {
		lock, err := w.newLock() // each its own: nobody knows which of them go together
		if err != nil {
			return false, err
		}
		value, err := w.seal(p.kind, p.owner, p.commitment, lock.lock, p.salt, p.content)
		if err != nil {
			return false, err
		}
		if _, err := w.putPayload.ExecContext(ctx, p.kind, p.owner, value, string(p.commitment), lock.slot); err != nil {
			return false, err
		}
		if _, err := w.conn.ExecContext(ctx, `delete from plain_payloads where rowid = ?`, p.row); err != nil {
			return false, err
		}
	}
	return len(found) == piece, nil
}

type plainPayload struct {
	row           int64
	kind, owner   string
	salt, content []byte
	commitment    action.Commitment
}

func (w *writer) somePlain(ctx context.Context, limit int) (found []plainPayload, err error) {
	rows, err := w.conn.QueryContext(ctx, `select rowid, kind, owner, salt, content, commitment from plain_payloads limit ?`, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p plainPayload
		if err := rows.Scan(&p.row, &p.kind, &p.owner, &p.salt, &p.content, &p.commitment); err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, rows.Err()
}

// rewrite copies the database onto itself without its free parts, and empties the WAL.
func (w *writer) rewrite(ctx context.Context) error {
	for _, statement := range []string{`pragma temp_store = file`, `vacuum`, `pragma temp_store = memory`} { // the copy may be large
		if _, err := w.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	busy, err := emptyWAL(ctx, w.conn)
	if err == nil && busy {
		err = errors.New("another process is reading it")
	}
	return err
}

// emptyWAL copies the WAL into the database and cuts it to nothing. It is busy while somebody else still reads from it.
func emptyWAL(ctx context.Context, conn *sql.Conn) (busy bool, err error) {
	var pages, copied int
	err = conn.QueryRowContext(ctx, `pragma wal_checkpoint(truncate)`).Scan(&busy, &pages, &copied)
	return busy, err
}

const (
	scrubEvery = time.Second // how long the committer leaves a WAL alone that somebody reads from
	scrubWait  = 25          // milliseconds that it waits for readers: ours end sooner, and new ones are not in the way
)

// scrub makes what was erased leave the WAL too: it holds pages as they were before. It is done with the commit that
// erases, or with a later one when a reader stays in the way.
func (w *writer) scrub() error {
	if !w.erased || time.Since(w.scrubbed) < scrubEvery {
		return nil
	}
	w.scrubbed = time.Now()
	if err := w.files.check(); err != nil { // what somebody else has cut is for the next commit to refuse
		return fmt.Errorf("empty the WAL: %w", err)
	}
	if _, err := w.conn.ExecContext(background, fmt.Sprintf(`pragma busy_timeout = %d`, scrubWait)); err != nil {
		return fmt.Errorf("empty the WAL: %w", err)
	}
	busy, err := emptyWAL(background, w.conn)
	if noted := w.files.note(); err == nil { // the WAL is shorter by our own doing
		err = noted
	}
	if _, again := w.conn.ExecContext(background, `pragma busy_timeout = 5000`); err == nil {
		err = again
	}
	if err != nil {
		return fmt.Errorf("empty the WAL: %w", err)
	}
	if w.erased = busy; !busy {
		w.scrubbed = time.Time{}
	}
	return nil
}

// scrub empties the WAL if something was erased. If that cannot be done now it is tried again, also when nothing else is
// committed; the changes that were just made are durable in any case.
func (s *Store) scrub() {
	if err := s.write.scrub(); err != nil {
		s.log.Warn("erased content may still be in the WAL", "error", err)
	}
	if !s.write.erased || s.rescrub.Swap(true) {
		return
	}
	time.AfterFunc(scrubEvery, func() {
		s.rescrub.Store(false)
		_ = s.Later(func(store.Tx) error { return nil }) // refused by a store that is closed, which empties it, or busy
	})
}
