package contract_test

import (
	"slices"
	"testing"

	"deed.dev/deed/internal/contract"
)

func TestReadyContractsLoad(t *testing.T) {
	set, err := contract.Load("../../contracts")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range set.Tools() {
		names = append(names, c.Tool)
		t.Log(contract.Describe(c).String())
		for _, a := range contract.Check(c) {
			t.Log(a)
		}
	}
	want := []string{"charge", "deploy_release", "get_charge", "refund"}
	if !slices.Equal(names, want) {
		t.Errorf("got tools %v, want %v", names, want)
	}
	c, _ := set.Tool("charge")
	r, err := c.Resolve([]byte(`{"customer":"cus_1","amount":250,"unit":"dollars"}`))
	if err != nil {
		t.Fatal(err)
	}
	op, err := r.Operation("act_1", "k")
	t.Logf("%s %v %s %v %s", op.Body, err, r.Impact, r.Steps, r.Meaningful)
}
