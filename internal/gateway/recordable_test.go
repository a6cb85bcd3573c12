package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
)

const recordableTool = `
tool: store
description: An effect.
input:
  type: object
  required: [items]
  properties:
    items:
      type: object
      additionalProperties:
        type: object
        properties:
          unit: {type: string, default: kg}
http:
  method: POST
  url: TARGET/v1/objects/box
  private: [127.0.0.0/8]
  json: {items: "${args.items}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status in [200, 201]}
attempts: 5
timeout: TIMEOUT
keep_result: 30d
`

// A target claimed a body of more bytes than a record can count. Its 201 could not be recorded, and a proved effect became
// unknown.
func TestALengthThatIsOnlyClaimedDoesNotLoseTheOutcome(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var requests atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				requests.Add(1)
				_, _ = io.Copy(io.Discard, req.Body)
			}
			fmt.Fprint(c, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 9007199254740993\r\n\r\n{}")
			_ = c.Close()
		}
	}()
	r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(recordableTool, "TARGET", "http://"+l.Addr().String())})
	a := r.Call("store", `{"items":{}}`).Do()
	if got := r.Stored(a.Action.ID); got.State != action.Completed || got.TargetStatus != http.StatusCreated {
		t.Errorf("the target answered 201, and the record says %s (%s), status %d", got.State, got.Reason, got.TargetStatus)
	}
	b := r.Call("store", `{"items":{}}`).Do()
	if b.Action.ID != a.Action.ID || b.Action.State != action.Completed || requests.Load() != 1 {
		t.Errorf("the same call is %s, %s after %d requests; want %s, completed, 1", b.Action.ID, b.Action.State, requests.Load(), a.Action.ID)
	}
}

// The steps of a resolution named each place where a default went in: names that the caller chose came into the journal, and
// a call with many of them could not be recorded at all.
func TestNamesThatACallerChoseAreNotInTheJournal(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(recordableTool, "TARGET", "PROVIDER")})
	if a := r.Call("store", `{"items":{"ann@example.com, canary-name":{}}}`).Do(); a.Action.State != action.Completed {
		t.Errorf("the call is %s (%s)", a.Action.State, a.Action.Reason)
	}
	if strings.Contains(r.Export(), "canary-name") {
		t.Error("the journal holds a part of the arguments")
	}
	var items []string
	for i := range 1500 {
		items = append(items, fmt.Sprintf(`"item%d":{}`, i))
	}
	a, err := r.Call("store", `{"items":{`+strings.Join(items, ",")+`}}`).Try()
	if err != nil || a.Action.State != action.Completed || r.Effects() != 2 {
		t.Fatalf("1500 items are %s (%v) with %d effects, want completed and 2", a.Action.State, err, r.Effects())
	}
	if sent := string(r.Provider.Effects()[1].Body); !strings.Contains(sent, "item1499") || strings.Count(sent, `"unit":"kg"`) != 1500 {
		t.Errorf("the target did not get all items with their defaults: %.200s", sent)
	}
}

// noAnswers is a store that can keep everything but what a target wrote.
type noAnswers struct{ store.Store }

type noAnswersTx struct{ store.Tx }

func (s noAnswers) Commit(ctx context.Context, change func(store.Tx) error) error {
	return s.Store.Commit(ctx, func(tx store.Tx) error { return change(noAnswersTx{tx}) })
}

func (tx noAnswersTx) PutPayload(kind store.PayloadKind, owner string, content []byte) (action.Commitment, error) {
	if kind == store.Answer {
		return "", errors.New("this cannot be kept")
	}
	return tx.Tx.PutPayload(kind, owner, content)
}

// ST-18, UN-01: an answer that cannot be recorded does not take its outcome with it. What the target proved is on record, and an
// equal call attaches.
func TestAnAnswerThatCannotBeKeptDoesNotLoseTheOutcome(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	executor := httpexec.New(httpexec.Options{Vault: r.Vault})
	defer executor.Close()
	g := gateway.New(gateway.Options{Store: noAnswers{r.Store}, Contracts: r.Contracts, Keys: r.Keys, Vault: r.Vault,
		Executors: map[string]gateway.Executor{"http": executor}, Wait: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
	for n := range 2 {
		a, err := g.Submit(t.Context(), action.Call{Tool: "charge", Arguments: []byte(`{"amount":25000,"customer":"cus_42"}`),
			Actor: rig.Agent("agent", 1), At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if a.Action.State != action.Completed || a.Attached != (n == 1) {
			t.Errorf("call %d: %s, attached %t", n, a.Action.State, a.Attached)
		}
		attempts, err := r.Reader().Attempts(t.Context(), a.Action.ID)
		if err != nil || len(attempts) != 1 || attempts[0].Reason != "answer_unrecordable" || attempts[0].Certainty != action.EffectProven {
			t.Errorf("call %d: attempts %+v (%v)", n, attempts, err)
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Effects() != 1 {
		t.Errorf("%d effects", r.Effects())
	}
}
