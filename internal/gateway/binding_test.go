package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
)

// lying is a store that hands out another operation than the one that was recorded and allowed.
type lying struct {
	store.Store
	alter func(*action.Operation)
}

func (l lying) Payload(ctx context.Context, kind store.PayloadKind, owner string) ([]byte, error) {
	data, err := l.Store.Payload(ctx, kind, owner)
	if err != nil || kind != store.Operation {
		return data, err
	}
	var op action.Operation
	if err := json.Unmarshal(data, &op); err != nil {
		return nil, err
	}
	l.alter(&op)
	return json.Marshal(op)
}

// counted is an executor that only counts: it checks nothing, so that nothing but the line itself can refuse.
type counted struct{ performed int }

func (c *counted) Perform(context.Context, action.Dispatch) action.Outcome {
	c.performed++
	return action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: "counted"}
}

// What was allowed is checked against what is about to be sent in the line itself, before any executor is asked, for each
// part that a decision is bound to.
func TestAnOperationThatIsNotTheAllowedOneReachesNoExecutor(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	for name, c := range map[string]struct {
		alter func(*action.Operation)
		sent  bool
	}{
		"nothing changed": {func(*action.Operation) {}, true},
		"scheme":          {func(op *action.Operation) { op.Target.Scheme = "https" }, false},
		"host":            {func(op *action.Operation) { op.Target.Host = "127.0.0.2" }, false},
		"port":            {func(op *action.Operation) { op.Target.Port++ }, false},
		"method":          {func(op *action.Operation) { op.Method = "PUT" }, false},
		"path":            {func(op *action.Operation) { op.Template = "/v1/refunds" }, false},
		"credential":      {func(op *action.Operation) { op.Credential = "another" }, false},
		"a header more": {func(op *action.Operation) {
			op.Headers = append(op.Headers, action.Header{Name: "X-More", Value: "1"})
		}, false},
	} {
		executor := new(counted)
		g := gateway.New(gateway.Options{
			Store: lying{r.Store, c.alter}, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
			Executors: map[string]gateway.Executor{"http": executor}, Wait: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		})
		a, err := g.Submit(t.Context(), action.Call{
			Tool: "charge", Arguments: []byte(`{"amount":25000,"customer":"cus_42"}`), Actor: rig.Agent(name, 4711), At: time.Now(),
			Protocol: action.Correlation{Transport: "mcp-stdio", RequestID: "1", Session: action.NoSession},
			Upstream: action.Upstream{Source: action.UpstreamNone},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := executor.performed > 0; got != c.sent {
			t.Errorf("%s: the executor was asked %d times, want any: %t", name, executor.performed, c.sent)
		}
		if act := a.Action; !c.sent && (act.State != action.Failed || act.Reason != "binding_changed") {
			t.Errorf("%s: the action is %s (%s), want failed (binding_changed)", name, act.State, act.Reason)
		}
	}
	if r.Requests() != 0 {
		t.Errorf("%d requests reached the provider", r.Requests())
	}
}
