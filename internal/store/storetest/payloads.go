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
