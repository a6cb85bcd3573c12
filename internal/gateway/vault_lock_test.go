package gateway_test

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// VA-10, AP-17: an action is allowed, and the vault is locked before it is sent again: no byte more leaves, that is on
// record, and when the vault is open again the same call goes on with the same action.
func TestALockStopsWhatIsAllowedAndNotSent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, Times: 1})
	waiting := r.Call("charge", keysCharge).Key("run", 1, "a").Go()
	r.AwaitRequests(1)
	r.Vault.Lock()
	a := waiting.Answer()
	if r.Requests() != 1 || r.Effects() != 0 || a.Action.State == action.Completed {
		t.Fatalf("%s (%s) after %d requests", a.Action.State, a.Action.Reason, r.Requests())
	}
	if !strings.Contains(r.Export(), `"vault_locked"`) {
		t.Error("the journal does not say why nothing was sent")
	}
	locked := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	if r.Requests() != 1 || locked.Action.ID != a.Action.ID {
		t.Errorf("asked again while locked: %s, %d requests", locked.Action.ID, r.Requests())
	}
	r.Vault.Unlock()
	done := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	if done.Action.State != action.Completed || done.Action.ID != a.Action.ID || r.Effects() != 1 {
		t.Errorf("after the unlock: %s %s, %d effects", done.Action.ID, done.Action.State, r.Effects())
	}
}
