package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

const (
	ownersLease   = 400 * time.Millisecond
	ownersInvoice = `{"amount":5}`
	ownersSend    = "payload of the operation" // the recorded bytes are read, then the lease is looked at, then they are sent
)

// ownersTools are the usual tools and one whose target can be asked and answers for absence.
var ownersTools = rig.Usual + "---" + strings.Replace(unknownQueryable, "authoritative: false", "authoritative: true\n  settle: 300ms", 1)

func ownersArgs(tool string) string {
	return map[string]string{"charge": unknownCharge, "send_email": unknownMail, "pay_invoice": ownersInvoice}[tool]
}

// A valve is the store of a gateway whose process can be stopped, as by SIGSTOP: from then on it neither reads nor writes.
type valve struct {
	store.Store
	mu   sync.Mutex
	at   string        // stop at the next step of this name
	shut chan struct{} // closed when it goes on; nil while it runs
	hit  chan struct{}
}

func (v *valve) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = make(chan struct{})
}

// stopAt stops before the next step of a name. The channel tells that it was reached.
func (v *valve) stopAt(step string) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.hit = step, make(chan struct{})
	return v.hit
}

func (v *valve) goOn() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut != nil {
		close(v.shut)
	}
	v.shut, v.at = nil, ""
}

func (v *valve) pass(step string) {
	v.mu.Lock()
	if v.at == step && v.shut == nil {
		v.at, v.shut = "", make(chan struct{})
		close(v.hit)
	}
	shut := v.shut
	v.mu.Unlock()
	if shut == nil {
		return
	}
	<-shut
	if step == ownersSend { // the lease is renewed first: that gives nothing back which was taken over meanwhile
		time.Sleep(ownersLease / 2)
	}
}

func (v *valve) Commit(ctx context.Context, change func(store.Tx) error) error {
	v.pass("commit")
	err := v.Store.Commit(ctx, change)
	v.pass("committed")
	return err
}

func (v *valve) Later(change func(store.Tx) error) error {
	v.pass("later")
	return v.Store.Later(change)
}

func (v *valve) Action(ctx context.Context, id action.ID) (action.Action, error) {
	v.pass("action")
	return v.Store.Action(ctx, id)
}

func (v *valve) Due(ctx context.Context, q store.Due) ([]action.ID, error) {
	v.pass("due")
	return v.Store.Due(ctx, q)
}

func (v *valve) Actions(ctx context.Context, q store.Query) ([]action.Action, error) {
	v.pass("actions")
	return v.Store.Actions(ctx, q)
}

func (v *valve) Payload(ctx context.Context, kind store.PayloadKind, owner string) ([]byte, error) {
	v.pass("payload of the " + string(kind))
	return v.Store.Payload(ctx, kind, owner)
}

// A turnstile is an executor that lets a test in before a send and after its answer.
type turnstile struct {
	gateway.Executor
	before, after func()
}

func (x *turnstile) Perform(ctx context.Context, d action.Dispatch) action.Outcome {
	if x.before != nil {
		x.before()
	}
	o := x.Executor.Perform(ctx, d)
	if x.after != nil {
		x.after()
	}
	return o
}

// owners is a rig whose own gateway can be stopped, and another one on the same records that is not.
type owners struct {
	*rig.Rig
	valve  *valve
	door   *turnstile
	second *gateway.Gateway
}

func newOwners(t *testing.T, o rig.Options) *owners {
	t.Helper()
	w := &owners{valve: &valve{}, door: &turnstile{}}
	if o.Lease == 0 {
		o.Lease = ownersLease
	}
	if o.Timeout == "" {
		o.Timeout = "1s"
	}
	if o.Contracts == "" {
		o.Contracts = ownersTools
	}
	o.Parts = func(p *gateway.Options) {
		w.valve.Store, w.door.Executor = p.Store, p.Executors["http"]
		p.Store, p.Executors = w.valve, map[string]gateway.Executor{"http": w.door}
	}
	w.Rig = rig.New(t, o)
	w.second = w.Second()
	t.Cleanup(w.valve.goOn)
	return w
}

