package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

// written makes a store with some actions, changes it by hand after it is closed, and gives its directory.
func written(t *testing.T, statements ...string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		t.Fatal(err)
	}
	k := new(storetest.Kit)
	for range 3 {
		k.Make(t, s, nil, action.T3, action.T11, action.T12)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := byHand(t, dir)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return dir
}

func openError(t *testing.T, dir, origin string) error {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: origin})
	if err == nil {
		s.Close()
	}
	return err
}

func TestAStoreIsOpenedAgain(t *testing.T) {
	dir := written(t)
	s := openIn(t, dir, storetest.Options{})
	if n := len(storetest.Histories(t, s)); n != 3 {
		t.Errorf("%d actions, want 3", n)
	}
	k := new(storetest.Kit)
	run := k.Run()
	if err := s.Later(func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir, storetest.Options{})
	if _, err := s.Run(context.Background(), run.ID); err != nil {
		t.Errorf("what was queued when the store was closed: %v", err)
	}
	k.Make(t, s, nil, action.T3)
	storetest.Histories(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openError(t, dir, ""); err != nil {
		t.Errorf("without a name: %v", err)
	}
	if err := openError(t, dir, "other.example"); err == nil || !strings.Contains(err.Error(), "test.example/audit") {
		t.Errorf("under another name: %v", err)
	}
}

// TestADamagedEndIsRefused changes the journal in each way that the end of it shows. Nothing is repaired.
func TestADamagedEndIsRefused(t *testing.T) {
	unlocked := []string{`drop trigger journal_is_not_changed`, `drop trigger journal_is_not_cut`}
	for name, c := range map[string]struct{ statement, want string }{
		"a changed body":       {`update journal set body = cast(replace(cast(body as text), 'because', 'becouse') as blob) where seq = 7`, "record 7"},
		"a changed hash":       {`update journal set hash = zeroblob(32) where seq = 7`, "7"},
		"a missing record":     {`delete from journal where seq = 7`, "record 7 is missing"},
		"a cut":                {`delete from journal where seq > 16`, "it was cut"},
		"a missing record 0":   {`delete from journal where seq = 0`, "record 0"},
		"another record 0":     {`update journal set body = cast(replace(cast(body as text), 'test.example', 'best.example') as blob) where seq = 0`, "damaged"},
		"a record of no event": {`insert into journal values (999, x'` + strings.Repeat("ab", 32) + `', x'` + strings.Repeat("cd", 32) + `', x'7b7d')`, "missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, append(unlocked, c.statement)...)
			before := read(t, dir)
			err := openError(t, dir, "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if !bytes.Equal(read(t, dir), before) {
				t.Error("the file was changed")
			}
		})
	}
}

