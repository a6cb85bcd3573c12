package gateway_test

import (
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

// AU-26: what a locked vault denies is on record as an action that was rejected, and nothing leaves. Nobody decided about
// it, so the same call is a new action once the vault is open.
func TestActionDeniedByALockedVaultIsOnRecord(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Vault.Lock()
	a := r.Call("charge", keysCharge).Do()
	if a.Action.State != action.Rejected || a.Action.RejectReason != action.VaultLocked || a.Code != action.CodeVaultLocked || !a.Retryable() {
		t.Errorf("state %s (%s), code %s", a.Action.State, a.Action.RejectReason, a.Code)
	}
	events := r.EventsOf(a.Action.ID)
	last := events[len(events)-1]
	if last.Kind() != "action.rejected" || last.Text("action.reject_reason") != "vault_locked" || last.Text("binding.decision_id") == "" {
		t.Errorf("the journal ends with %v", last)
	}
	if r.BytesToProvider() != 0 || r.Requests() != 0 {
		t.Errorf("%d bytes left", r.BytesToProvider())
	}
	r.Vault.Unlock()
	b := r.Call("charge", keysCharge).Do()
	if b.Action.ID == a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("with an open vault: %s is %s, effects %d", b.Action.ID, b.Action.State, r.Effects())
	}
}

// AU-26, VA-06: what a person denies is on record with its decision; asked again it is the same refusal, and no new one.
func TestDeniedActionIsOnRecord(t *testing.T) {
	t.Parallel()
	text := strings.Replace(unknownByBody, "keep_result: 30d", "keep_result: 30d\neach_use: true", 1)
	r := rig.New(t, rig.Options{Contracts: text})
	asking := r.Call("file_report", `{"name":"q3"}`).Go()
	r.Deny(r.Asked("").Action)
	a := asking.Answer()
	b := r.Call("file_report", `{"name":"q3"}`).Do()
	if a.Action.State != action.Rejected || a.Action.RejectReason != action.Denied || a.Code != action.CodeRejected || a.Retryable() {
		t.Errorf("state %s (%s), code %s", a.Action.State, a.Action.RejectReason, a.Code)
	}
	if b.Action.ID != a.Action.ID || b.Status().Decision != a.Status().Decision || a.Status().Decision == "" {
		t.Errorf("again: %s, decision %q; want %s, %q", b.Action.ID, b.Status().Decision, a.Action.ID, a.Status().Decision)
	}
	if n := strings.Count(r.Export(), `"event":"action.rejected"`); n != 1 || r.BytesToProvider() != 0 {
		t.Errorf("%d rejections on record, %d bytes left; want 1 and 0", n, r.BytesToProvider())
	}
}

// VA-06: being allowed is no reason to send: an action whose outcome is unknown is not sent again by an actor that the
// ladder allows.
func TestAllowedActorDoesNotCrossTheBoundaryTwice(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	a := r.Call("send_email", unknownMail).Do()
	r.Call("send_email", unknownMail).Do()
	r.Call("send_email", `{"to":"bob"}`).Do() // the ladder allows it
	if r.Stored(a.Action.ID).State != action.Unknown || r.Effects() != 2 || r.Requests() != 2 {
		t.Errorf("state %s, effects %d, requests %d; want unknown, 2, 2", r.Stored(a.Action.ID).State, r.Effects(), r.Requests())
	}
}

// AU-26: calls that make no action are on record too, with the code of their refusal and without a value.
func TestRefusedCallsAreOnRecord(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	for tool, code := range map[string]action.Code{"charge": action.CodeInvalidArguments, "no_such_tool": action.CodeUnknownTool} {
		if _, err := r.Call(tool, `{"amount":"s3cr3t-value"}`).Try(); err == nil {
			t.Errorf("%s was taken", tool)
		}
		r.Settled()
		if n := strings.Count(r.Export(), `"code":"`+string(code)+`"`); n != 1 {
			t.Errorf("%d refusals %s in the journal, want 1", n, code)
		}
	}
	if strings.Contains(r.Export(), "s3cr3t") || len(r.Actions()) != 0 || r.Requests() != 0 {
		t.Errorf("actions %d, requests %d, or a value in the journal", len(r.Actions()), r.Requests())
	}
}

// AU-13, AU-14, AU-15: when the target has the request, the plan of it stands in the journal already, for any other
// process to read; nothing has to collect it.
func TestPlanIsOnRecordWhenTheTargetHasTheRequest(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.HangAfterRead, Times: 1})
	call := r.Call("charge", keysCharge).Go()
	r.AwaitRequests(1)
	key := keysOf(r.Provider.Requests()[0])
	var planned rig.Event
	for _, e := range r.EventsOf(action.ID(key)) {
		if e.Kind() == "action.dispatched" {
			planned = e
		}
	}
	if planned.Text("attempt.number") != "1" || planned.Text("binding.binding_digest") != "" && planned.Text("attempt_id") == "" {
		t.Errorf("the provider has the request of %s, and its plan is %v", key, planned)
	}
	if q := r.Provider.Requests()[0]; !strings.Contains(q.Values("Traceparent")[0], planned.Text("attempt.span_id")) {
		t.Errorf("the request carries %v, the plan span %s", q.Values("Traceparent"), planned.Text("attempt.span_id"))
	}
	r.Break()
	call.Answer()
}

// HT-03: an action's event without resolved host, port or protocol is refused, and leaves nothing behind.
func TestActionEventWithoutATargetIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", keysCharge).Do()
	r.Settled()
	before := r.Export()
	for _, c := range []struct {
		name  string
		spoil func(*action.Action)
	}{
		{"host", func(a *action.Action) { a.Target.Host = "" }},
		{"port", func(a *action.Action) { a.Target.Port = 0 }},
		{"protocol", func(a *action.Action) { a.Target.Scheme = "" }},
		{"", func(*action.Action) {}},
	} {
		name, spoil := c.name, c.spoil
		body := r.Stored(a.Action.ID)
		body.ID, body.State, body.Delivery = "act_00000000000000000000000001", action.Accepted, action.DeliveryNone
		body.Attempt, body.TargetStatus, body.Result, body.RepeatToken, body.Binding = 0, 0, "", "", action.Binding{}
		body.Owner, body.Epoch = "", 0
		body.AuthorizedAt, body.DispatchedAt, body.FinishedAt, body.ResendBefore = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		spoil(&body)
		err := r.Store.Commit(t.Context(), func(tx store.Tx) error {
			body.AcceptedAt, body.UpdatedAt = tx.Now(), tx.Now()
			return tx.Append(action.Event{
				ID: "evt_00000000000000000000000001", Time: tx.Now(), Kind: action.ActionAccepted,
				Run: body.Run, Intent: body.Intent, Action: body.ID, Trace: body.Trace, AcceptedBody: &body,
			})
		})
		if name == "" {
			if err != nil {
				t.Errorf("a whole event is refused: %v", err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "resolved") {
			t.Errorf("without %s: %v", name, err)
		}
		r.Settled()
		if name != "" && r.Export() != before {
			t.Errorf("the refused event without %s is in the journal", name)
		}
	}
}
