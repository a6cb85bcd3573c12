package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// claims are the questions that decide what becomes of a call. Each is one look-up in one index, however many actions
// there are. Most find nothing, and asking for the whole of nothing is dear: the driver looks at every column first. So
// each asks for identifiers, and for actions only when there are some.
type claims struct {
	runByKey, byIdemKey, byAttachedKey, byToken, repeating, undoing *sql.Stmt
	lease, alive                                                    *sql.Stmt
	openEqual, finalEqual, unknownEffect, unknownResource           question
}

// question is a list asked for twice: its identifiers and its actions.
type question struct{ ids, actions *sql.Stmt }

// claimLimit bounds every list of earlier actions that a decision looks at.
const claimLimit = 20

const (
	selectID     = `select id from actions `
	selectAction = `select ` + actionColumns + ` from actions `

	runByKey = `select id, key, kind, identity, strength, shared, pid, start_ticks, boot_id, executable, digest, via, started_at
		from runs where key = ?`
	byIdemKey     = `where intent = (select id from intents where idem_key = ?) order by seq desc limit 1`
	byAttachedKey = `where id = (select action from calls where idem_key = ? and idem_key <> ''
		and event = 'call.attached' order by seq limit 1)`
	byToken   = `where repeat_token = ? and repeat_token <> ''`
	repeating = `where repeats = ? and repeats <> ''`
	undoing   = `where compensates = ? and compensates <> '' order by seq desc limit 1`

	openEqual       = `where fingerprint = ? and open = 1 order by seq desc limit ?`
	finalEqual      = `where fingerprint = ? and open = 0 order by seq desc limit ?`
	unknownEffect   = `where doubted = 1 and actor = ? and effect = ? order by seq limit ?`
	unknownResource = `where doubted = 1 and actor = ? and resource = ? order by seq limit ?`
)

func prepareClaims(p *statements) *claims {
	id := func(where string) *sql.Stmt { return p.prepare(selectID + where) }
	ask := func(where string) question { return question{id(where), p.prepare(selectAction + where)} }
	return &claims{
		runByKey: p.prepare(runByKey), byIdemKey: id(byIdemKey), byAttachedKey: id(byAttachedKey), byToken: id(byToken),
		repeating: id(repeating), undoing: id(undoing),
		lease:     p.prepare(`insert into owners (id, until) values (?, ?) on conflict (id) do update set until = excluded.until`),
		alive:     p.prepare(`select until > ? from owners where id = ?`),
		openEqual: ask(openEqual), finalEqual: ask(finalEqual),
		unknownEffect: ask(unknownEffect), unknownResource: ask(unknownResource),
	}
}

// RunByKey implements store.Tx.
func (t *tx) RunByKey(key string) (run action.Run, err error) {
	if err := t.usable(); err != nil {
		return action.Run{}, err
	}
	err = one(background, t.w.claims.runByKey, func(scan func(...any) error) error {
		run, err = scanRun(scan)
		return err
	}, key)
	if err := t.note(err); err != nil {
		return action.Run{}, about(err, "run of the key", key)
	}
	return run, nil
}

// Action implements store.Tx.
func (t *tx) Action(id action.ID) (action.Action, error) {
	if err := t.usable(); err != nil {
		return action.Action{}, err
	}
	r, err := t.w.rows.action(id)
	if err := t.note(err); err != nil {
		return action.Action{}, about(err, "action", id)
	}
	return r.Action, nil
}

// Attempts implements store.Tx.
func (t *tx) Attempts(id action.ID) (attempts []action.Attempt, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	err = many(background, t.w.reads.attempts, func(scan func(...any) error) error {
		a, err := scanAttempt(scan)
		attempts = append(attempts, a)
		return err
	}, string(id))
	if err := t.note(err); err != nil {
		return nil, about(err, "attempts of", id)
	}
	return attempts, nil
}

// ActionByIdemKey implements store.Tx.
func (t *tx) ActionByIdemKey(idemKey string) (action.Action, error) {
	a, err := t.find(t.w.claims.byIdemKey, "action of the key", idemKey)
	if errors.Is(err, store.ErrNotFound) {
		return t.find(t.w.claims.byAttachedKey, "action of the key", idemKey)
	}
	return a, err
}

// ActionByRepeatToken implements store.Tx.
func (t *tx) ActionByRepeatToken(digest string) (action.Action, error) {
	return t.find(t.w.claims.byToken, "action of the token", digest)
}

// ActionRepeating implements store.Tx.
func (t *tx) ActionRepeating(id action.ID) (action.Action, error) {
	return t.find(t.w.claims.repeating, "action that repeats", string(id))
}

// ActionUndoing implements store.Tx.
func (t *tx) ActionUndoing(id action.ID) (action.Action, error) {
	return t.find(t.w.claims.undoing, "action that undoes", string(id))
}

// Lease implements store.Tx.
func (t *tx) Lease(owner action.OwnerID, d time.Duration) error {
	if err := t.usable(); err != nil {
		return err
	}
	_, err := t.w.claims.lease.ExecContext(background, string(owner), micros(t.w.now().Add(d)))
	if err := t.note(err); err != nil {
		return fmt.Errorf("keep the lease of %s: %w", owner, err)
	}
	t.w.written++
	return nil
}

// Alive implements store.Tx. A clock that was set back makes a dead owner live longer, never a live one dead.
func (t *tx) Alive(owner action.OwnerID) (alive bool, err error) {
	if err := t.usable(); err != nil {
		return false, err
	}
	err = many(background, t.w.claims.alive, func(scan func(...any) error) error { return scan(&alive) }, micros(t.w.now()), string(owner))
	if err := t.note(err); err != nil {
		return false, fmt.Errorf("read the lease of %s: %w", owner, err)
	}
	return alive, nil
}

func (t *tx) find(s *sql.Stmt, what, value string) (action.Action, error) {
	if err := t.usable(); err != nil {
		return action.Action{}, err
	}
	var id action.ID
	err := one(background, s, func(scan func(...any) error) error { return scan(&id) }, value)
	if err := t.note(err); err != nil {
		return action.Action{}, about(err, what, value)
	}
	return t.Action(id)
}

// ActionsByFingerprint implements store.Tx.
func (t *tx) ActionsByFingerprint(fingerprints []string) ([]action.Action, error) {
	open, err := t.list(t.w.claims.openEqual, newestFirst, fingerprints)
	if err != nil || len(open) == claimLimit {
		return actionsOf(open), err
	}
	final, err := t.list(t.w.claims.finalEqual, newestFirst, fingerprints)
	if err != nil {
		return nil, err
	}
	all := append(open, final...)
	return actionsOf(all[:min(len(all), claimLimit)]), nil
}

// UnknownByEffect implements store.Tx, oldest first.
func (t *tx) UnknownByEffect(actor string, effects []string) ([]action.Action, error) {
	found, err := t.list(t.w.claims.unknownEffect, oldestFirst, effects, actor)
	return actionsOf(found), err
}

// UnknownByResource implements store.Tx, oldest first. No resource is equal to no resource.
func (t *tx) UnknownByResource(actor string, resources []string) ([]action.Action, error) {
	found, err := t.list(t.w.claims.unknownResource, oldestFirst, resources, actor)
	return actionsOf(found), err
}