func read(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "deed.db"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOnlyTheEndIsChecked: damage far from the end is for the command that verifies the whole journal.
func TestOnlyTheEndIsChecked(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		t.Fatal(err)
	}
	k := new(storetest.Kit)
	for range 3 {
		err := s.Commit(context.Background(), func(tx store.Tx) error {
			for range 400 {
				if err := tx.Append(k.Started(k.Run())); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage := func(seq int) {
		db := byHand(t, dir)
		defer db.Close()
		for _, statement := range []string{`drop trigger if exists journal_is_not_changed`, `update journal set body = x'00' where seq = ?1`} {
			if _, err := db.Exec(statement, seq); err != nil {
				t.Fatal(err)
			}
		}
	}
	damage(200)
	if err := openError(t, dir, ""); err != nil {
		t.Errorf("damage before the last 1000 records: %v", err)
	}
	damage(201)
	if err := openError(t, dir, ""); err == nil {
		t.Error("damage in the last 1000 records was not found")
	}
}

func TestFilesThatAreNoStoreAreRefused(t *testing.T) {
	t.Run("not a database", func(t *testing.T) {
		dir := t.TempDir()
		text := bytes.Repeat([]byte("I am a letter. "), 1000)
		if err := os.WriteFile(filepath.Join(dir, "deed.db"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openError(t, dir, "test.example"); err == nil || !strings.Contains(err.Error(), "not a database: move it away") {
			t.Errorf("got %v", err)
		}
		if !bytes.Equal(read(t, dir), text) {
			t.Error("the letter was changed")
		}
	})
	t.Run("malformed", func(t *testing.T) {
		dir := written(t)
		b := read(t, dir)
		for at := 4096; at+100 < len(b); at += 4096 { // the head of every page but the first
			copy(b[at:], bytes.Repeat([]byte{0xff}, 100))
		}
		if err := os.WriteFile(filepath.Join(dir, "deed.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "the database is damaged") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a newer schema", func(t *testing.T) {
		dir := written(t, `insert into goose_db_version (version_id, is_applied) values (9999, 1)`)
		if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "schema version 9999") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other legal moves", func(t *testing.T) {
		dir := written(t, `insert into legal_moves values ('T99', 'completed', 'dispatched')`)
		if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "other moves") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file for a directory", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openError(t, path, "test.example"); err == nil {
			t.Error("a file was taken for a directory")
		}
	})
	t.Run("a bad name", func(t *testing.T) {
		dir := t.TempDir()
		if err := openError(t, dir, "two words"); err == nil {
			t.Error("the origin was taken")
		}
		if err := openError(t, dir, "test.example"); err != nil {
			t.Errorf("after a bad name, a good one: %v", err)
		}
	})
}

// TestChangedPayloadsAreFound rewrites the protected store by hand, each time with more care.
func TestChangedPayloadsAreFound(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	k := new(storetest.Kit)
	a := k.Make(t, s, nil, action.T3, action.T11)
	ev := k.Move(a, action.T12)
	result := ev.MoveBody.Result
	err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
		if result.Commitment, err = tx.PutPayload(store.Answer, string(result.ID), []byte("true")); err != nil {
			return err
		}
		if _, err := tx.PutPayload(store.Answer, "result_other", []byte("false")); err != nil {
			return err
		}
		return tx.Append(ev)
	})
	if err != nil {
		t.Fatal(err)
	}
	db := byHand(t, s.dir)
	for _, change := range []string{
		`update payloads set sealed = cast(sealed || x'00' as blob) where owner <> 'result_other'`,
		// A sealed value that is whole, taken from another result: it belongs in its place.
		`update payloads as p set sealed = (select sealed from payloads where owner = 'result_other')`,
		// With its commitment too.
		`update payloads as p set (sealed, commitment) = (select sealed, commitment from payloads where owner = 'result_other')`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		_, body, err := s.Result(context.Background(), result.ID)
		if !errors.Is(err, sealed.ErrDamaged) || body != nil || !strings.Contains(err.Error(), "Nothing of it was used; restore") {
			t.Errorf("after %q: %q (%v)", change, body, err)
		}
	}
	// Somebody who has the key file can seal anything for its place. The journal's own commitment tells.
	keys, err := sealed.Read(filepath.Join(s.dir, sqlite.KeysName))
	if err != nil {
		t.Fatal(err)
	}
	salt := make([]byte, 16)
	sum := sha256.Sum256(slices.Concat([]byte("deed-commitment/1\x00"), salt, []byte("false")))
	place := sealed.Place{Kind: "answer", Owner: string(result.ID), Commitment: "sha256-salted:" + hex.EncodeToString(sum[:])}
	if err := db.QueryRow(`select lock from payloads join content_locks using (slot) where owner = ?`, place.Owner).Scan(&place.Lock); err != nil {
		t.Fatal(err)
	}
	forged, err := keys.Seal(place, append(salt, "false"...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`update payloads set sealed = ?, commitment = ? where owner = ?`, forged, place.Commitment, place.Owner); err != nil {
		t.Fatal(err)
	}
	if _, body, err := s.Result(context.Background(), result.ID); err == nil || body != nil || !strings.Contains(err.Error(), "not what the journal committed to") {
		t.Errorf("forged with the key: %q (%v)", body, err)
	}
	if _, err := db.Exec(`delete from payloads`); err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Result(context.Background(), result.ID)
	if !errors.Is(err, store.ErrNotFound) || r != *result {
		t.Errorf("an erased payload: %+v (%v), want the result and that its body is gone", r, err)
	}
}