// run lets the second gateway work by itself until the test ends.
func (w *owners) run(t *testing.T) {
	t.Helper()
	if _, err := w.second.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.second.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// await waits until the action is as wanted, on record.
func (w *owners) await(t *testing.T, id action.ID, what string, is func(action.Action) bool) action.Action {
	t.Helper()
	reader := w.Reader()
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		act, err := reader.Action(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if is(act) {
			return act
		}
		if time.Now().After(until) {
			t.Fatalf("%s is %s (%s, %s) and never %s", id, act.State, act.Recovery, act.Reason, what)
		}
	}
}

// sends counts the requests at the provider that could have an effect.
func (w *owners) sends() (n int) {
	for _, q := range w.Provider.Requests() {
		if q.Method != "GET" {
			n++
		}
	}
	return n
}

// stale lists what overtaken owners reported about an action.
func (w *owners) stale(id action.ID) (all []rig.Event) {
	for _, e := range w.EventsOf(id) {
		if e.Kind() == "action.observed" && strings.Contains(fmt.Sprint(e), string(action.ByStale)) {
			all = append(all, e)
		}
	}
	return all
}

func ownersTransitions(events []rig.Event) (all []string) {
	for _, e := range events {
		if m := e.Text("action.transition"); m != "" {
			all = append(all, m)
		}
	}
	return all
}

// ST-25, UN-18: an action whose owner lives is nobody else's, however long its target takes and whoever asks meanwhile.
func TestWhatALivingOwnerSendsIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"charge", "send_email", "pay_invoice", "get_echo"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := newOwners(t, rig.Options{})
			held, release := make(chan struct{}), make(chan struct{})
			w.door.before = func() { close(held); <-release }
			args := ownersArgs(tool)
			if tool == "get_echo" {
				args = `{}`
			}
			call := func() *rig.Call { return w.Call(tool, args).Key("run", 1, "toolu_1") }
			first := call().Go()
			<-held
			w.run(t)
			act := w.Only()
			for over := time.Now().Add(4 * ownersLease); time.Now().Before(over); time.Sleep(ownersLease / 4) {
				if _, err := w.second.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				a := call().At(w.second).Do()
				if a.Action.ID != act.ID || a.Action.State != action.Dispatched || a.Code != action.CodeInProgress || !a.Attached {
					t.Fatalf("the other gateway's caller is told %s, %s, %s", a.Action.ID, a.Action.State, a.Code)
				}
			}
			if w.Requests() != 0 {
				t.Errorf("the other gateway sent %d requests", w.Requests())
			}
			close(release)
			if a := first.Answer(); a.Action.State != action.Completed || a.Action.Attempt != 1 {
				t.Errorf("the owner's caller is told %s after %d attempts", a.Action.State, a.Action.Attempt)
			}
			if moves := ownersTransitions(w.EventsOf(act.ID)); !slices.Equal(moves, []string{"T3", "T11", "T12"}) || w.Requests() != 1 {
				t.Errorf("the moves are %v after %d requests", moves, w.Requests())
			}
		})
	}
}

