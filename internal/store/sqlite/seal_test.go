package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

const canary = "canary-4f1d-answer"

// raw gives every byte of the database and of what SQLite keeps beside it.
func raw(t testing.TB, dir string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "deed.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database in %s: %v", dir, err)
	}
	var all []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

func put(t testing.TB, s store.Store, kind store.PayloadKind, owner string, content []byte) (c action.Commitment) {
	t.Helper()
	err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
		c, err = tx.PutPayload(kind, owner, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantContent(t testing.TB, r store.Reader, kind store.PayloadKind, owner string, want []byte) {
	t.Helper()
	if got, err := r.Payload(context.Background(), kind, owner); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the %s of %s is %d bytes (%v), want %d", kind, owner, len(got), err, len(want))
	}
}

// AU-27: content is nowhere in the files, neither while the store is open nor after, whatever its size. A reader without
// the keys gets nothing.
func TestContentIsSealedAtRest(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	contents := map[string][]byte{"result_1": []byte(canary), "result_2": bytes.Repeat([]byte(canary+" "), 5000), "result_3": nil}
	for owner, content := range contents {
		put(t, s, store.Answer, owner, content)
		put(t, s, store.Arguments, owner, content)
	}
	if bytes.Contains(raw(t, dir), []byte(canary)) {
		t.Error("content stands in the files of an open store")
	}
	r, err := sqlite.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if content, err := r.Payload(t.Context(), store.Answer, "result_1"); !errors.Is(err, store.ErrSealed) || content != nil {
		t.Errorf("without keys: %q, %v", content, err)
	}
	for owner, content := range contents {
		wantContent(t, s, store.Answer, owner, content)
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw(t, dir), []byte(canary)) {
		t.Error("content stands in the files of a closed store")
	}
	s = openIn(t, dir, storetest.Options{})
	for owner, content := range contents {
		wantContent(t, s, store.Answer, owner, content)
	}
}

// AU-27, FP-12: the salt is sealed with the content. With the database alone, a guess cannot be tried against the commitment.
func TestTheSaltIsSealedToo(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	c := put(t, s, store.Answer, "result_1", []byte("4711"))
	all := raw(t, dir)
	for i := range len(all) - 16 {
		sum := sha256.Sum256(slices.Concat([]byte("deed-commitment/1\x00"), all[i:i+16], []byte("4711")))
		if string(c) == "sha256-salted:"+hex.EncodeToString(sum[:]) {
			t.Fatalf("the salt stands in the clear at byte %d of the files", i)
		}
	}
	keys, err := sealed.Read(filepath.Join(dir, sqlite.KeysName))
	if err != nil {
		t.Fatal(err)
	}
	var value, lock []byte
	if err := byHand(t, dir).QueryRow(`select sealed, lock from payloads join content_locks using (slot)`).Scan(&value, &lock); err != nil {
		t.Fatal(err)
	}
	salted, err := keys.Open(sealed.Place{Kind: "answer", Owner: "result_1", Commitment: string(c), Lock: lock}, value)
	if err != nil || len(salted) != 16+4 { // that the search above would have found it
		t.Fatalf("%d bytes, %v", len(salted), err)
	}
	if sum := sha256.Sum256(slices.Concat([]byte("deed-commitment/1\x00"), salted)); string(c) != "sha256-salted:"+hex.EncodeToString(sum[:]) {
		t.Error("the salt does not lead to the commitment")
	}
}

// plainStore is a store of the version before sealing, with content in the clear and some of it erased.
func plainStore(t *testing.T, n int) (dir string, contents map[string][]byte) {
	t.Helper()
	dir = t.TempDir()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		t.Fatal(err)
	}
	new(storetest.Kit).Make(t, s, nil, action.T3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := byHand(t, dir)
	defer db.Close()
	for _, statement := range []string{
		`drop table payloads`, `drop table content_locks`, `drop table content_keys`, `drop table content_reads`, `delete from goose_db_version where version_id = 6`,
		`create table payloads (kind text not null, owner text not null check (owner <> ''), salt blob not null check (length(salt) = 16),
			content blob not null, commitment text not null, unique (kind, owner)) strict`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, sqlite.KeysName)); err != nil {
		t.Fatal(err)
	}
	contents = map[string][]byte{}
	for i := range n {
		owner := fmt.Sprintf("result_%d", i)
		content := bytes.Repeat([]byte(fmt.Sprintf("%s %d ", canary, i)), 1+i%40*10)
		salt := []byte(fmt.Sprintf("salt-%011d", i))
		sum := sha256.Sum256(slices.Concat([]byte("deed-commitment/1\x00"), salt, content))
		if _, err := db.Exec(`insert into payloads values ('answer', ?, ?, ?, ?)`, owner, salt, content, "sha256-salted:"+hex.EncodeToString(sum[:])); err != nil {
			t.Fatal(err)
		}
		contents[owner] = content
	}
	// What was erased without care leaves its bytes in free pages.
	if _, err := db.Exec(`pragma secure_delete = off`); err != nil {
		t.Fatal(err)
	}
	for owner := range contents {
		if owner[len(owner)-1] == '7' {
			if _, err := db.Exec(`delete from payloads where owner = ?`, owner); err != nil {
				t.Fatal(err)
			}
			delete(contents, owner)
		}
	}
	return dir, contents
}

