package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
)

// IK-14, case 036: what was kept for as long as the contract says is erased. Its key stays used up: a late retry is told so,
// sends nothing, and is no new action. Something unknown is never forgotten.
func TestAPurgedKeyIsUsedUp(t *testing.T) {
	t.Parallel()
	contracts := strings.NewReplacer("keep_result: 30d", "keep_result: 1s", "attach_for: 15m", "attach_for: 500ms").Replace(rig.Usual)
	r := rig.New(t, rig.Options{Contracts: contracts})
	done := r.Call("charge", unknownCharge).Key("run", 1, "done").Do()
	if done.Action.State != action.Completed {
		t.Fatalf("the charge is %s", done.Action.State)
	}
	r.Break(unknownTimes("commit_then_drop", 1))
	open := r.Call("send_email", unknownMail).Key("run", 2, "open").Do()
	r.Break()
	requests := r.Requests()
	time.Sleep(1100 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); r.Gateway.Run(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); !r.Stored(done.Action.ID).Purged; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was erased")
		}
	}
	cancel()
	<-over
	reader := r.Reader()
	for kind, owner := range map[store.PayloadKind]string{
		store.Answer: string(done.Action.Result), store.Operation: string(done.Action.ID), store.Arguments: string(done.Action.Intent),
	} {
		if content, err := reader.Payload(t.Context(), kind, owner); err == nil {
			t.Errorf("the %s is still there: %q", kind, content)
		}
	}
	late := r.Call("charge", unknownCharge).Key("run", 1, "done").Do()
	if s := late.Status(); late.Action.ID != done.Action.ID || s.Code != action.CodeResultExpired || s.Retryable || s.RepeatOf != "" || len(late.Result) != 0 {
		t.Errorf("a late retry got %+v", s)
	}
	if other, err := r.Call("charge", `{"amount":700,"customer":"cus_7","memo":"x"}`).Key("run", 1, "done").Try(); err == nil {
		t.Errorf("the used key took other arguments: %+v", other.Status())
	}
	still := r.Call("send_email", unknownMail).Key("run", 2, "open").Do()
	if still.Action.ID != open.Action.ID || still.Action.State != action.Unknown || r.Stored(open.Action.ID).Purged {
		t.Errorf("what is unknown became %+v", still.Status())
	}
	if r.Requests() != requests || r.Effects() != 2 {
		t.Errorf("%d requests more, %d effects", r.Requests()-requests, r.Effects())
	}
	kinds := rig.Kinds(r.EventsOf(done.Action.ID))
	if kinds[len(kinds)-2] != "action.purged" && !strings.Contains(strings.Join(kinds, " "), "action.purged") {
		t.Errorf("the journal has %v", kinds)
	}
}
