package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"slices"

	"deed.dev/deed/internal/action"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to this program, and refuses one that a newer program has made.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	return migrateWith(ctx, db, files)
}

func migrateWith(ctx context.Context, db *sql.DB, files fs.FS) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true),
		goose.WithAllowOutofOrder(true)) // two that were written side by side may be released in either order
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if has > knows {
		return fmt.Errorf("the database has schema version %d, and this program knows %d: use the newer program", has, knows)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// agreeOnMoves fills the table of legal moves, or makes sure that it says what this program says.
func agreeOnMoves(ctx context.Context, conn *sql.Conn) error {
	have, err := storedMoves(ctx, conn)
	if err != nil {
		return fmt.Errorf("read the legal moves: %w", err)
	}
	var want []action.Move
	for _, m := range action.Moves {
		want = append(want, action.Move{Name: m.Name, From: m.From, To: m.To})
	}
	byName := func(a, b action.Move) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	}
	slices.SortFunc(want, byName)
	slices.SortFunc(have, byName)
	if len(have) > 0 {
		if !slices.Equal(have, want) {
			return fmt.Errorf("the database allows other moves of an action than this program: it belongs to another version")
		}
		return nil
	}
	if err := writeMoves(ctx, conn, want); err != nil {
		return fmt.Errorf("write the legal moves: %w", err)
	}
	return nil
}

func writeMoves(ctx context.Context, conn *sql.Conn, moves []action.Move) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, m := range moves {
		if _, err := tx.ExecContext(ctx, `insert into legal_moves (name, from_state, to_state) values (?, ?, ?)`,
			string(m.Name), string(m.From), string(m.To)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func storedMoves(ctx context.Context, conn *sql.Conn) (moves []action.Move, err error) {
	rows, err := conn.QueryContext(ctx, `select name, from_state, to_state from legal_moves`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m action.Move
		if err := rows.Scan(&m.Name, &m.From, &m.To); err != nil {
			return nil, err
		}
		moves = append(moves, m)
	}
	return moves, rows.Err()
}
