package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/eventlog"
)

// keyRows is the table of the keys that the journal names as its own.
type keyRows struct{ put *sql.Stmt }

const selectLogKeys = `select seq, key from log_keys order by seq desc`

func prepareKeyRows(p *statements) *keyRows {
	return &keyRows{p.prepare(`insert into log_keys (seq, key) values (?, ?)`)}
}

// add makes the row of a record about the journal itself, if it names a key.
func (k *keyRows) add(seq int64, body []byte) error {
	key, err := eventlog.LogKey(body)
	if err != nil || key == "" {
		return err
	}
	if _, err := k.put.ExecContext(background, seq, key); err != nil {
		return fmt.Errorf("keep the key that record %d names: %w", seq, err)
	}
	return nil
}

// NameKey writes into the journal that its log signs with this key from now on, and returns when that is durable. A key that
// the journal has named before is refused.
func (s *Store) NameKey(ctx context.Context, key string) error {
	return s.Commit(ctx, func(change store.Tx) error { return change.(*tx).nameKey(key) })
}

func (t *tx) nameKey(key string) error {
	var before string
	err := t.w.conn.QueryRowContext(background, `select coalesce((select key from log_keys order by seq desc limit 1), '')`).Scan(&before)
	if err := t.note(err); err != nil {
		return fmt.Errorf("read the keys of the journal: %w", err)
	}
	body := eventlog.KeyBody(t.now, key, before)
	at, err := t.w.ledger.next(body)
	if err != nil {
		return err
	}
	if _, err := t.w.keys.put.ExecContext(background, at.seq, key); t.note(err) != nil {
		return fmt.Errorf("name the key of the log: %w", stale(err))
	}
	t.w.newest = t.now
	return nil
}

// LogKey is a public key that the journal names as its own.
type LogKey struct {
	Seq int64 // the record that names it
	Key string
}

// LogKeys lists the keys that the journal has named, newest first. What a journal says of its own keys proves nothing to
// somebody who does not know one of them already.
func (r *reader) LogKeys(ctx context.Context) (keys []LogKey, err error) {
	err = many(ctx, r.logKeys, func(scan func(...any) error) error {
		var k LogKey
		err := scan(&k.Seq, &k.Key)
		keys = append(keys, k)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the keys of the journal: %w", err)
	}
	return keys, nil
}
