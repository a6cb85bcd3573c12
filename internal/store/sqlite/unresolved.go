package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

const (
	selectObservations = `select id, action, number, kind, about, finding, certainty, status, reason, remote, span_id, evidence,
		started_at, ended_at from observations where action = ? order by number, id`

	// The condition is the one of the index, word for word, or SQLite would not use it.
	selectDue = `select id from actions indexed by actions_due
		where ((state = 'unknown' and recovery = 'reconciling') or (state = 'dispatched' and job <> ''))
		and (reason = 'vault_locked') = ? and coalesce(not_before, 0) between ? and ?
		and not exists (select 1 from owners where owners.id = owner and owner <> ? and until > ?) order by coalesce(not_before, 0) limit ?`

	selectExpired = `select id from actions indexed by actions_kept where open = 0 and purged = 0 and keep_result > 0
		and finished_at + keep_result <= ? order by finished_at + keep_result limit ?`

	countBacklog = `select
		(select count(*) from actions indexed by actions_unknown where state = 'unknown' and recovery = 'reconciling'),
		(select count(*) from actions indexed by actions_unknown where state = 'unknown' and recovery = 'review_required' and abandoned = 0),
		(select count(*) from actions indexed by actions_unknown where state = 'unknown' and recovery = 'review_required' and abandoned = 1),
		(select count(*) from actions indexed by actions_due where ((state = 'unknown' and recovery = 'reconciling')
			or (state = 'dispatched' and job <> '')) and job <> ''),
		o.id, o.unknown_at
		from (select 1) left join (select id, unknown_at from actions indexed by actions_in_doubt
			where state = 'unknown' and abandoned = 0 order by unknown_at limit 1) o`

	selectWaiting = `select ` + actionColumns + ` from actions indexed by actions_unknown
		where state = 'unknown' and recovery = 'review_required' and abandoned = 0 order by unknown_at limit ?`

	// An action from before there was a limit has been looked at for longer than any.
	whereOverdue = ` from actions indexed by actions_overdue
		where state = 'unknown' and recovery = 'reconciling' and coalesce(unknown_at, 0) + review_after <= ?`
	selectOverdue = `select ` + actionColumns + whereOverdue + ` order by coalesce(unknown_at, 0) + review_after limit ?`
	countOverdue  = `select count(*)` + whereOverdue

	countOpen = `select state, count(*) from actions indexed by actions_open where open = 1 group by state`
)

// Observations implements store.Reader.
func (r *reader) Observations(ctx context.Context, id action.ID) (all []action.Observation, err error) {
	err = many(ctx, r.observations, func(scan func(...any) error) error {
		o, err := scanObservation(scan)
		all = append(all, o)
		return err
	}, string(id))
	if err != nil {
		return nil, about(err, "observations of", id)
	}
	return all, nil
}

// longestWait is more than any action ever waits: a time beyond it means that the clock was set back since.
const longestWait = 2 * time.Hour

// Due implements store.Reader.
func (r *reader) Due(ctx context.Context, q store.Due) (ids []action.ID, err error) {
	now := q.Now.UnixMicro()
	far := q.Now.Add(longestWait).UnixMicro()
	for _, part := range []struct {
		waits    bool
		from, to int64
	}{{true, math.MinInt64, math.MaxInt64}, {false, math.MinInt64, now}, {false, far, math.MaxInt64}} {
		if part.waits && q.Locked {
			continue
		}
		err = many(ctx, r.due, func(scan func(...any) error) error {
			var id action.ID
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, part.waits, part.from, part.to, string(q.For), now, int64(q.Limit-len(ids)))
		if err != nil {
			return nil, fmt.Errorf("list what is due: %w", err)
		}
	}
	return ids, nil
}

// Backlog implements store.Reader.
func (r *reader) Backlog(ctx context.Context) (b store.Backlog, err error) {
	err = one(ctx, r.backlog, func(scan func(...any) error) error {
		var oldest *string
		err := scan(&b.Reconciling, &b.Review, &b.Abandoned, &b.Delegated, &oldest, instant{&b.Oldest})
		if oldest != nil {
			b.OldestOf = action.ID(*oldest)
		}
		return err
	})
	if err != nil {
		return store.Backlog{}, fmt.Errorf("count what is unresolved: %w", err)
	}
	return b, nil
}

// Expired implements store.Reader.
func (r *reader) Expired(ctx context.Context, now time.Time, limit int) (ids []action.ID, err error) {
	err = many(ctx, r.expired, func(scan func(...any) error) error {
		var id action.ID
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, now.UnixMicro(), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("list what was kept long enough: %w", err)
	}
	return ids, nil
}

// ForReview implements store.Reader.
func (r *reader) ForReview(ctx context.Context, now time.Time, limit int) ([]action.Action, error) {
	var found []row
	list := func(s *sql.Stmt, args ...any) error {
		return many(ctx, s, func(scan func(...any) error) error {
			a, err := scanAction(scan)
			found = append(found, a)
			return err
		}, args...)
	}
	if err := errors.Join(list(r.waiting, limit), list(r.overdue, now.UnixMicro(), limit)); err != nil {
		return nil, fmt.Errorf("list what a person should look at: %w", err)
	}
	slices.SortStableFunc(found, func(a, b row) int { return a.UnknownAt.Compare(b.UnknownAt) })
	return actionsOf(found[:min(len(found), limit)]), nil
}

// Overdue implements store.Reader.
func (r *reader) Overdue(ctx context.Context, now time.Time) (n int, err error) {
	err = one(ctx, r.countOverdue, func(scan func(...any) error) error { return scan(&n) }, now.UnixMicro())
	if err != nil {
		return 0, fmt.Errorf("count what is overdue: %w", err)
	}
	return n, nil
}

// Open implements store.Reader.
func (r *reader) Open(ctx context.Context) (map[action.State]int, error) {
	open := map[action.State]int{}
	err := many(ctx, r.open, func(scan func(...any) error) error {
		var state action.State
		var n int
		err := scan(&state, &n)
		open[state] = n
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count what is open: %w", err)
	}
	return open, nil
}

// Place implements store.Reader.
func (r *reader) Place(ctx context.Context, id action.ID) (int64, string, error) {
	a, err := r.actionRow(ctx, r.action, string(id))
	if err != nil {
		return 0, "", about(err, "action", id)
	}
	return a.eventSeq, a.eventHash.String(), nil
}
