package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store/sqlite"
)

const (
	interleavings      = 1000
	interleavingGroups = 8
)

// said is one journal body as this model reads it: by its own eyes, and with no code of the gateway's.
type said struct {
	Event   string `json:"event"`
	Time    string `json:"time"`
	Attempt string `json:"attempt_id"`
	Action  struct {
		Transition string `json:"transition"`
	} `json:"action"`
	Approval struct {
		ID      string `json:"approval_id"`
		Expires string `json:"expires_at"`
		Needed  int    `json:"needed"`
		Binding string `json:"binding_digest"`
	} `json:"approval"`
	Decision struct {
		ID       string `json:"approval_id"`
		Decision string `json:"decision"`
		Approver string `json:"approver"`
		Binding  string `json:"binding_digest"`
	} `json:"decision"`
	Void struct {
		ID string `json:"approval_id"`
	} `json:"void"`
	Binding struct {
		Digest string `json:"binding_digest"`
		Kind   string `json:"kind"`
	} `json:"binding"`
}

// permits says whether what is on record about an action lets this attempt be sent at this moment, in the words of the
// requirements: approved by as many as it needs, in time, not denied, not void, not revoked, for exactly this binding.
func permits(history []said, attempt, binding string) error {
	type request struct {
		expires, bound string
		needed         int
		yes            map[string]bool
		no, void       bool
	}
	requests := map[string]*request{}
	var newest *request
	allowed := ""
	planned := false
	for _, e := range history {
		switch {
		case e.Event == "approval.requested":
			newest = &request{expires: e.Approval.Expires, bound: e.Approval.Binding, needed: e.Approval.Needed, yes: map[string]bool{}}
			requests[e.Approval.ID] = newest
		case e.Event == "approval.decided" && e.Decision.Decision == "approve":
			if r := requests[e.Decision.ID]; e.Time < r.expires && e.Decision.Binding == r.bound { // times of one form sort as text
				r.yes[e.Decision.Approver] = true
			}
		case e.Event == "approval.decided":
			requests[e.Decision.ID].no = true
		case e.Event == "approval.void":
			requests[e.Void.ID].void = true // at any time: nothing is sent after a void, planned or not
		case e.Event == "action.revoked" && !planned:
			return errors.New("it was revoked before it was planned")
		case e.Event == "action.rejected":
			return errors.New("it was rejected")
		case e.Event == "action.authorized" && e.Binding.Digest != "":
			allowed = e.Binding.Digest
		case e.Event == "action.dispatched" && e.Attempt == attempt:
			planned = true
			if newest == nil || e.Time >= newest.expires {
				return errors.New("it was planned on an approval that was over")
			}
		}
	}
	switch {
	case !planned:
		return errors.New("nothing is planned")
	case newest == nil || newest.no || newest.void:
		return fmt.Errorf("what was asked last is denied or void: %+v", newest)
	case len(newest.yes) < newest.needed:
		return fmt.Errorf("%d of %d have approved it", len(newest.yes), newest.needed)
	case newest.bound != binding || allowed != binding:
		return errors.New("something else was approved")
	}
	return nil
}

// scene is one gateway or two on one store, with a target that notes what it is sent.
type scene struct {
	*testing.T
	store    *sqlite.Store
	gateways [2]*gateway.Gateway
	policy   rig.Policy
	locked   atomic.Bool
	ahead    atomic.Int64 // of the wall clock

	mu    sync.Mutex
	sent  map[action.ID]int
	tried map[action.AttemptID]bool
	rnd   *rand.Rand
}