// UN-18, ST-25: an owner that is stopped for longer than its lease is taken over, wherever it stood. What it goes on to do
// settles nothing and sends nothing, its report is kept, and the effects stay at one.
func TestAnOwnerThatWasStoppedIsOvertaken(t *testing.T) {
	t.Parallel()
	const planned, answered, completed, unknown = "planned", "answered", "recorded", "recorded as unknown"
	for _, place := range []string{planned, answered, completed, unknown} {
		for _, tool := range []string{"send_email", "charge", "pay_invoice"} {
			t.Run(place+"/"+tool, func(t *testing.T) {
				t.Parallel()
				w := newOwners(t, rig.Options{})
				stopped := w.stopWhen(place)
				first := w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").Go()
				<-stopped
				act := w.Only()
				w.run(t)

				want, sends := action.Completed, 1
				switch {
				case place == completed:
				case tool == "send_email":
					want = action.Unknown
					if place == planned {
						sends = 0
					}
				case tool == "charge" && place != planned:
					sends = 2
				}
				w.await(t, act.ID, string(want), func(a action.Action) bool { return a.State == want })
				if place == completed {
					again := w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").At(w.second).Do()
					if again.EffectMode != action.Replay || again.Action.ID != act.ID {
						t.Errorf("the other gateway's caller is told %s of %s", again.EffectMode, again.Action.ID)
					}
				}
				before := w.Stored(act.ID)
				w.valve.goOn()
				a := first.Answer()
				if a.Action.ID != act.ID || a.Action.State != want {
					t.Errorf("the overtaken owner tells its caller %s, want %s", a.Action.State, want)
				}
				time.Sleep(ownersLease / 2)
				after := w.Stored(act.ID)
				if after.State != want || after.Attempt != before.Attempt || after.Epoch != before.Epoch || after.Result != before.Result {
					t.Errorf("the overtaken owner moved it from %s (attempt %d, epoch %d) to %s (%d, %d)",
						before.State, before.Attempt, before.Epoch, after.State, after.Attempt, after.Epoch)
				}
				if want == action.Unknown && after.Recovery != action.ReviewRequired {
					t.Errorf("it waits for %s, want a person", after.Recovery)
				}
				if got := w.sends(); got != sends || w.Effects() != min(sends, 1) {
					t.Errorf("%d sends and %d effects, want %d and %d", got, w.Effects(), sends, min(sends, 1))
				}
				for _, token := range w.Tokens() {
					if token != string(act.ID) {
						t.Errorf("the target was given the key %s", token)
					}
				}
				stale := w.stale(act.ID)
				if want := place == planned || place == answered; (len(stale) == 1) != want || len(stale) > 1 {
					t.Fatalf("%d stale reports are on record: %v", len(stale), stale)
				}
				if place == answered && !strings.Contains(fmt.Sprint(stale[0]), "effect_proven") {
					t.Errorf("the stale report keeps nothing of what it proved: %v", stale[0])
				}
			})
		}
	}
}

// stopWhen arranges that the rig's own gateway is stopped at a place of its next action, and tells when it is.
func (w *owners) stopWhen(place string) <-chan struct{} {
	stopped := make(chan struct{})
	switch place {
	case "planned":
		return w.valve.stopAt(ownersSend)
	case "answered":
		w.door.after = func() { w.valve.stop(); close(stopped) }
	case "recorded as unknown":
		w.Break(unknownTimes(provider.CommitThenDrop, 1))
		fallthrough
	default:
		w.door.after = func() {
			hit := w.valve.stopAt("committed")
			go func() { <-hit; close(stopped) }()
		}
	}
	return stopped
}

// UN-18: stopped between the last look at the lease and the first byte, an owner cannot be held back by its own records.
// What cannot be proved is then never sent by another, and what can be sent again goes under the same key.
func TestASendThatIsLateBeyondItsLeaseHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]action.State{"send_email": action.Unknown, "charge": action.Completed} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := newOwners(t, rig.Options{})
			held, release := make(chan struct{}), make(chan struct{})
			w.door.before = func() { w.valve.stop(); close(held); <-release }
			first := w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").Go()
			<-held
			act := w.Only()
			w.run(t)
			w.await(t, act.ID, string(want), func(a action.Action) bool { return a.State == want })
			close(release)
			w.valve.goOn()
			if a := first.Answer(); a.Action.State != want {
				t.Errorf("the overtaken owner tells its caller %s, want %s", a.Action.State, want)
			}
			if w.Effects() != 1 || len(w.stale(act.ID)) != 1 || w.Stored(act.ID).State != want {
				t.Errorf("%d effects, %d stale reports, state %s", w.Effects(), len(w.stale(act.ID)), w.Stored(act.ID).State)
			}
		})
	}
}

