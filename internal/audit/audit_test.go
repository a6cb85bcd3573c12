package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/logkey"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
	"deed.dev/deed/journal"
)

// stage is a store with a journal and the key of its log, in two directories.
type stage struct {
	*sqlite.Store
	t         *testing.T
	data, key string
	k         storetest.Kit
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, data: t.TempDir(), key: filepath.Join(t.TempDir(), "keys")}
	s.open()
	return s
}

func (s *stage) open() {
	s.t.Helper()
	var err error
	s.Store, err = sqlite.Open(s.t.Context(), s.data, sqlite.Options{Origin: "test.example/audit", Key: func(origin string, chosen bool) (string, string, error) {
		return audit.KeyFor(s.key, origin, chosen)
	}})
	s.must(err)
	s.t.Cleanup(func() { s.Store.Close() })
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) log() (*audit.Log, error) {
	keys, err := audit.OpenKeys(s.t.Context(), s.key, s, s)
	if err != nil {
		return nil, err
	}
	return audit.OpenLog(s.t.Context(), audit.Options{Records: s, Keys: keys})
}

func (s *stage) grow(actions int) {
	s.t.Helper()
	for range actions {
		s.k.Make(s.t, s, nil, action.T3, action.T11, action.T12)
	}
}

// AU-03: the head continues every earlier one, and says so with a proof that a stranger can check.
func TestTheHeadContinuesEveryEarlierOne(t *testing.T) {
	s := newStage(t)
	l, err := s.log()
	s.must(err)
	var heads []audit.Head
	for range 8 {
		s.grow(1)
		h, err := l.Head(t.Context())
		s.must(err)
		if int64(h.Size) != l.Size() || h.Time.IsZero() {
			t.Errorf("the head is of %d records at %v, and there are %d", h.Size, h.Time, l.Size())
		}
		if _, err := journal.TrustLogs(l.Keys()...).Open(h.Signed); err != nil {
			t.Error(err)
		}
		again, err := l.Head(t.Context())
		s.must(err)
		if !bytes.Equal(again.Signed, h.Signed) {
			t.Error("nothing was written, and there is another head")
		}
		heads = append(heads, h)
	}
	newest := heads[len(heads)-1]
	for _, old := range heads {
		proof, err := newest.Prove(t.Context(), old.Size)
		s.must(err)
		if err := journal.CheckConsistency(proof, old.Checkpoint, newest.Checkpoint); err != nil {
			t.Errorf("from %d to %d: %v", old.Size, newest.Size, err)
		}
		at, err := l.At(t.Context(), old.Size)
		s.must(err)
		if c, err := journal.ReadCheckpoint(at); err != nil || c != old.Checkpoint {
			t.Errorf("the checkpoint of size %d is %v (%v)", old.Size, c, err)
		}
	}
	for _, size := range []uint64{0, newest.Size + 1} {
		if _, err := l.At(t.Context(), size); size > 0 && !errors.Is(err, audit.ErrOutside) || err == nil {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

// A checkpoint that anybody has seen is remembered first, so that no start goes on from a shorter journal.
func TestWhatWasHandedOutIsRemembered(t *testing.T) {
	for name, out := range map[string]func(context.Context, audit.Desk, action.ID) error{
		"checkpoint": func(ctx context.Context, d audit.Desk, _ action.ID) error { _, err := d.Checkpoint(ctx, 0); return err },
		"earlier":    func(ctx context.Context, d audit.Desk, _ action.ID) error { _, err := d.Checkpoint(ctx, 3); return err },
		"receipt":    func(ctx context.Context, d audit.Desk, id action.ID) error { _, err := d.Receipt(ctx, id); return err },
		"audit": func(ctx context.Context, d audit.Desk, _ action.ID) error {
			r, err := d.Verify(ctx)
			if err == nil && (r.Exit != 0 || r.Signature != "valid") {
				err = fmt.Errorf("%+v", r)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			l, err := s.log()
			s.must(err)
			id := s.k.Make(t, s, nil, action.T3, action.T11, action.T12).ID
			s.must(out(t.Context(), audit.Desk{Log: l, Records: s, Events: s, Names: s}, id))
			d, err := logkey.Open(s.key)
			s.must(err)
			if _, kept, err := d.Remembered(); err != nil || int64(kept.Size) != s.Size() {
				t.Errorf("%d records are remembered of %d (%v)", kept.Size, s.Size(), err)
			}
		})
	}
}

// Number 10 of the format's tests: a journal that is shorter than a checkpoint, or another one, is not gone on with.
func TestAJournalThatWasCutIsNotGoneOnWith(t *testing.T) {
	short := newStage(t)
	long := newStage(t)
	short.grow(2)
	long.grow(5)
	sign := func(s *stage) (*logkey.Dir, []byte) {
		d, err := logkey.Open(s.key)
		s.must(err)
		top, err := s.Top(t.Context())
		s.must(err)
		signed, err := journal.SignCheckpoint(top, d.Signer())
		s.must(err)
		return d, signed
	}
	d, _ := sign(short)
	top, err := long.Top(t.Context())
	short.must(err)
	signed, err := journal.SignCheckpoint(top, d.Signer())
	short.must(err)
	short.must(d.Remember(signed))
	if _, err := short.log(); !errors.Is(err, audit.ErrShorter) || !strings.Contains(err.Error(), "Nothing was started") {
		t.Errorf("a shorter journal: %v", err)
	}
	short.grow(5)
	if _, err := short.log(); !errors.Is(err, audit.ErrRewritten) {
		t.Errorf("another journal: %v", err)
	}
	d, signed = sign(short)
	short.must(d.Remember(signed))
	if _, err := short.log(); err != nil {
		t.Errorf("the same journal: %v", err)
	}
}

// A rotation whose process died is finished when the journal names the new key, and dropped when it does not.
func TestARotationThatDiedIsSettled(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprint("named ", named), func(t *testing.T) {
			s := newStage(t)
			l, err := s.log()
			s.must(err)
			s.grow(1)
			d, err := logkey.Open(s.key)
			s.must(err)
			old := l.Keys()[0]
			next, err := d.Prepare()
			s.must(err)
			want := old
			if named {
				s.must(s.NameKey(t.Context(), next.Key().String()))
				want = next.Key()
			}
			s.must(s.Close())
			s.open()
			l, err = s.log()
			s.must(err)
			if got := l.Keys()[0]; got != want {
				t.Errorf("the key is %v, want %v", got, want)
			}
			if left, err := d.Next(); left != nil || err != nil {
				t.Errorf("a key is left over (%v)", err)
			}
			handed, err := filepath.Glob(filepath.Join(s.key, "handover-*.checkpoint"))
			s.must(err)
			if !named {
				if len(handed) != 0 {
					t.Errorf("something was handed over: %v", handed)
				}
				return
			}
			text, err := os.ReadFile(handed[0])
			s.must(err)
			for _, key := range []journal.Key{old, want} {
				if _, err := journal.TrustLogs(key).Open(text); err != nil {
					t.Errorf("the checkpoint that hands over is not signed by %v: %v", key, err)
				}
			}
			public, err := logkey.ReadPublic(s.key)
			s.must(err)
			if len(public) != 2 || public[0] != want || public[1] != old {
				t.Errorf("the public keys are %v", public)
			}
		})
	}
}

// lostAnswer names a key durably and reports an error, as a fault right after a commit does.
type lostAnswer struct{ *stage }

func (n lostAnswer) NameKey(ctx context.Context, key string) error {
	return errors.Join(n.stage.NameKey(ctx, key), errors.New("the disk is gone"))
}

// A key that the journal may have named is never thrown away.
func TestARotationWithoutAnAnswerKeepsBothKeys(t *testing.T) {
	s := newStage(t)
	l, err := s.log()
	s.must(err)
	if _, err := l.Rotate(t.Context(), lostAnswer{s}); err == nil {
		t.Fatal("the error was swallowed")
	}
	again, err := s.log()
	s.must(err)
	if again.Keys()[0] == l.Keys()[0] {
		t.Error("the key that the journal names did not take over")
	}
}

// A journal from before logs had keys gets one, and names it.
func TestAnOlderJournalGetsAKey(t *testing.T) {
	s := &stage{t: t, data: t.TempDir(), key: filepath.Join(t.TempDir(), "keys")}
	var err error
	s.Store, err = sqlite.Open(t.Context(), s.data, sqlite.Options{Origin: "test.example/audit"})
	s.must(err)
	t.Cleanup(func() { s.Store.Close() })
	s.grow(1)
	l, err := s.log()
	s.must(err)
	named, err := s.LogKeys(t.Context())
	s.must(err)
	if len(named) != 1 || named[0].Key != l.Keys()[0].String() || named[0].Seq == 0 {
		t.Errorf("the journal names %v", named)
	}
}

// Number 12 of the format's tests: the clock goes back by a day, records are ordered by their numbers, and all verifies.
func TestAClockThatGoesBackBreaksNothing(t *testing.T) {
	s := &stage{t: t, data: t.TempDir(), key: filepath.Join(t.TempDir(), "keys")}
	now := time.Date(2026, 10, 5, 10, 0, 0, 0, time.UTC)
	open := func() {
		var err error
		s.Store, err = sqlite.Open(t.Context(), s.data, sqlite.Options{Origin: "test.example/audit", Now: func() time.Time { return now }})
		s.must(err)
	}
	open()
	s.grow(1)
	now = now.Add(-24 * time.Hour)
	s.grow(1)
	s.must(s.Close())
	open()
	t.Cleanup(func() { s.Store.Close() })
	s.grow(1)
	l, err := s.log()
	s.must(err)
	r, err := audit.Desk{Log: l, Records: s, Events: s, Names: s}.Verify(t.Context())
	if err != nil || r.Exit != 0 || int64(r.RecordsChecked) != s.Size() {
		t.Errorf("found %+v (%v)", r, err)
	}
}

// AU-01, AU-07: damage in the store is exported as it is, and named; nothing is left out and nothing repaired.
func TestDamageIsExported(t *testing.T) {
	s := newStage(t)
	s.grow(3)
	var before bytes.Buffer
	_, err := audit.Export(t.Context(), s, &before, audit.Span{})
	s.must(err)
	changed := harmed{s}
	var after bytes.Buffer
	done, err := audit.Export(t.Context(), changed, &after, audit.Span{})
	s.must(err)
	if done.Bad == nil || done.Bad.Sequence != 4 || done.Bad.Reason != journal.ReasonContent {
		t.Errorf("found %v", done.Bad)
	}
	if bytes.Count(after.Bytes(), []byte("\n")) != bytes.Count(before.Bytes(), []byte("\n")) || bytes.Equal(before.Bytes(), after.Bytes()) {
		t.Error("the damage was left out")
	}
}

// harmed gives record 4 another content than it had.
type harmed struct{ *stage }

func (h harmed) Records(ctx context.Context, seq int64, each func(int64, [32]byte, []byte) error) error {
	return h.stage.Records(ctx, seq, func(seq int64, hash [32]byte, body []byte) error {
		if seq == 4 {
			body = bytes.Replace(body, []byte(`"event":"`), []byte(`"event":"x`), 1)
		}
		return each(seq, hash, body)
	})
}

// counted are records whose head a test moves by hand.
type counted struct {
	*stage
	top journal.Checkpoint
}

func (c *counted) Top(context.Context) (journal.Checkpoint, error) { return c.top, nil }
func (c *counted) Size() int64                                     { return int64(c.top.Size) }

// Checkpoints are kept a second after the first record that none covers, and sooner after a thousand records.
func TestCheckpointsAreKeptInTime(t *testing.T) {
	s := newStage(t)
	keys, err := audit.OpenKeys(t.Context(), s.key, s, s)
	s.must(err)
	top, err := s.Top(t.Context())
	s.must(err)
	synctest.Test(t, func(t *testing.T) {
		records := &counted{s, top}
		l, err := audit.OpenLog(t.Context(), audit.Options{Records: records, Keys: keys})
		s.must(err)
		ctx, stop := context.WithCancel(t.Context())
		go l.Run(ctx)
		kept := func() uint64 {
			synctest.Wait()
			_, opened, err := keys.Remembered()
			s.must(err)
			return opened.Size
		}
		grow := func(by uint64) {
			synctest.Wait()
			records.top.Size += by
			l.Grown()
		}
		grow(1)
		time.Sleep(900 * time.Millisecond)
		if n := kept(); n != 0 {
			t.Errorf("a checkpoint of %d after 0.9 s", n)
		}
		time.Sleep(100 * time.Millisecond)
		if n := kept(); n != records.top.Size {
			t.Errorf("a checkpoint of %d after 1 s, want %d", n, records.top.Size)
		}
		grow(999)
		if n := kept(); n == records.top.Size {
			t.Error("a checkpoint after 999 records and no time")
		}
		grow(1)
		if n := kept(); n != records.top.Size {
			t.Errorf("a checkpoint of %d after a thousand records, want %d", n, records.top.Size)
		}
		stop()
		synctest.Wait()
	})
}

// AU-23, AU-24: what an archive has is never written twice, and never from another history.
func TestAnArchiveIsOfOneJournal(t *testing.T) {
	s := newStage(t)
	l, err := s.log()
	s.must(err)
	s.grow(2)
	dir := t.TempDir()
	desk := audit.Desk{Log: l, Records: s, Events: s, Names: s}
	_, first, err := audit.Continue(t.Context(), s, desk.Checkpoint, dir)
	s.must(err)
	if _, _, err := audit.Continue(t.Context(), s, desk.Checkpoint, dir); !errors.Is(err, audit.ErrNothingNew) {
		t.Errorf("nothing is new: %v", err)
	}
	s.grow(1)
	rewritten, err := journal.SignCheckpoint(journal.Checkpoint{Origin: "test.example/audit", Size: 2, Root: journal.Hash{1}}, mustSigner(s))
	s.must(err)
	kept, err := os.ReadFile(first + audit.CheckpointSuffix)
	s.must(err)
	s.must(os.WriteFile(first+audit.CheckpointSuffix, rewritten, 0o600))
	if _, _, err := audit.Continue(t.Context(), s, desk.Checkpoint, dir); !errors.Is(err, audit.ErrRewritten) {
		t.Errorf("an archive of another history: %v", err)
	}
	s.must(os.Remove(first + audit.CheckpointSuffix))
	if _, _, err := audit.Continue(t.Context(), s, desk.Checkpoint, dir); err == nil || !strings.Contains(err.Error(), "no checkpoint beside it") {
		t.Errorf("an archive whose end is not known: %v", err)
	}
	s.must(os.WriteFile(first+audit.CheckpointSuffix, kept, 0o600))
	_, _, err = audit.Continue(t.Context(), s, desk.Checkpoint, dir)
	s.must(err)
	r, err := audit.Verify(dir, audit.Demand{Policy: journal.TrustLogs(l.Keys()...), Whole: true})
	if err != nil || r.ExitCode() != 0 || int64(r.RecordsChecked) != s.Size() {
		t.Errorf("the archive: %s (%v)", r.Text(), err)
	}
}

func mustSigner(s *stage) *journal.Signer {
	d, err := logkey.Open(s.key)
	s.must(err)
	return d.Signer()
}

var _ audit.Records = (*sqlite.Reader)(nil)
var _ audit.Names = (*sqlite.Store)(nil)