func (s *scene) now() time.Time                        { return time.Now().Add(time.Duration(s.ahead.Load())) }
func (s *scene) Locked() bool                          { return s.locked.Load() }
func (s *scene) Refresh(context.Context, string) error { return nil }
func (s *scene) n(below int) int                       { s.mu.Lock(); defer s.mu.Unlock(); return s.rnd.IntN(below) }
func (s *scene) pause()                                { time.Sleep(time.Duration(s.n(1500)) * time.Microsecond) }
func (s *scene) any() *gateway.Gateway                 { return s.gateways[s.n(2)] }
func (s *scene) history(id action.ID) (all []said) {
	bodies, err := s.store.EventsOf(context.Background(), id)
	if err != nil {
		s.Errorf("read the journal: %v", err)
	}
	for _, b := range bodies {
		var e said
		if err := json.Unmarshal(b, &e); err != nil {
			s.Error(err)
		}
		all = append(all, e)
	}
	return all
}

// Perform is the target. What reaches it has to be permitted by what is on record at that moment.
func (s *scene) Perform(_ context.Context, d action.Dispatch) action.Outcome {
	s.pause()
	if s.locked.Load() { // as an executor finds it when it opens the credential
		return action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: "vault_locked"}
	}
	if err := permits(s.history(d.Action), string(d.Attempt), d.Binding); err != nil {
		s.Errorf("%s was sent, and %v", d.Action, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried[d.Attempt] {
		s.Errorf("%s was sent twice as one attempt", d.Action)
	}
	s.tried[d.Attempt] = true
	if s.rnd.IntN(4) == 0 {
		return action.Outcome{State: action.AttemptRefused, Certainty: action.NoEffectProven, Retry: true, Status: 429, BytesSent: 1, Reason: "later",
			RetryAfter: time.Duration(s.rnd.IntN(2)) * time.Hour}
	}
	s.sent[d.Action]++
	return action.Outcome{State: action.AttemptCompleted, Certainty: action.EffectProven, Status: 201, BytesSent: 1}
}

func newScene(t *testing.T, dir string, contracts *contract.Set, keys *digest.Keys, seed uint64) *scene {
	s := &scene{T: t, sent: map[action.ID]int{}, tried: map[action.AttemptID]bool{}, rnd: rand.New(rand.NewPCG(seed, 14))}
	var err error
	s.store, err = sqlite.Open(context.Background(), dir, sqlite.Options{Origin: "test/approvals", Now: s.now, TestOnlyNoSync: true})
	must(t, err)
	for i := range s.gateways {
		s.gateways[i] = gateway.New(gateway.Options{
			Store: s.store, Contracts: contracts, Keys: keys, Vault: s, Wait: 5 * time.Millisecond, Every: time.Millisecond, Lease: 10_000 * time.Hour,
			Executors: map[string]gateway.Executor{"http": s}, Log: slog.New(slog.DiscardHandler), Approvers: &s.policy,
		})
	}
	return s
}

// AP-01, AP-10, AP-17, AP-22, VA-10: approvals, denials, revocations, locks, expiries, cancels and retries come in any order and
// at once, at two gateways. Whatever reaches the target was permitted by what was on record in that moment, and no action has
// two effects.
func TestNothingIsSentAfterAVoid(t *testing.T) {
	t.Parallel()
	all, err := contract.Parse("model.yaml", []byte(strings.NewReplacer("PROXY", "http://127.0.0.1:9", "TIMEOUT", "5s").Replace(
		approvalTools("approval: {expires: 10m}"))))
	must(t, err)
	contracts, err := contract.NewSet(all...)
	must(t, err)
	keys, err := digest.OpenKeys(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("DEED_TEST_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("DEED_TEST_SEED=%d", seed)
	var mu sync.Mutex
	ends, sends := map[string]int{}, 0
	var groups sync.WaitGroup
	for i := range interleavingGroups {
		groups.Go(func() {
			s := newScene(t, filepath.Join(t.TempDir(), "state"), contracts, keys, seed+uint64(i))
			defer s.close()
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			go s.gateways[0].Run(ctx)
			for n := range interleavings / interleavingGroups {
				act := s.play(n)
				mu.Lock()
				ends[string(act.State)+" "+string(act.RejectReason)]++
				sends += s.sent[act.ID]
				mu.Unlock()
				if t.Failed() {
					return
				}
			}
		})
	}
	groups.Wait()
	t.Logf("%d interleavings, %d effects; they ended %v", interleavings, sends, ends)
	for _, end := range []string{"completed ", "rejected denied", "rejected revoked", "rejected expired"} {
		if !t.Failed() && ends[end] == 0 {
			t.Errorf("none ended %q, so nothing was shown of it", end)
		}
	}
}

func (s *scene) close() {
	for _, g := range s.gateways {
		if err := g.Close(context.Background()); err != nil {
			s.Error(err)
		}
	}
	if err := s.store.Close(); err != nil {
		s.Error(err)
	}
}

// play lets everything happen to one action at once.
func (s *scene) play(n int) action.Action {
	s.locked.Store(false)
	agent := rig.Agent("agent", 1000)
	call := func(ctx context.Context) {
		_, _ = s.gateways[0].Submit(ctx, action.Call{
			Tool: "charge", Arguments: fmt.Appendf(nil, `{"amount":%d,"customer":"c"}`, n+1), Actor: agent, At: time.Now(),
			Caller: action.CallerKey{Run: fmt.Sprintf("t%d", n), Step: 1, ToolCallID: "a", Source: "test"},
		})
	}
	call(context.Background())
	var id action.ID
	var run action.RunID
	for _, p := range s.pending() {
		id, run = p.Action, p.Run // the last: it expires last
	}
	if id == "" {
		s.Error("nobody is asked")
		return action.Action{}
	}
	things := []func(){
		func() { s.decide(id, rig.Ada, action.Approve) },
		func() { s.decide(id, rig.Ada, action.Approve) },
		func() { s.decide(id, rig.Bob, action.Approve) },
		func() {
			if s.n(3) == 0 {
				s.decide(id, rig.Bob, action.Deny)
			}
		},
		func() {
			asked := []action.RevokeAsked{{Action: id, Why: "x"}, {Run: run, Why: "x"}}[s.n(2)]
			if s.n(3) == 0 {
				_, _ = s.any().Revoke(context.Background(), rig.Operator(), asked)
			}
		},
		func() {
			if s.n(3) == 0 {
				s.ahead.Add(int64(time.Duration(s.n(12)) * time.Minute))
			}
		},
		func() {
			if s.n(3) == 0 {
				s.locked.Store(true)
				s.pause()
				s.locked.Store(false)
			}
		},
		func() { call(context.Background()) },
		func() {
			ctx, end := context.WithCancelCause(context.Background())
			go func() { s.pause(); end([]error{gateway.ErrCancelled, context.Canceled}[s.n(2)]) }()
			call(ctx)
		},
	}
	var wg sync.WaitGroup
	for _, thing := range things {
		wg.Go(func() { s.pause(); thing() })
	}
	wg.Wait()
	if s.n(4) == 0 { // nobody decides any more
		s.ahead.Add(int64(11 * time.Minute))
		call(context.Background())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[id] > 1 {
		s.Errorf("%s had %d effects: %+v", id, s.sent[id], s.history(id))
	}
	act, err := s.store.Action(context.Background(), id)
	if err != nil {
		s.Error(err)
	}
	return act
}

func (s *scene) pending() []action.Approval {
	all, err := s.gateways[0].Pending(context.Background())
	if err != nil {
		s.Error(err)
	}
	return all
}

// decide lets an approver decide about whatever is asked of the action now, or what was asked before.
func (s *scene) decide(id action.ID, who string, d action.ApprovalDecision) {
	for range 1 + s.n(2) {
		for _, p := range s.pending() {
			if p.Action == id {
				s.pause()
				_, _ = s.any().Decide(context.Background(), rig.Operator(), rig.Signed(p, who, d))
			}
		}
		s.pause()
	}
}
