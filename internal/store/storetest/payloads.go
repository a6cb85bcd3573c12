package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testPayloads(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"PayloadsComeBackAsTheyWere", payloadRoundTrip},
		{"EqualPayloadsHaveDifferentCommitments", saltedCommitments},
		{"APayloadIsWrittenOnce", payloadOnce},
		{"AResultComesWithItsBody", resultBody},
		{"ErasingOneLeavesTheOthers", erasingOne},
		{"AReadingIsOnRecordAndChangesNothing", readingOnRecord},
		{"ContractsAreKeptOnce", contracts},
	})
}

func payloadRoundTrip(t *testing.T, s store.Store, k *Kit) {
	contents := map[store.PayloadKind][]byte{
		store.Arguments: []byte(`{"amount":250}`), store.Operation: {0, 255, '\n'}, store.Answer: {}, store.Headers: []byte(`{}`),
		store.Job: []byte("j"), store.Evidence: []byte("seen"), store.Repeat: bytes.Repeat([]byte("x"), 1<<20),
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		for kind, content := range contents {
			c, err := tx.PutPayload(kind, "owner_1", content)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(c), "sha256-salted:") || len(c) != len("sha256-salted:")+64 {
				t.Errorf("commitment %q", c)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range contents {
		if got, err := s.Payload(context.Background(), kind, "owner_1"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes (%v), want %d", kind, len(got), err, len(want))
		}
	}
}

func saltedCommitments(t *testing.T, s store.Store, k *Kit) {
	seen := map[action.Commitment]bool{}
	err := s.Commit(context.Background(), func(tx store.Tx) error {
		for range 20 {
			seen[Must(tx.PutPayload(store.Answer, k.ID(action.ResultPrefix), []byte("yes")))] = true
		}
		return nil
	})
	if err != nil || len(seen) != 20 {
		t.Errorf("20 equal answers have %d commitments (%v)", len(seen), err)
	}
}

func payloadOnce(t *testing.T, s store.Store, k *Kit) {
	put := func(content string) error {
		return s.Commit(context.Background(), func(tx store.Tx) error {
			_, err := tx.PutPayload(store.Answer, "result_1", []byte(content))
			return err
		})
	}
	if err := put("first"); err != nil {
		t.Fatal(err)
	}
	if err := put("second"); !errors.Is(err, store.ErrStale) {
		t.Errorf("a second payload for one owner: %v", err)
	}
	if got, err := s.Payload(context.Background(), store.Answer, "result_1"); err != nil || string(got) != "first" {
		t.Errorf("%q (%v), want first", got, err)
	}
}

func resultBody(t *testing.T, s store.Store, k *Kit) {
	a := k.Make(t, s, nil, action.T3, action.T11)
	ev := k.Move(a, action.T12)
	body, token := []byte(`{"release":7}`), []byte("rep_1")
	sum := sha256.Sum256(token)
	ev.MoveBody.Result.RepeatToken = hex.EncodeToString(sum[:])
	err := s.Commit(context.Background(), func(tx store.Tx) (err error) {
		r := ev.MoveBody.Result
		if r.Commitment, err = tx.PutPayload(store.Answer, string(r.ID), body); err != nil {
			return err
		}
		if _, err := tx.PutPayload(store.Repeat, string(r.ID), token); err != nil {
			return err
		}
		return tx.Append(ev)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, got, err := s.Result(context.Background(), ev.MoveBody.Result.ID)
	if err != nil || r != *ev.MoveBody.Result || !bytes.Equal(got, body) {
		t.Errorf("result %+v %q (%v), want %+v %q", r, got, err, *ev.MoveBody.Result, body)
	}
	if got, err := s.Payload(context.Background(), store.Repeat, string(r.ID)); err != nil || !bytes.Equal(got, token) {
		t.Errorf("token %q (%v)", got, err)
	}
}

func contracts(t *testing.T, s store.Store, k *Kit) {
	put := func(text string) error {
		return s.Commit(context.Background(), func(tx store.Tx) error { return tx.PutContract("sha256:c", "refund", []byte(text)) })
	}
	if err := put("tool: refund"); err != nil {
		t.Fatal(err)
	}
	if err := put("tool: refund"); err != nil {
		t.Errorf("the same contract again: %v", err)
	}
	if err := put("tool: other"); err == nil {
		t.Error("one digest was given two texts")
	}
	if got, err := s.ContractText(context.Background(), "sha256:c"); err != nil || string(got) != "tool: refund" {
		t.Errorf("%q (%v)", got, err)
	}
}

// erasingOne erases one of several payloads that were kept in one change, and that change's others stay.
func erasingOne(t *testing.T, s store.Store, k *Kit) {
	owners := []string{k.ID(action.ResultPrefix), k.ID(action.ResultPrefix), k.ID(action.ResultPrefix)}
	change := func(do func(tx store.Tx) error) {
		t.Helper()
		if err := s.Commit(context.Background(), do); err != nil {
			t.Fatal(err)
		}
	}
	change(func(tx store.Tx) error {
		for _, owner := range owners {
			if _, err := tx.PutPayload(store.Answer, owner, []byte(owner)); err != nil {
				return err
			}
		}
		return nil
	})
	for i, gone := range owners {
		change(func(tx store.Tx) error { return tx.Erase(store.Answer, gone) })
		for j, owner := range owners {
			content, err := s.Payload(context.Background(), store.Answer, owner)
			if j <= i && !errors.Is(err, store.ErrNotFound) || j > i && (err != nil || string(content) != owner) {
				t.Errorf("after %d erasures, number %d is %q, %v", i+1, j, content, err)
			}
		}
	}
	err := s.Commit(context.Background(), func(tx store.Tx) error { // one change puts, erases and puts again
		for range 2 {
			if _, err := tx.PutPayload(store.Answer, owners[0], []byte("new")); err != nil {
				return err
			}
			if err := tx.Erase(store.Answer, owners[0]); err != nil {
				return err
			}
		}
		_, err := tx.PutPayload(store.Answer, owners[1], []byte("kept"))
		return err
	})
	if content, e := s.Payload(context.Background(), store.Answer, owners[1]); err != nil || e != nil || string(content) != "kept" {
		t.Errorf("put after an erasure in one change: %q, %v, %v", content, e, err)
	}
}

// readingOnRecord records that content was read: it is among the events of the action, and the action is as it was. (AU-27)
func readingOnRecord(t *testing.T, s store.Store, k *Kit) {
	ctx := context.Background()
	a := k.Make(t, s, nil, action.T3, action.T11, action.T12)
	seq, hash, err := s.Place(ctx, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	before := len(Must(s.EventsOf(ctx, a.ID)))
	read := func(id action.ID, why string) error {
		return s.Commit(ctx, func(tx store.Tx) error {
			return tx.Append(action.Event{ID: k.event(), Kind: action.ContentReadKind, Action: id,
				ReadBody: &action.ContentRead{Reader: "process:uid=0", Why: why, Kinds: []string{"answer"}}})
		})
	}
	if err := errors.Join(read(a.ID, "first"), read(a.ID, "second")); err != nil {
		t.Fatal(err)
	}
	events := Must(s.EventsOf(ctx, a.ID))
	if len(events) != before+2 || !bytes.Contains(events[before], []byte(`"why":"first"`)) || !bytes.Contains(events[before+1], []byte(`"why":"second"`)) {
		t.Errorf("%d events, before %d: %s", len(events), before, bytes.Join(events, []byte("\n")))
	}
	if now := Get(t, s, a.ID); now.UpdatedAt != a.UpdatedAt || now.State != a.State {
		t.Errorf("reading made the action %+v", now)
	}
	if after, h, err := s.Place(ctx, a.ID); err != nil || after != seq || h != hash {
		t.Errorf("reading moved the action's place from %d to %d (%v)", seq, after, err)
	}
	for name, err := range map[string]error{"without a reason": read(a.ID, " "), "of an action that is not there": read("act_none", "x")} {
		if err == nil {
			t.Errorf("a reading %s was recorded", name)
		}
	}
	if n := len(Must(s.EventsOf(ctx, a.ID))); n != before+2 {
		t.Errorf("%d events after refused readings", n)
	}
}
