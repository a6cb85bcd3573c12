package storetest

import (
	"context"
	"slices"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func testQueries(t *testing.T, open Opener) {
	each(t, open, []subtest{
		{"EveryFieldFindsTheAction", everyField},
		{"NewestFirstPageByPage", pages},
		{"OpenContractsAndKeys", openContracts},
	})
}

// everyField finds one action among others by each key that a record must be found by. (ST-30)
func everyField(t *testing.T, s store.Store, k *Kit) {
	k.Make(t, s, nil, action.T3, action.T11)
	a := k.Make(t, s, func(c *Claim) {
		c.Intent.Tool, c.Action.Tool = "refund", "refund"
		c.Action.Target.Host, c.Action.Credential = "pay.example", "pay"
	}, action.T3, action.T11, action.T16)
	k.Make(t, s, nil, action.T3, action.T11, action.T12)
	ctx := context.Background()
	attempt := one(t, s, a.ID)

	queries := map[string]store.Query{
		"run": {Run: a.Run}, "trace": {TraceID: a.Trace.TraceID}, "intent": {Intent: a.Intent}, "attempt": {Attempt: attempt.ID},
		"target": {Host: "pay.example"}, "credential": {Credential: "pay"}, "tool": {Tool: "refund"},
		"state": {States: []action.State{action.Unknown}}, "states": {States: []action.State{action.Unknown, action.Failed}},
		"all": {Run: a.Run, TraceID: a.Trace.TraceID, Intent: a.Intent, Attempt: attempt.ID, Host: "pay.example", Credential: "pay",
			Tool: "refund", States: []action.State{action.Unknown}},
	}
	for name, q := range queries {
		got, err := s.Actions(ctx, q)
		if err != nil || !slices.Equal(ids(got), []action.ID{a.ID}) {
			t.Errorf("by %s: %v (%v), want %s", name, ids(got), err, a.ID)
		}
	}
	if got, err := s.Actions(ctx, store.Query{Host: "pay.example", States: []action.State{action.Completed}}); err != nil || len(got) != 0 {
		t.Errorf("an action was found by one field against another: %v (%v)", ids(got), err)
	}
	if got, err := s.Actions(ctx, store.Query{}); err != nil || len(got) != 3 || !same(got[1], a) {
		t.Errorf("all: %v (%v)", ids(got), err)
	}
}

func pages(t *testing.T, s store.Store, k *Kit) {
	var want []action.ID
	for i := range 250 {
		a := k.Make(t, s, func(c *Claim) {
			if i%2 == 0 {
				c.Action.Target.Host = "even.example"
			}
		})
		want = append(want, a.ID)
	}
	slices.Reverse(want)
	ctx := context.Background()
	if got, err := s.Actions(ctx, store.Query{}); err != nil || !slices.Equal(ids(got), want[:100]) {
		t.Errorf("without a limit: %d actions (%v), want the newest 100", len(got), err)
	}
	var got []action.ID
	for q := (store.Query{Limit: 70}); ; q.Before = got[len(got)-1] {
		page, err := s.Actions(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, ids(page)...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("page by page: %d actions in another order than they were accepted, want %d", len(got), len(want))
	}
	even, err := s.Actions(ctx, store.Query{Host: "even.example", Limit: 3, Before: want[100]})
	if err != nil || !slices.Equal(ids(even), []action.ID{want[101], want[103], want[105]}) {
		t.Errorf("a page of one host: %v (%v)", ids(even), err)
	}
}

func openContracts(t *testing.T, s store.Store, k *Kit) {
	under := func(contract, key string) func(*Claim) {
		return func(c *Claim) { c.Action.Contract, c.Action.Digests.KeyID = contract, key }
	}
	k.Make(t, s, under("c1", "k1"), action.T3, action.T11, action.T12)
	k.Make(t, s, under("c2", "k1"), action.T3, action.T11, action.T16)
	k.Make(t, s, under("c2", "k2"))
	k.Make(t, s, under("c3", "k3"), action.T5)
	k.Make(t, s, func(c *Claim) { c.Intent.Tool, c.Action.Tool = "other", "other"; under("c4", "k4")(c) })
	again := k.Make(t, s, under("c5", "k5"), action.T3, action.T11, action.T15)
	ctx := context.Background()
	check := func(wantContracts, wantKeys []string) {
		t.Helper()
		if got, err := s.OpenContracts(ctx, "deploy_release"); err != nil || !slices.Equal(got, wantContracts) {
			t.Errorf("open contracts %v (%v), want %v", got, err, wantContracts)
		}
		if got, err := s.OpenKeys(ctx); err != nil || !slices.Equal(got, wantKeys) {
			t.Errorf("open keys %v (%v), want %v", got, err, wantKeys)
		}
	}
	check([]string{"c2"}, []string{"k1", "k2", "k4"})
	if err := s.Commit(ctx, func(tx store.Tx) error { return k.Bring(tx, again.ID, action.T22) }); err != nil {
		t.Fatal(err)
	}
	check([]string{"c2", "c5"}, []string{"k1", "k2", "k4", "k5"})
}
