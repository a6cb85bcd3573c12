package rig_test

import (
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
)

func TestTheRigMakesOneCharge(t *testing.T) {
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", `{"amount":25000,"customer":"cus_42"}`).Do()
	if a.Action.State != action.Completed || r.Effects() != 1 {
		t.Fatalf("state %s (%s), effects %d", a.Action.State, a.Action.Reason, r.Effects())
	}
	b := r.Call("send_email", `{"to":"a"}`).Do()
	c := r.Call("get_echo", `{}`).Do()
	if b.Action.State != action.Completed || c.Action.State != action.Completed {
		t.Fatalf("states %s %s, reasons %s %s", b.Action.State, c.Action.State, b.Action.Reason, c.Action.Reason)
	}
}
