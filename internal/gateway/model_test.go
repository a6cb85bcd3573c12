package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
)

// A history is one store, the gateways that ran on it and the model that follows it.
type history struct {
	*rapid.T
	dir       string
	contracts *contract.Set
	keys      *digest.Keys
	store     *sqlite.Store
	gateway   *gateway.Gateway
	node      *node
	world     *world
	model     *model
	hashes    map[action.ID][]string
	steps     []string
}

// ST-17, ST-24, UN-17 to UN-20, RM-10: random histories of calls, faults, crashes, clocks, look-ups and reviewers, followed by
// a model that knows the requirements and the target's own ledger, and nothing of the code.
func TestHistoriesKeepToTheModel(t *testing.T) {
	t.Parallel()
	all, err := contract.Parse("model.yaml", []byte(modelContracts()))
	if err != nil {
		t.Fatal(err)
	}
	contracts, err := contract.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := digest.OpenKeys(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty") // a new store, copied for each history: making one costs more than a history
	s, err := sqlite.Open(t.Context(), empty, sqlite.Options{Origin: "test/model", TestOnlyNoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n, moves, ends := 0, map[string]int{}, map[string]int{}
	var groups sync.WaitGroup
	for i := range modelGroups { // more than there are processors: most of the time a gateway waits before it tries again
		groups.Go(func() {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					h := newHistory(rt, empty, contracts, keys)
					defer h.end()
					h.play()
					h.quiet()
					mu.Lock()
					defer mu.Unlock()
					n++
					for move, times := range h.model.moves {
						moves[move] += times
					}
					for _, k := range h.model.all {
						ends[string(k.state)+" "+k.recovery+k.class]++
					}
				})
			})
		})
	}
	groups.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d histories without a fault: at most %.2g of such histories have one (3/n, 95 %%)", n, 3/float64(n))
	t.Logf("moves %v", moves)
	t.Logf("ends %v", ends)
	for _, move := range []string{"T3", "T5", "T11", "T12", "T13", "T14", "T15", "T16", "T17", "T18", "T19", "T20", "T21", "T22"} {
		if modelCovers && moves[move] == 0 {
			t.Errorf("no history had a %s, so nothing was shown of it", move)
		}
	}
}

func newHistory(t *rapid.T, empty string, contracts *contract.Set, keys *digest.Keys) *history {
	dir, err := os.MkdirTemp("", "deed-model-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "state"), os.DirFS(empty)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "state", sqlite.KeysName), 0o600); err != nil { // the copy is for others too
		t.Fatal(err)
	}
	h := &history{T: t, dir: dir, contracts: contracts, keys: keys, world: newWorld(), hashes: map[action.ID][]string{}}
	h.model = &model{world: h.world, wrong: h.wrong, keys: map[string]*known{}, moves: map[string]int{}}
	h.open()
	h.start()
	return h
}

func (h *history) must(err error) {
	if err != nil {
		h.wrong("%v", err)
	}
}

func (h *history) wrong(format string, args ...any) {
	h.Helper()
	for _, step := range h.steps {
		h.Log(step)
	}
	h.Log("at the target: ", strings.Join(h.world.log, "; "))
	h.Log("on record: ", h.model.log)
	h.Fatalf(format, args...)
}

func (h *history) open() {
	s, err := sqlite.Open(context.Background(), filepath.Join(h.dir, "state"), sqlite.Options{Origin: "test/model", Now: h.world.wall, TestOnlyNoSync: true})
	h.must(err)
	h.store = s
}

// start lets a gateway begin, without taking anything up.
func (h *history) start() {
	h.node = &node{Store: h.store, world: h.world}
	h.gateway = gateway.New(gateway.Options{
		Store: h.node, Contracts: h.contracts, Keys: h.keys, Vault: h.world, Wait: time.Minute, Lease: modelLease,
		Executors: map[string]gateway.Executor{"http": h.node}, Log: slog.New(slog.DiscardHandler),
	})
}

// stop ends the gateway: dead, nothing of what it still does is on record.
func (h *history) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	if h.node.gone() {
		cancel()
	}
	_ = h.gateway.Close(ctx)
	cancel()
}

func (h *history) end() {
	h.stop()
	_ = h.store.Close()
	_ = os.RemoveAll(h.dir)
}

func (h *history) settled() {
	h.must(h.store.Commit(context.Background(), func(store.Tx) error { return nil }))
}

// follow lets the model read what has come to the journal.
func (h *history) follow(by asking) {
	h.settled()
	h.must(h.store.Records(context.Background(), h.model.next, func(seq int64, hash [32]byte, body []byte) error {
		var e rig.Event
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		if id := action.ID(e.Text("action_id")); id != "" && e.Text("edge_type") == "external_action" {
			h.hashes[id] = append(h.hashes[id], fmt.Sprintf("%x", hash))
		}
		h.model.next = seq + 1
		h.model.follow(e, by)
		return nil
	}))
	h.model.bounded()
}

