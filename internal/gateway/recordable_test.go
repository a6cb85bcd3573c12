package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
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