// UN-17: of twenty callers at two gateways, and both gateways' own recovery, one sends.
func TestResumersAtTwoGatewaysSendOnce(t *testing.T) {
	t.Parallel()
	for tool, fault := range map[string]provider.Kind{"charge": provider.CommitThenDrop, "pay_invoice": provider.DropAfterRead} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := newOwners(t, rig.Options{Wait: 2 * time.Second})
			act := w.orphan(t, tool, fault)
			time.Sleep(1500 * time.Millisecond) // the lease is over, and so is the time to settle after the timeout
			asked := w.Requests()
			var wg sync.WaitGroup
			start := make(chan struct{})
			for _, g := range []*gateway.Gateway{w.Gateway, w.second} {
				wg.Go(func() {
					<-start
					if _, err := g.Recover(t.Context()); err != nil {
						t.Error(err)
					}
				})
				for range 10 {
					wg.Go(func() {
						<-start
						a, err := w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").At(g).Try()
						if err != nil || a.Action.ID != act.ID || !slices.Contains([]action.State{action.Completed, action.Dispatched, action.Unknown}, a.Action.State) {
							t.Errorf("a caller is told %s of %s, %v", a.Action.State, a.Action.ID, err)
						}
					})
				}
			}
			close(start)
			wg.Wait()
			w.run(t)
			got := w.await(t, act.ID, "completed", func(a action.Action) bool { return a.State == action.Completed })
			// On a slow machine a lease may be over between plan and send: that attempt is on record, and nothing left.
			if w.sends() != 2 || w.Effects() != 1 || got.Attempt < 2 || len(w.Actions()) != 1 {
				t.Errorf("%d sends, %d effects, %d attempts, %d actions; want 2, 1, 2, 1", w.sends(), w.Effects(), got.Attempt, len(w.Actions()))
			}
			if questions := w.Requests() - asked - 1; tool == "pay_invoice" && questions > 2 {
				t.Errorf("the target was asked %d times, want once at once and once when it has settled", questions)
			}
		})
	}
}

// orphan leaves an action behind whose owner was stopped for good while its answer was on its way.
func (w *owners) orphan(t *testing.T, tool string, fault provider.Kind) action.Action {
	t.Helper()
	zero := &valve{Store: w.Store}
	door := &turnstile{}
	stopped := make(chan struct{})
	g := w.Another(func(p *gateway.Options) {
		door.Executor = p.Executors["http"]
		door.after = func() { zero.stop(); close(stopped) }
		p.Store, p.Executors = zero, map[string]gateway.Executor{"http": door}
	})
	t.Cleanup(zero.goOn)
	w.Break(unknownTimes(fault, 1))
	w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").At(g).Go()
	<-stopped
	return w.Only()
}

// UN-17: one person's redo decided at two gateways at once is one more send.
func TestARedoAtTwoGatewaysIsOneSend(t *testing.T) {
	t.Parallel()
	w := newOwners(t, rig.Options{})
	act := w.orphan(t, "send_email", provider.DropAfterRead)
	time.Sleep(ownersLease + 100*time.Millisecond)
	if _, err := w.second.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await(t, act.ID, "in review", func(a action.Action) bool { return a.Recovery == action.ReviewRequired })
	time.Sleep(ownersLease + 100*time.Millisecond) // whoever found it leaves it alone by then
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 10 {
		g := []*gateway.Gateway{w.Gateway, w.second}[i%2]
		wg.Go(func() {
			<-start
			_, _ = g.Review(t.Context(), rig.Agent("reviewer", 9), action.ReviewAsked{Action: act.ID, Decision: action.Redo, Why: "it did not arrive"})
		})
	}
	close(start)
	wg.Wait()
	got := w.await(t, act.ID, "completed", func(a action.Action) bool { return a.State == action.Completed })
	if w.sends() != 2 || w.Effects() != 1 || got.Attempt != 2 {
		t.Errorf("%d sends, %d effects, %d attempts; want 2, 1, 2", w.sends(), w.Effects(), got.Attempt)
	}
}

