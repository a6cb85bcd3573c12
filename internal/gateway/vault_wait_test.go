package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

// vaultFree is a tool that needs no credential.
const vaultFree = `---
tool: get_plain
description: A read without a credential.
input: {type: object, properties: {n: {type: integer, default: 1}}}
http: {method: GET, url: "PROVIDER/v1/echo{?n}", private: [127.0.0.0/8]}
on_lost_response: {class: read_only, evidence: the provider of these tests}
done_when: ${status == 200}
`

// UN-30, 4.4: what is unknown when the vault is locked waits visibly, is found by its own call as what it is, and goes on by
// itself when the vault is opened. Nothing is asked or sent before.
func TestWhatIsUnknownWaitsForTheVault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contracts, tool, args string
		posts, gets           int
	}{
		"sent again": {"", "charge", unknownCharge, 2, 0},
		"asked":      {askable("review_after: 1h", askFound+", "+askUnsure), "pay", askCharge, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{Contracts: c.contracts})
			unknownSend(r, c.tool, c.args)
			r.CrashWith(func() { r.Break(); r.Vault.Lock() })
			stop := scheduled(t, r)
			id := r.Only().ID
			eventually(t, r, id, func(a action.Action) bool { return a.Reason == "vault_locked" })
			time.Sleep(120 * time.Millisecond) // two turns of the schedule
			for range 2 {
				a := r.Call(c.tool, c.args).Key("run", 1, "toolu_1").Do()
				s := a.Status()
				if s.ActionID != id || s.State != action.Unknown || s.Recovery != action.Reconciling || s.Reason != "vault_locked" || s.Code != action.CodeOutcomeUnknown || !strings.Contains(s.Message, "locked") {
					t.Errorf("the caller is told %+v", s)
				}
			}
			if r.Requests() != 1 {
				t.Errorf("%d requests while the vault was locked, want the first one alone", r.Requests())
			}
			if n := strings.Count(r.Export(), `"event":"action.recovery"`); n != 1 {
				t.Errorf("that it waits is recorded %d times", n)
			}
			r.Vault.Unlock()
			a := eventually(t, r, id, inState(action.Completed))
			stop()
			if r.Effects() != 1 || sent(r, "POST") != c.posts || sent(r, "GET") != c.gets {
				t.Errorf("%d effects, %d sends, %d questions; want 1, %d, %d", r.Effects(), sent(r, "POST"), sent(r, "GET"), c.posts, c.gets)
			}
			if a.Reason == "vault_locked" {
				t.Errorf("it still says %s", a.Reason)
			}
		})
	}
}

// The vault is locked between two looks: what was unknown before waits from then on.
func TestAVaultThatIsLockedWhileDeedLooksStopsTheLooking(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Wait: 200 * time.Millisecond, Contracts: askable("review_after: 1h", askFound+", "+askUnsure)})
	r.Switch(provider.Switches{LookupLag: 500 * time.Millisecond, Faults: []provider.Fault{onPost(provider.CommitThenDrop)}})
	id := r.Call("pay", askCharge).Do().Action.ID
	eventually(t, r, id, func(a action.Action) bool { return a.Finding == action.Absent })
	r.Vault.Lock()
	scheduled(t, r)
	eventually(t, r, id, func(a action.Action) bool { return a.Reason == "vault_locked" })
	if sent(r, "GET") != 1 {
		t.Errorf("%d questions, want the one before the lock", sent(r, "GET"))
	}
	r.Vault.Unlock()
	eventually(t, r, id, inState(action.Completed))
	if r.Effects() != 1 || sent(r, "POST") != 1 {
		t.Errorf("%d effects of %d sends", r.Effects(), sent(r, "POST"))
	}
}

// UN-26: many actions that wait for the vault cost a live call nothing, are written about once each, and all come to their end
// when it is opened.
func TestManyThatWaitForTheVaultDisturbNobody(t *testing.T) {
	t.Parallel()
	const many = 200
	r := rig.New(t, rig.Options{Contracts: rig.Usual + vaultFree})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Method: "POST"})
	for i := range many {
		r.Call("charge", fmt.Sprintf(`{"amount":%d,"customer":"cus_%d"}`, i+1, i)).Go()
	}
	r.AwaitEffects(many)
	r.CrashWith(func() { r.Break(); r.Vault.Lock() })
	scheduled(t, r)
	count := func(q store.Query) int {
		q.Limit = many + 10
		all, err := r.Store.Actions(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	calm := time.Now()
	for n := range 20 {
		if a := r.Call("get_plain", fmt.Sprintf(`{"n":%d}`, n)).Do(); a.Action.State != action.Completed {
			t.Fatalf("a live call is %s (%s)", a.Action.State, a.Action.Reason)
		}
	}
	if took := time.Since(calm); took > 5*time.Second {
		t.Errorf("20 live calls took %s beside the waiting ones", took)
	}
	for deadline := time.Now().Add(20 * time.Second); strings.Count(r.Export(), `"reason":"vault_locked"`) < many; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d wait on record", strings.Count(r.Export(), `"reason":"vault_locked"`), many)
		}
	}
	time.Sleep(150 * time.Millisecond) // three turns
	if n := strings.Count(r.Export(), `"reason":"vault_locked"`); n != many {
		t.Errorf("that they wait is recorded %d times, want once each", n)
	}
	if got := count(store.Query{States: []action.State{action.Unknown}}); got != many || r.Effects() != many {
		t.Errorf("%d are unknown with %d effects", got, r.Effects())
	}
	r.Vault.Unlock()
	for deadline := time.Now().Add(30 * time.Second); count(store.Query{States: []action.State{action.Completed}, Tool: "charge"}) < many; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("they do not go on by themselves")
		}
	}
	if r.Effects() != many {
		t.Errorf("%d effects, want %d", r.Effects(), many)
	}
}
