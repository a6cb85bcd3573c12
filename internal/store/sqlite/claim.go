package sqlite

import (
	"database/sql"

	"deed.dev/deed/internal/action"
)

// claims are the questions that decide what becomes of a call. Each is one look-up in one index, however many actions
// there are.
type claims struct {
	runByKey, byIdemKey, byToken, repeating, openEqual, finalEqual, unknownEffect, unknownResource *sql.Stmt
}

// claimLimit bounds every list of earlier actions that a decision looks at.
const claimLimit = 20

const (
	selectAction = `select ` + actionColumns + ` from actions `

	runByKey = `select id, key, kind, identity, strength, shared, pid, start_ticks, boot_id, executable, digest, via, started_at
		from runs where key = ?`
	byIdemKey = selectAction + `where intent = (select id from intents where idem_key = ?) order by seq limit 1`
	byToken   = selectAction + `where repeat_token = ? and repeat_token <> ''`
	repeating = selectAction + `where repeats = ? and repeats <> ''`

	openEqual       = selectAction + `where fingerprint = ? and open = 1 order by seq desc limit ?`
	finalEqual      = selectAction + `where fingerprint = ? and open = 0 order by seq desc limit ?`
	unknownEffect   = selectAction + `where state = 'unknown' and actor = ? and effect = ? order by seq limit ?`
	unknownResource = selectAction + `where state = 'unknown' and actor = ? and resource = ? order by seq limit ?`
)

func prepareClaims(p *statements) *claims {
	return &claims{
		runByKey: p.prepare(runByKey), byIdemKey: p.prepare(byIdemKey), byToken: p.prepare(byToken), repeating: p.prepare(repeating),
		openEqual: p.prepare(openEqual), finalEqual: p.prepare(finalEqual),
		unknownEffect: p.prepare(unknownEffect), unknownResource: p.prepare(unknownResource),
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
	return t.find(t.w.claims.byIdemKey, "action of the key", idemKey)
}

// ActionByRepeatToken implements store.Tx.
func (t *tx) ActionByRepeatToken(digest string) (action.Action, error) {
	return t.find(t.w.claims.byToken, "action of the token", digest)
}

// ActionRepeating implements store.Tx.
func (t *tx) ActionRepeating(id action.ID) (action.Action, error) {
	return t.find(t.w.claims.repeating, "action that repeats", string(id))
}

func (t *tx) find(s *sql.Stmt, what, value string) (action.Action, error) {
	if err := t.usable(); err != nil {
		return action.Action{}, err
	}
	r, err := t.w.actionRow(background, s, value)
	if err := t.note(err); err != nil {
		return action.Action{}, about(err, what, value)
	}
	return r.Action, nil
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
