package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/store"
)

// preparer is a *sql.Conn, or a *sql.DB that prepares again on each of its connections.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements prepares once what runs often, and closes all of it together.
type statements struct {
	from preparer
	all  []*sql.Stmt
	err  error // the first; whoever prepares looks at it when it is done
}

func (p *statements) prepare(query string) *sql.Stmt {
	s, err := p.from.PrepareContext(context.Background(), query)
	if err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("prepare %.60q: %w", query, err)
		}
		return nil
	}
	p.all = append(p.all, s)
	return s
}

func (p *statements) close() (err error) {
	for _, s := range p.all {
		err = errors.Join(err, s.Close())
	}
	return err
}

// one runs a statement that gives at most one row.
func one(ctx context.Context, s *sql.Stmt, scan func(row func(...any) error) error, args ...any) error {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return store.ErrNotFound
	}
	return scan(rows.Scan)
}

// many runs a statement and hands over each row.
func many(ctx context.Context, s *sql.Stmt, scan func(row func(...any) error) error, args ...any) error {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// micros is a time as a column holds it: null for the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// instant scans a column that micros wrote.
type instant struct{ to *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*i.to = time.Time{}
	case int64:
		*i.to = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}