// UN-13, UN-28: while the clock is behind the journal, no absence is proof and no resend is in time. When it has caught up,
// absence is proof again.
func TestAbsenceProvesNothingWhileTheClockIsBehind(t *testing.T) {
	t.Parallel()
	var clock rig.Clock
	w := newOwners(t, rig.Options{Now: clock.Now, Wait: time.Second, Lease: time.Minute})
	clock.Move(time.Hour)
	w.Call("get_echo", `{}`).Do() // the journal has seen the later hour
	clock.Move(-time.Hour)
	w.Break(unknownTimes(provider.DropAfterRead, 1))
	a := w.Call("pay_invoice", ownersInvoice).Key("run", 1, "toolu_1").Do()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.Gateway.Run(ctx)
	w.await(t, a.Action.ID, "asked about twice", func(a action.Action) bool { return a.Observations >= 2 })
	if act := w.Stored(a.Action.ID); act.State != action.Unknown || w.sends() != 1 || w.Effects() != 0 {
		t.Errorf("it is %s after %d sends, want unknown after 1", act.State, w.sends())
	}
	clock.Move(time.Hour + time.Minute)
	w.await(t, a.Action.ID, "completed", func(a action.Action) bool { return a.State == action.Completed })
	if w.sends() != 2 || w.Effects() != 1 {
		t.Errorf("%d sends, %d effects; want 2, 1", w.sends(), w.Effects())
	}
}

// UN-18, UN-20: a clock that leaps forward ends the lease of an owner that lives. It is taken over, and still no second effect
// comes of it.
func TestAClockThatLeapsForwardHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]action.State{"send_email": action.Unknown, "charge": action.Completed} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			var clock rig.Clock
			w := newOwners(t, rig.Options{Now: clock.Now, Lease: time.Minute})
			held, release := make(chan struct{}), make(chan struct{})
			w.door.after = func() { close(held); <-release }
			first := w.Call(tool, ownersArgs(tool)).Key("run", 1, "toolu_1").Go()
			<-held
			act := w.Only()
			clock.Move(time.Hour)
			w.run(t)
			w.await(t, act.ID, string(want), func(a action.Action) bool { return a.State == want })
			close(release)
			if a := first.Answer(); a.Action.State != want {
				t.Errorf("the owner tells its caller %s, want %s", a.Action.State, want)
			}
			if w.Effects() != 1 || len(w.stale(act.ID)) != 1 {
				t.Errorf("%d effects, %d stale reports; want 1, 1", w.Effects(), len(w.stale(act.ID)))
			}
		})
	}
}

// ST-25: a clock that was set back ends no lease: the owner goes on, and nobody else takes its action.
func TestAClockThatWasSetBackEndsNoLease(t *testing.T) {
	t.Parallel()
	var clock rig.Clock
	w := newOwners(t, rig.Options{Now: clock.Now})
	held, release := make(chan struct{}), make(chan struct{})
	w.door.before = func() { close(held); <-release }
	first := w.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Go()
	<-held
	act := w.Only()
	clock.Move(-time.Hour)
	w.run(t)
	time.Sleep(3 * ownersLease)
	if now := w.Stored(act.ID); now.State != action.Dispatched || w.Requests() != 0 {
		t.Errorf("it is %s after %d requests, want dispatched after none", now.State, w.Requests())
	}
	close(release)
	if a := first.Answer(); a.Action.State != action.Completed || w.Effects() != 1 {
		t.Errorf("the owner tells its caller %s with %d effects", a.Action.State, w.Effects())
	}
}