func (h *history) step(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func draw[V any](t *rapid.T, name string, from ...V) V { return rapid.SampledFrom(from).Draw(t, name) }

func (h *history) play() {
	steps := rapid.IntRange(4, 16).Draw(h.T, "steps")
	for range steps {
		switch draw(h.T, "step", "call", "call", "call", "call", "call", "turn", "turn", "restart", "look", "review", "review", "vault", "clock", "clock", "skew", "late", "delivered") {
		case "call":
			h.call()
		case "turn":
			h.fates()
			h.turn()
		case "restart":
			h.restart(draw(h.T, "how", "in order", "killed", "killed, and the leases stand"))
		case "look":
			h.world.look = draw(h.T, "look", lookOn, lookOff, lookLags, lookAlike)
			h.step("look-ups are %s", h.world.look)
		case "review":
			h.review()
		case "vault":
			h.world.locked = !h.world.locked
			h.step("the vault is locked: %t", h.world.locked)
		case "clock":
			d := draw(h.T, "time", 2*time.Second, 10*time.Second, time.Minute, 20*time.Minute, 2*time.Hour, 22*time.Hour, 24*time.Hour+30*time.Minute, 25*time.Hour)
			h.world.pass(d)
			h.step("%s pass", d)
		case "skew":
			if h.world.skew > -modelSkew { // never forward: that cannot be told from time which has passed
				h.world.skew -= time.Hour
			}
			h.step("the clock is wrong by %s", h.world.skew)
		case "late":
			h.late()
		case "delivered":
			h.delivered()
		}
		if h.node.gone() {
			h.step("the gateway is dead")
			h.follow(asking{})
			h.restart(draw(h.T, "how", "killed", "killed, and the leases stand"))
		}
	}
}

// fates draws what becomes of the sends of a step.
func (h *history) fates() []string {
	fates := rapid.SliceOfN(rapid.SampledFrom(modelFates), 0, 3).Draw(h.T, "fates")
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	h.world.fates = slices.Clone(fates)
	return fates
}

func (h *history) call() {
	q := asking{
		run: draw(h.T, "run", "one", "two"), tool: draw(h.T, "tool", "read", "mail", "keyed", "keyed", "asked", "asked", "guessed"),
		customer: draw(h.T, "customer", "ann", "ann", "bob"), key: draw(h.T, "key", "", "", "k1", "k2", "k3"),
	}
	f := h.model.forecast(q)
	fates := h.fates()
	h.node.in = draw(h.T, "dies in commit", 0, 0, 0, 0, 0, 1, 2, 3)
	h.node.kept = draw(h.T, "kept", false, true)
	many := draw(h.T, "side by side", 1, 1, 1, 3)
	h.step("%d call %+v, %v; dies in commit %d (%t); forecast %s", many, q, fates, h.node.in, h.node.kept, f)
	call := action.Call{
		Tool: q.tool, Arguments: []byte(`{"customer":"` + q.customer + `"}`), Actor: rig.Agent("agent", 4711), At: time.Now(),
		Caller:   action.CallerKey{Run: q.run, Step: 1, ToolCallID: q.key, Source: "dev.deed/tool_call_id"},
		Protocol: action.Correlation{Transport: "mcp-stdio", RequestID: "1", Session: action.NoSession},
		Upstream: action.Upstream{Source: action.UpstreamNone},
	}
	answers, errs := make([]action.Answer, many), make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() { answers[i], errs[i] = h.gateway.Submit(context.Background(), call) })
	}
	wg.Wait()
	h.node.mu.Lock()
	h.node.in = 0
	h.node.mu.Unlock()
	h.follow(q)
	if h.node.gone() { // nobody is there to be told
		return
	}
	for i := range answers {
		h.step("  told %s, %s %s, %v", answers[i].Action.ID, answers[i].Action.State, answers[i].Code, errs[i])
	}
	if many == 1 {
		h.model.answered(f, answers[0], errs[0])
		return
	}
	var one action.ID // who of them is the first is nobody's business, but all belong to one action, unless it had no effect
	for i, a := range answers {
		if errs[i] != nil || a.Held || q.tool == "read" || a.Action.State == action.Failed || a.Action.State == action.Rejected {
			continue
		}
		if one == "" {
			one = a.Action.ID
		}
		if a.Action.ID != one {
			h.wrong("equal calls side by side belong to %s and %s", one, a.Action.ID)
		}
	}
}

// turn lets the gateway take up by itself what is due.
func (h *history) turn() {
	err := h.gateway.ModelTakeUp(context.Background())
	h.step("a turn")
	h.follow(asking{})
	if !h.node.gone() {
		h.must(err)
	}
}

