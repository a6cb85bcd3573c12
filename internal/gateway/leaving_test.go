package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

// leavingStore stops a commit after its change has run and before it is durable.
type leavingStore struct {
	store.Store
	stop         bool
	ran, release chan struct{}
}

func (s *leavingStore) Commit(ctx context.Context, change func(store.Tx) error) error {
	if !s.stop {
		return s.Store.Commit(ctx, change)
	}
	s.stop = false
	return s.Store.Commit(ctx, func(tx store.Tx) error {
		err := change(tx)
		close(s.ran)
		<-s.release
		return err
	})
}

// RM-24, ST-18, EX-01: a caller that leaves while its claim is being written is told that nothing was recorded only if that
// is so. An action that is on record as dispatched has somebody who sends it.
func TestLeavingWhileTheClaimIsWrittenLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	held := &leavingStore{Store: r.Store, ran: make(chan struct{}), release: make(chan struct{})}
	executor := httpexec.New(httpexec.Options{Vault: r.Vault})
	defer executor.Close()
	g := gateway.New(gateway.Options{Store: held, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
		Executors: map[string]gateway.Executor{"http": executor}, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
	submit := func(ctx context.Context, tool, args string) (action.Answer, error) {
		return g.Submit(ctx, action.Call{Tool: tool, Arguments: []byte(args), Actor: rig.Agent("agent", 1), At: time.Now()})
	}
	if _, err := submit(context.Background(), "get_echo", `{}`); err != nil { // the run is known from now on
		t.Fatal(err)
	}

	held.stop = true
	ctx, leave := context.WithCancel(context.Background())
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, err = submit(ctx, "send_email", `{"to":"a"}`)
	}()
	<-held.ran
	leave()
	select { // whoever does not wait for the commit has returned by then
	case <-returned:
	case <-time.After(300 * time.Millisecond):
	}
	close(held.release)
	<-returned
	if e := g.Close(context.Background()); e != nil {
		t.Fatal(e)
	}

	var mails []action.Action
	for _, a := range r.Actions() {
		if a.Tool == "send_email" {
			mails = append(mails, a)
		}
	}
	var known *action.Error
	if errors.As(err, &known) && known.Code == action.CodeNotSent && len(mails) > 0 {
		t.Errorf("the caller was told %q, and %s is on record as %s", known.Message, mails[0].ID, mails[0].State)
	}
	for _, a := range mails {
		if a.State == action.Dispatched {
			t.Errorf("%s is dispatched and nobody sends it: %d effects", a.ID, r.Effects())
		}
	}
}

// RM-24: an explicit cancel while nothing is on its way, and nothing can have had an effect, ends the action: nothing more is
// sent. It is no decision, so that an equal call is a new action.
func TestACancelBetweenAttemptsEndsTheAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "1", Times: 1})
	ctx, end := context.WithCancelCause(context.Background())
	call := r.Call("charge", `{"amount":1,"customer":"c"}`).Under(ctx).Go()
	r.AwaitRequests(1)
	id := r.Only().ID
	for deadline := time.Now().Add(20 * time.Second); ; r.Settled() {
		a, err := r.Store.Action(context.Background(), id)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the action is %s (%v), want authorized again", a.State, err)
		}
		if a.State == action.Authorized {
			break
		}
	}
	end(gateway.ErrCancelled)
	call.Answer()
	r.Restart("") // waits for whatever still runs
	if a := r.Stored(id); a.State != action.Rejected || a.RejectReason != action.Cancelled || r.Requests() != 1 || r.Effects() != 0 {
		t.Errorf("after the cancel it is %s %q with %d requests and %d effects, want rejected cancelled with 1 and 0", a.State, a.RejectReason, r.Requests(), r.Effects())
	}
	if b := r.Call("charge", `{"amount":1,"customer":"c"}`).Do(); b.Action.ID == id || r.Effects() != 1 {
		t.Errorf("an equal call afterwards is %s with %d effects, want a new action and 1", b.Action.ID, r.Effects())
	}
}

// scripted is an executor whose first attempt ends as the test says, after every caller has left; it counts the others.
type scripted struct {
	leave func()
	first action.Outcome
	again chan struct{}
}

func (s *scripted) Perform(_ context.Context, d action.Dispatch) action.Outcome {
	if d.Number > 1 {
		s.again <- struct{}{}
		return s.first
	}
	s.leave()
	time.Sleep(20 * time.Millisecond) // until the caller has gone from the flight
	return s.first
}

// RM-24, UN-01: when all callers have left, what is in doubt is still found out, for the record wants it; what had no
// effect is not tried again, for nobody wants it.
func TestWhenAllHaveLeftOnlyADoubtIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first action.Outcome
		want  bool
	}{
		"in doubt":  {action.Outcome{State: action.AttemptTransportError, Certainty: action.Indeterminate, BytesSent: 100, Reason: "reset"}, true},
		"no effect": {action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Retry: true, Reason: "refused"}, false},
	} {
		r := rig.New(t, rig.Options{})
		ctx, leave := context.WithCancel(t.Context())
		executor := &scripted{leave: leave, first: c.first, again: make(chan struct{}, 10)}
		g := gateway.New(gateway.Options{Store: r.Store, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
			Executors: map[string]gateway.Executor{"http": executor}, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
		_, err := g.Submit(ctx, action.Call{Tool: "charge", Arguments: []byte(`{"amount":25000,"customer":"cus_42"}`),
			Actor: rig.Agent("agent", 1), At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		limit := 500 * time.Millisecond // ten times the pause before a second attempt
		if c.want {
			limit = 10 * time.Second
		}
		again := false
		select {
		case <-executor.again:
			again = true
		case <-time.After(limit):
		}
		if again != c.want {
			t.Errorf("%s: sent again: %t, want %t", name, again, c.want)
		}
		if err := g.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
