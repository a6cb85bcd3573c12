package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// Random faults of every kind on both sides of the target, with a fixed seed and each call made again: what the agent is
// told never disagrees with the target's own ledger. Completed means one effect, failed and rejected mean none, and nothing
// has two.
func TestRandomFaultsNeverMakeTheRecordDisagreeWithTheLedger(t *testing.T) {
	t.Parallel()
	const intents = 90
	r := rig.New(t, rig.Options{Timeout: "300ms"})
	random := rand.New(rand.NewPCG(20261130, 1))
	faults := []func() (provider.Fault, chaos.Plan){
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.CommitThenDrop}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) { return provider.Fault{Kind: provider.DropAfterRead}, chaos.Plan{} },
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.ResetBeforeRead}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.CommitThenHang}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) { return provider.Fault{Kind: provider.TruncateBody}, chaos.Plan{} },
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.CommitThenStatus, Status: 500}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "0"}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{Kind: provider.AnswerStatus, Status: 400}, chaos.Plan{}
		},
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{}, chaos.Plan{Mode: chaos.CutRequest, Bytes: int64(random.IntN(600)), Connections: 1}
		},
		func() (provider.Fault, chaos.Plan) {
			return provider.Fault{}, chaos.Plan{Mode: chaos.CutResponse, Bytes: int64(random.IntN(300)), Connections: 1}
		},
		func() (provider.Fault, chaos.Plan) { return provider.Fault{}, chaos.Plan{Mode: chaos.Refuse} },
	}
	told := map[string]action.Action{}
	for i := range intents {
		customer, tool := fmt.Sprint("cus_", i), "charge"
		args := fmt.Sprintf(`{"amount":1,"customer":%q}`, customer)
		if i%3 == 0 {
			tool, args = "send_email", fmt.Sprintf(`{"to":%q}`, customer)
		}
		fault, plan := faults[random.IntN(len(faults))]()
		if fault.Kind != "" {
			fault.Times = 1 + random.IntN(3)
			r.Break(fault)
		}
		r.Cut(plan)
		for range 1 + random.IntN(3) {
			call := r.Call(tool, args).Run("soak")
			if random.IntN(2) == 0 {
				call.Key("soak", int64(i), "toolu")
			}
			if a, err := call.Try(); err == nil && !a.Held {
				told[customer] = a.Action
			}
		}
		r.Break()
		r.Cut(chaos.Plan{})
	}
	for deadline := time.Now().Add(10 * time.Second); ; { // what hung at the provider commits or not before it is counted
		if busy := r.Provider.Switches(); len(busy.Faults) == 0 || time.Now().After(deadline) {
			break
		}
	}
	effects := map[string]int{}
	for _, row := range r.Provider.Effects() {
		var charge struct{ Customer string }
		if err := json.Unmarshal(row.Body, &charge); err != nil {
			t.Fatal(err)
		}
		_, object, _ := strings.Cut(row.Op, "/v1/objects/")
		effects[charge.Customer+object]++
	}
	states := map[action.State]int{}
	for customer, a := range told {
		now := r.Stored(a.ID)
		states[now.State]++
		n := effects[customer]
		switch s := now.State; {
		case n > 1:
			t.Errorf("%s: %d effects, the record says %s (%s)", customer, n, s, now.Reason)
		case s == action.Completed && n != 1, (s == action.Failed || s == action.Rejected) && n != 0:
			t.Errorf("%s: %d effects, and the record says %s (%s)", customer, n, s, now.Reason)
		case s == action.Dispatched || s == action.Accepted:
			t.Errorf("%s was left %s", customer, s)
		}
	}
	if states[action.Completed] < intents/4 || states[action.Unknown] == 0 || states[action.Failed] == 0 {
		t.Errorf("the faults were too one-sided to prove anything: %v", states)
	}
	t.Logf("%d intents: %v, no disagreement (with n = %d, a rate below 3/n is not excluded)", len(told), states, len(told))
}