func (h *history) restart(how string) {
	h.step("restart, %s", how)
	if how != "in order" {
		h.node.die()
	}
	h.stop()
	h.follow(asking{})
	h.world.late = nil // they went to the process that is gone
	if how != "killed, and the leases stand" {
		h.must(h.store.Close())
		h.open()
	}
	h.start()
	h.world.fates = nil
	h.turn()
}

func (h *history) late() {
	h.world.mu.Lock()
	all := h.world.late
	h.world.late = nil
	h.world.mu.Unlock()
	if len(all) == 0 {
		return
	}
	h.step("%d answers come late", len(all))
	var wg sync.WaitGroup
	for _, answer := range all {
		wg.Go(answer)
	}
	wg.Wait()
	h.follow(asking{})
}

func (h *history) delivered() {
	if len(h.model.all) == 0 {
		return
	}
	k := draw(h.T, "action", h.model.all...)
	to := draw(h.T, "delivery", action.DeliveryUnconfirmed, action.Delivered, action.DeliveryInterrupted)
	h.step("%s is %s", k.id, to)
	h.gateway.Delivered(k.id, to, "acknowledged")
	h.follow(asking{})
}

// review lets a person decide, about what there is or about what there was.
func (h *history) review() {
	var open []*known
	for _, k := range h.model.all {
		if k.state == action.Unknown {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		open = h.model.all
	}
	if len(open) == 0 {
		return
	}
	k := draw(h.T, "reviewed", open...)
	decision := draw(h.T, "decision", action.Happened, action.DidNot, action.Redo, action.Abandon)
	hashes := h.hashes[k.id]
	seen := hashes[rapid.IntRange(max(0, len(hashes)-2), len(hashes)-1).Draw(h.T, "seen")]
	fates := h.fates()
	was, attempt := k.state, k.attempt
	refused := was != action.Unknown || k.abandoned || seen != hashes[len(hashes)-1]
	h.step("a person says %s of %s, with %v", decision, k.id, fates)
	_, err := h.gateway.Review(context.Background(), rig.Agent("reviewer", 1), action.ReviewAsked{
		Action: k.id, Decision: decision, Why: "w", Evidence: "e", Seen: seen,
	})
	h.follow(asking{})
	switch {
	case h.node.gone():
	case refused && err == nil:
		h.wrong("a decision was taken about %s, which is %s, by a person who had not seen that", k.id, was)
	case err != nil && (k.state != was || k.attempt != attempt):
		h.wrong("a refused decision moved %s from %s to %s", k.id, was, k.state)
	case err == nil && k.abandoned != (decision == action.Abandon):
		h.wrong("after %s %s is closed: %t", decision, k.id, k.abandoned)
	}
}

// quiet ends all faults. What can be found out has to be, then.
func (h *history) quiet() {
	h.step("the quiet end")
	h.world.look, h.world.locked, h.world.fates = lookOn, false, nil
	for h.world.pass(2*modelLease + modelSkew); h.model.behind(); { // a clock set back makes a dead owner's lease that much longer
		h.world.pass(time.Hour)
	}
	h.late()
	for range 12 {
		h.turn()
		h.world.pass(10 * time.Minute)
	}
	for _, k := range h.model.all {
		act, err := h.store.Action(context.Background(), k.id)
		h.must(err)
		if act.State != k.state || act.Attempt != k.attempt || string(act.Delivery) != k.delivery {
			h.wrong("%s is %s after %d sends (%s) on record, and %s after %d (%s) by the journal", k.id, act.State, act.Attempt, act.Delivery, k.state, k.attempt, k.delivery)
		}
		if k.state == action.Dispatched || k.state == action.Unknown && k.recovery == string(action.Reconciling) {
			h.wrong("%s of %s is %s %s for ever", k.id, k.tool, k.state, k.recovery)
		}
		if k.byPerson || k.tool == "read" {
			continue
		}
		effects := h.world.effects(k.id, k.attempt)
		switch {
		case k.state == action.Completed && effects == 0:
			h.wrong("lost: %s completed, and the target has no effect", k.id)
		case (k.state == action.Failed || k.state == action.Rejected || k.state == action.Authorized) && effects > 0:
			h.wrong("false failure: %s is %s with %d effects", k.id, k.state, effects)
		}
	}
	h.rebuilt()
}

// rebuilt makes the rows again from the journal: they have to be the same.
func (h *history) rebuilt() {
	before := h.rows()
	h.must(h.store.Rebuild(context.Background()))
	if after := h.rows(); !reflect.DeepEqual(before, after) {
		h.wrong("rows before and after a rebuild:\n%+v\n%+v", before, after)
	}
}

func (h *history) rows() []any {
	ctx := context.Background()
	all, err := h.store.Actions(ctx, store.Query{Limit: 1000})
	h.must(err)
	var rows []any
	for _, act := range all {
		attempts, err := h.store.Attempts(ctx, act.ID)
		observations, err2 := h.store.Observations(ctx, act.ID)
		h.must(errors.Join(err, err2))
		rows = append(rows, act, attempts, observations)
	}
	return rows
}
