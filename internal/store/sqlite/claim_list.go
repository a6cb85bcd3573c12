package sqlite

import (
	"cmp"
	"fmt"
	"slices"
)

func newestFirst(a, b row) int { return cmp.Compare(b.seq, a.seq) }
func oldestFirst(a, b row) int { return cmp.Compare(a.seq, b.seq) }

// list asks once for each value and merges the answers. Equal values are asked for once, and an absent one never.
func (t *tx) list(q question, order func(a, b row) int, values []string, before ...any) (found []row, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	asked := make([]string, 0, len(values))
	for _, v := range values {
		if v == "" || slices.Contains(asked, v) {
			continue
		}
		asked = append(asked, v)
		more, err := q.ask(append(slices.Clone(before), v, int64(claimLimit))...)
		if err := t.note(err); err != nil {
			return nil, fmt.Errorf("look for earlier actions: %w", err)
		}
		found = append(found, more...)
	}
	if len(asked) > 1 {
		slices.SortFunc(found, order)
	}
	return found[:min(len(found), claimLimit)], nil
}

func (q question) ask(args ...any) (found []row, err error) {
	some := false
	err = many(background, q.ids, func(func(...any) error) error {
		some = true
		return nil
	}, args...)
	if err != nil || !some {
		return nil, err
	}
	err = many(background, q.actions, func(scan func(...any) error) error {
		r, err := scanAction(scan)
		found = append(found, r)
		return err
	}, args...)
	return found, err
}
