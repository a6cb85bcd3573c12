package rig_test

import (
	"bytes"
	"slices"
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

// ST-30: what belongs to an action is found without reading the whole journal: its own events, its calls and its intent.
func TestEventsOfAnActionAreFoundByTheirLinks(t *testing.T) {
	r := rig.New(t, rig.Options{})
	var all []action.Action
	for _, customer := range []string{"cus_1", "cus_2", "cus_1"} {
		a := r.Call("charge", `{"amount":1,"customer":"`+customer+`"}`).Do()
		r.Gateway.Delivered(a.Action.ID, action.DeliveryUnconfirmed, "handed_over")
		all = append(all, a.Action)
	}
	r.Settled()
	reader := r.Reader()
	for _, act := range all {
		got, err := reader.EventsOf(t.Context(), act.ID)
		if err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		err = reader.Records(t.Context(), 0, func(_ int64, _ [32]byte, body []byte) error {
			if bytes.Contains(body, []byte(`"action_id":"`+string(act.ID)+`"`)) || bytes.Contains(body, []byte(`"intent_id":"`+string(act.Intent)+`"`)) {
				want = append(want, bytes.Clone(body))
			}
			return nil
		})
		if err != nil || len(want) < 6 {
			t.Fatalf("%d events of %s, %v", len(want), act.ID, err)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s: %d events by links, %d in the journal", act.ID, len(got), len(want))
		}
	}
}
