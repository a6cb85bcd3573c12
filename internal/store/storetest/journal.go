package storetest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/eventlog"
	"deed.dev/deed/journal"
)

// Record is a record of the journal with its place.
type Record struct {
	eventlog.Record
	Hash journal.Hash
	Body []byte
}

// Journal reads the whole journal as an auditor would: every hash, link and number is checked, the end is the head that
// the store names, and every event is written again and gives the same bytes.
func Journal(t testing.TB, s store.Reader) []Record {
	t.Helper()
	ctx := context.Background()
	var v journal.Verifier
	var records []Record
	var next int64
	err := s.Records(ctx, 0, func(seq int64, hash [32]byte, body []byte) error {
		if seq != next {
			t.Fatalf("record %d comes after record %d", seq, next-1)
		}
		next++
		if err := v.Add(hash, body); err != nil {
			return err
		}
		read, err := eventlog.Decode(body)
		if err != nil && !errors.Is(err, eventlog.ErrNoEvent) {
			return err
		}
		records = append(records, Record{read, hash, bytes.Clone(body)})
		return nil
	})
	if err != nil {
		t.Fatalf("verify the journal: %v", err)
	}
	seq, head, err := s.Head(ctx)
	if err != nil || seq != next-1 || head != v.Result().Head.String() {
		t.Fatalf("the head is %d %s (%v), and the last record %d %s", seq, head, err, next-1, v.Result().Head)
	}
	return records
}

// Histories sorts the journal by action, and holds each action's events against the core: only legal moves, each after
// the one before, ending in the row that the store shows.
func Histories(t testing.TB, s store.Reader) map[action.ID][]Record {
	t.Helper()
	histories := map[action.ID][]Record{}
	tools := map[action.IntentID]string{}
	for _, rec := range Journal(t, s) {
		switch ev := rec.Event; {
		case ev.IntentBody != nil:
			tools[ev.Intent] = ev.IntentBody.Tool
		case ev.AcceptedBody != nil, ev.MoveBody != nil, ev.DeliveryBody != nil, ev.ObservedBody != nil, ev.DelegatedBody != nil,
			ev.PurgedBody != nil, ev.ApprovalBody != nil, ev.DecidedBody != nil, ev.VoidedBody != nil,
			ev.RevokedBody != nil && ev.Action != "":
			histories[ev.Action] = append(histories[ev.Action], rec)
		}
	}
	for id, records := range histories {
		replayed := replay(t, records)
		replayed.Tool = tools[replayed.Intent]
		if got := Get(t, s, id); !same(got, replayed) {
			t.Fatalf("the row of %s is\n%+v\nand its events make\n%+v", id, got, replayed)
		}
	}
	return histories
}

func replay(t testing.TB, records []Record) action.Action {
	t.Helper()
	if records[0].Event.AcceptedBody == nil || records[0].After != "" {
		t.Fatalf("the first event of %s is %s after %q", records[0].Event.Action, records[0].Event.Kind, records[0].After)
	}
	a := *records[0].Event.AcceptedBody
	for i, rec := range records[1:] {
		if want := records[i].Hash.String(); rec.After != want {
			t.Fatalf("record %d follows %s, not %s", rec.Seq, rec.After, want)
		}
		next, err := a.Apply(rec.Event)
		if err != nil {
			t.Fatalf("record %d is no legal event: %v", rec.Seq, err)
		}
		a = next
	}
	return a
}