func checkSealed(t *testing.T, dir string, contents map[string][]byte) {
	t.Helper()
	s := openIn(t, dir, storetest.Options{})
	for owner, content := range contents {
		wantContent(t, s, store.Answer, owner, content)
	}
	all := raw(t, dir)
	if i := bytes.Index(all, []byte(canary)); i >= 0 {
		t.Errorf("plain content is left at byte %d", i)
	}
	if bytes.Contains(all, []byte("salt-0000")) {
		t.Error("a plain salt is left")
	}
	var tables int
	if err := byHand(t, dir).QueryRow(`select count(*) from sqlite_schema where name = 'plain_payloads'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d plain tables are left (%v)", tables, err)
	}
}

// AU-27: content that an earlier version kept in the clear is sealed when the store is opened, and no byte of it stays in
// the files, nor of what was erased before.
func TestPlainContentIsSealedAtOpen(t *testing.T) {
	dir, contents := plainStore(t, 300)
	if !bytes.Contains(raw(t, dir), []byte(canary)) {
		t.Fatal("there is nothing to seal")
	}
	checkSealed(t, dir, contents)
}

// Sealing that was broken off is finished by the next start, wherever it was: some sealed, or all sealed and the file not
// yet rewritten.
func TestSealingGoesOnAfterACrash(t *testing.T) {
	dir, contents := plainStore(t, 120)
	before, err := os.ReadFile(filepath.Join(dir, "deed.db"))
	if err != nil {
		t.Fatal(err)
	}
	checkSealed(t, dir, contents)
	keys, err := os.ReadFile(filepath.Join(dir, sqlite.KeysName))
	if err != nil {
		t.Fatal(err)
	}
	for _, moved := range []int{0, 1, 60, len(contents)} {
		t.Run(fmt.Sprint(moved), func(t *testing.T) {
			half := t.TempDir()
			for name, data := range map[string][]byte{"deed.db": before, sqlite.KeysName: keys} {
				if err := os.WriteFile(filepath.Join(half, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			breakOff(t, half, moved)
			checkSealed(t, half, contents)
		})
	}
}

// breakOff does by hand what an opening had done when it was killed after it had moved some rows.
func breakOff(t *testing.T, dir string, moved int) {
	t.Helper()
	keys, err := sealed.Read(filepath.Join(dir, sqlite.KeysName))
	if err != nil {
		t.Fatal(err)
	}
	db := byHand(t, dir)
	defer db.Close()
	script, err := os.ReadFile("migrations/0006_seal_payloads.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(script) + `; insert into goose_db_version (version_id, is_applied) values (6, 1)`); err != nil {
		t.Fatal(err)
	}
	for range moved {
		var owner, c string
		var salt, content []byte
		if err := db.QueryRow(`select owner, salt, content, commitment from plain_payloads limit 1`).Scan(&owner, &salt, &content, &c); err != nil {
			t.Fatal(err)
		}
		lock := sealed.NewLock()
		value, err := keys.Seal(sealed.Place{Kind: "answer", Owner: owner, Commitment: c, Lock: lock}, append(salt, content...))
		if err != nil {
			t.Fatal(err)
		}
		_, e1 := db.Exec(`insert into content_locks (lock) values (?)`, lock)
		_, e2 := db.Exec(`insert into payloads values ('answer', ?, ?, ?, (select max(slot) from content_locks))`, owner, value, c)
		_, e3 := db.Exec(`delete from plain_payloads where owner = ?`, owner)
		_, e4 := db.Exec(`insert or ignore into content_keys values (?)`, keys.Current().ID())
		if err := errors.Join(e1, e2, e3, e4); err != nil {
			t.Fatal(err)
		}
	}
}

// While somebody else reads the old file, plain bytes may stay in it: the store says so and does not start, and the next
// start goes on.
func TestSealingIsNotDoneWhileTheFileIsRead(t *testing.T) {
	dir, contents := plainStore(t, 60)
	db := byHand(t, dir)
	if _, err := db.Exec(`pragma journal_mode = wal`); err != nil {
		t.Fatal(err)
	}
	reading, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow(`select count(*) from journal`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := openError(t, dir, "test.example/audit"); err == nil || !strings.Contains(err.Error(), "Nothing was started; start again when no other process reads it") {
		t.Errorf("opened while another reads: %v", err)
	}
	if err := errors.Join(reading.Rollback(), db.Close()); err != nil {
		t.Fatal(err)
	}
	checkSealed(t, dir, contents)
}

// AU-27: without a key that sealed something, nothing starts, and the key file is not replaced. Where nothing was sealed,
// one is made.
func TestMissingKeysAreRefused(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	put(t, s, store.Answer, "result_1", []byte(canary))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, sqlite.KeysName)
	right, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "content keys are missing") || !strings.Contains(err.Error(), "Restore the file from its backup") {
		t.Errorf("without the file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a key file was made beside content that it cannot open: %v", err)
	}
	other, err := sealed.Make(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "lack ck_") {
		t.Errorf("with another installation's file: %v", err)
	}
	// Both: an older backup of the file, and then the right one again.
	theirs, err := os.ReadFile(other.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(theirs, right...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir, storetest.Options{})
	wantContent(t, s, store.Answer, "result_1", []byte(canary))
}

// AU-27: after a rotation the new key seals, the old one still opens, also after a restart; and an older backup of the key
// file is refused from then on.
func TestContentKeyRotates(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	path := filepath.Join(dir, sqlite.KeysName)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, store.Answer, "result_1", []byte("first"))
	id, err := s.RotateContentKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, store.Answer, "result_2", []byte("second"))
	check := func(s store.Store) {
		wantContent(t, s, store.Answer, "result_1", []byte("first"))
		wantContent(t, s, store.Answer, "result_2", []byte("second"))
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.Read(path)
	if err != nil || keys.Current().ID() != id || len(keys.IDs()) != 2 {
		t.Fatalf("%v (%v), want %s and the one before", keys.IDs(), err, id)
	}
	s = openIn(t, dir, storetest.Options{})
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openError(t, dir, ""); err == nil || !strings.Contains(err.Error(), "lack "+id) {
		t.Errorf("with the key file of before the rotation: %v", err)
	}
}

// A rotation that cannot be written down changes nothing: the old key goes on sealing.
func TestARotationThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	path := filepath.Join(dir, sqlite.KeysName)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RotateContentKey(t.Context()); err == nil || !strings.Contains(err.Error(), "no new content key was made") {
		t.Errorf("rotated: %v", err)
	}
	put(t, s, store.Answer, "result_1", []byte("still"))
	if err := errors.Join(os.RemoveAll(path), os.Rename(path+".away", path)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, openIn(t, dir, storetest.Options{}), store.Answer, "result_1", []byte("still"))
}

// erasedRow is what is known of a row before it is erased.
type erasedRow struct {
	place sealed.Place
	value []byte
}

func rowsOf(t testing.TB, dir string) map[string]erasedRow {
	t.Helper()
	db := byHand(t, dir)
	defer db.Close()
	rows, err := db.Query(`select kind, owner, sealed, commitment, lock from payloads join content_locks using (slot)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]erasedRow{}
	for rows.Next() {
		var r erasedRow
		if err := rows.Scan(&r.place.Kind, &r.place.Owner, &r.value, &r.place.Commitment, &r.place.Lock); err != nil {
			t.Fatal(err)
		}
		all[r.place.Kind+" "+r.place.Owner] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func erase(t testing.TB, s store.Store, kind store.PayloadKind, owners ...string) {
	t.Helper()
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		for _, owner := range owners {
			if err := tx.Erase(kind, owner); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// AU-27, SS-05: what retention erased cannot be opened any more by anybody, whoever has the key file and every byte of the
// database and its WAL: the lock is gone from all of them. Rows of all sizes come and go in any order, so that SQLite
// moves them from page to page and leaves bytes of them behind. What stays can be read.
func TestErasedContentIsGoneForGood(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	contents, erased := map[string][]byte{}, map[string]erasedRow{}
	var live []string
	for round := range 60 {
		err := s.Commit(t.Context(), func(tx store.Tx) error {
			for range 30 {
				owner := fmt.Sprintf("result_%d", len(contents)+len(erased))
				contents[owner] = bytes.Repeat([]byte{byte(round)}, random.IntN([]int{100, 400, 9000}[round%3]))
				live = append(live, owner)
				if _, err := tx.PutPayload(store.Answer, owner, contents[owner]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		random.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		some := live[:random.IntN(min(len(live), 45))]
		live = live[len(some):]
		before := rowsOf(t, dir)
		erase(t, s, store.Answer, some...)
		for _, owner := range some {
			erased[owner] = before["answer "+owner]
			delete(contents, owner)
		}
		if round%10 != 9 {
			continue
		}
		all := raw(t, dir)
		for owner, row := range erased {
			if at := bytes.Index(all, row.place.Lock); at >= 0 {
				t.Fatalf("round %d: the lock of %s, which is erased, is at byte %d of the files", round, owner, at)
			}
		}
		for owner, content := range contents {
			wantContent(t, s, store.Answer, owner, content)
		}
	}
	if len(erased) < 500 || len(contents) < 100 {
		t.Fatalf("only %d were erased and %d stay", len(erased), len(contents))
	}
	// That a lock is what it takes.
	keys, err := sealed.Read(filepath.Join(dir, sqlite.KeysName))
	if err != nil {
		t.Fatal(err)
	}
	for owner, row := range erased {
		if _, err := keys.Open(row.place, row.value); err != nil {
			t.Fatalf("%s with its lock: %v", owner, err)
		}
		row.place.Lock = make([]byte, sealed.LockBytes)
		if _, err := keys.Open(row.place, row.value); !errors.Is(err, sealed.ErrDamaged) {
			t.Fatalf("%s without its lock: %v", owner, err)
		}
	}
}

// What was sealed in one change shares a lock. What stays of it can still be read, under another.
func TestErasingOneOfAChangeKeepsTheOthers(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	err := s.Commit(t.Context(), func(tx store.Tx) error {
		for _, owner := range []string{"result_1", "result_2", "result_3"} {
			if _, err := tx.PutPayload(store.Answer, owner, []byte(owner)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := rowsOf(t, dir)
	if !bytes.Equal(before["answer result_1"].place.Lock, before["answer result_2"].place.Lock) {
		t.Error("one change has two locks")
	}
	if _, err := byHand(t, dir).Exec(`update payloads set sealed = zeroblob(100) where owner = 'result_3'`); err != nil {
		t.Fatal(err)
	}
	erase(t, s, store.Answer, "result_1")
	if bytes.Contains(raw(t, dir), before["answer result_1"].place.Lock) {
		t.Error("the lock is still there")
	}
	wantContent(t, s, store.Answer, "result_2", []byte("result_2"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, openIn(t, dir, storetest.Options{}), store.Answer, "result_2", []byte("result_2"))
}

// A change that erases and then fails has erased nothing.
func TestAFailedChangeErasesNothing(t *testing.T) {
	s := openIn(t, t.TempDir(), storetest.Options{})
	put(t, s, store.Answer, "result_1", []byte("kept"))
	no := errors.New("no")
	err := s.Commit(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.Erase(store.Answer, "result_1"), no)
	})
	if !errors.Is(err, no) {
		t.Fatal(err)
	}
	wantContent(t, s, store.Answer, "result_1", []byte("kept"))
}

// While another process reads, the WAL cannot be cut. It is done later, also when nothing more is
// committed, and nobody waits for it.
func TestTheWALIsEmptiedWhenTheReaderIsGone(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	put(t, s, store.Answer, "result_1", []byte("x"))
	lock := rowsOf(t, dir)["answer result_1"].place.Lock
	reading, err := byHand(t, dir).Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow(`select count(*) from payloads`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	erase(t, s, store.Answer, "result_1")
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("erasing waited %s for a reader", took)
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); bytes.Contains(raw(t, dir), lock); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the lock stays in the WAL")
		}
	}
}

// Readers of the gateway itself, however many, do not keep erased content in the WAL.
func TestTheWALIsEmptiedUnderReaders(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, storetest.Options{})
	put(t, s, store.Answer, "result_kept", bytes.Repeat([]byte("x"), 5000))
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Payload(ctx, store.Answer, "result_kept")
			}
		})
	}
	for i := range 5 {
		owner := fmt.Sprint("result_", i)
		put(t, s, store.Answer, owner, []byte("x"))
		lock := rowsOf(t, dir)["answer "+owner].place.Lock
		erase(t, s, store.Answer, owner)
		for deadline := time.Now().Add(20 * time.Second); bytes.Contains(raw(t, dir), lock); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the lock stays in the WAL")
			}
		}
	}
	cancel()
	readers.Wait()
}
