package sqlite

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
)

func newestFirst(a, b row) int { return cmp.Compare(b.seq, a.seq) }
func oldestFirst(a, b row) int { return cmp.Compare(a.seq, b.seq) }

// list asks once for each value and merges the answers. Equal values are asked for once, and an absent one never.
func (t *tx) list(s *sql.Stmt, order func(a, b row) int, values []string, before ...any) ([]row, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	var found []row
	asked := make([]string, 0, len(values))
	for _, v := range values {
		if v == "" || slices.Contains(asked, v) {
			continue
		}
		asked = append(asked, v)
		args := append(slices.Clone(before), v, int64(claimLimit))
		err := many(background, s, func(scan func(...any) error) error {
			r, err := scanAction(scan)
			found = append(found, r)
			return err
		}, args...)
		if err := t.note(err); err != nil {
			return nil, fmt.Errorf("look for earlier actions: %w", err)
		}
	}
	if len(asked) > 1 {
		slices.SortFunc(found, order)
	}
	return found[:min(len(found), claimLimit)], nil
}
