package contract_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/contract"
)

const refund = `tool: refund
description: Give a payment back.
input:
  type: object
  required: [payment]
  properties:
    payment: {type: string}
    amount: {type: integer}
    why: {type: string, default: undone}
http:
  method: POST
  url: https://pay.example/v1/refunds
  json: {payment: "${args.payment}", amount: "${args.?amount}", why: "${args.why}"}
on_lost_response:
  class: blocked_after_unknown
  attach_for: 15m
done_when: ${status == 201}
keep_result: 30d
`

const undone = `undo: {tool: refund, arguments: {payment: "${result.id}", amount: "${args.amount}"}}
`

// set loads the contracts as one file and puts them together.
func set(t testing.TB, texts ...string) (*contract.Set, error) {
	t.Helper()
	list, err := contract.Parse("tools.yaml", []byte(strings.Join(texts, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	return contract.NewSet(list...)
}

// UN-29: what undoes an action is a call of another tool, and its arguments come from what is on record.
func TestArgumentsOfAnUndo(t *testing.T) {
	s, err := set(t, pay+undone, refund)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := s.Tool("pay")
	if c.Undo.Tool != "refund" {
		t.Errorf("got %+v", c.Undo)
	}
	got, err := c.UndoArguments([]byte(`{"invoice":"i","amount":5}`), []byte(`{"id":"p1","amount":9007199254740993}`))
	if want := `{"amount":5,"payment":"p1"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	other, _ := s.Tool("refund")
	resolve(t, other, string(got))

	normal := load(t, with(t, pay, "note: {type: string}", "note: {type: string}\n    unit: {type: string, default: Cents}",
		"done_when:", "normalize: {unit: \"${args.unit.lowerAscii()}\"}\ndone_when:")+
		`undo: {tool: refund, arguments: {payment: "p-${result.id}", why: "${args.unit}", note: "${args.?note}", all: [true, "${result}"]}}`)
	got, err = normal.UndoArguments([]byte(`{"invoice":"i","amount":5}`), []byte(`{"id":9007199254740993}`))
	if want := `{"all":[true,{"id":9007199254740993}],"payment":"p-9007199254740993","why":"cents"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	nothing := load(t, pay+"undo: {tool: refund}\n")
	if got, err := nothing.UndoArguments([]byte(`{"invoice":"i","amount":5}`), nil); string(got) != `{}` || err != nil {
		t.Errorf("without arguments: got %s, %v", got, err)
	}
}

func TestAnUndoWithoutItsResultIsRefused(t *testing.T) {
	c := load(t, pay+undone)
	for name, result := range map[string]string{"none": "", "null": "null", "no JSON": "p1", "another": `{"ID":"p1"}`, "list": `["secret"]`} {
		got, err := c.UndoArguments([]byte(`{"invoice":"i","amount":5}`), []byte(result))
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), "undo of pay: /undo/arguments/payment ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	asks := load(t, pay+`undo: {tool: refund, arguments: {payment: "${result == null ? args.invoice : result.id}"}}`)
	if got, err := asks.UndoArguments([]byte(`{"invoice":"i","amount":5}`), nil); string(got) != `{"payment":"i"}` || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := c.UndoArguments([]byte(`{"invoice":"i"}`), []byte(`{"id":"p1"}`)); err == nil || !strings.Contains(err.Error(), "/amount is missing") {
		t.Errorf("other arguments: got %s, %v", got, err)
	}
	large := load(t, pay+`undo: {tool: refund, arguments: {payment: "${result.id}", why: "${result.id}"}}`)
	if got, err := large.UndoArguments([]byte(`{"invoice":"i","amount":5}`), []byte(`{"id":"`+strings.Repeat("x", 600<<10)+`"}`)); err == nil {
		t.Errorf("got %d bytes of arguments", len(got))
	}
	if got, err := load(t, pay).UndoArguments([]byte(`{}`), nil); err == nil || err.Error() != "undo of pay: the contract names no tool that undoes it" {
		t.Errorf("got %s, %v", got, err)
	}
}

// UN-29: a set of contracts whose undo could not run does not load.
func TestAnUndoFitsTheToolThatItNames(t *testing.T) {
	reads := with(t, readOnly(t), "tool: pay", "tool: look")
	for name, test := range map[string]struct {
		undo string
		want []string
	}{
		"no such tool":   {`undo: {tool: refnud, arguments: {payment: x}}`, []string{`21:14: /undo/tool: there is no tool "refnud"; did you mean refund?`}},
		"nothing like":   {`undo: {tool: something_else}`, []string{`21:14: /undo/tool: there is no tool "something_else"; add its contract`}},
		"reads":          {`undo: {tool: look}`, []string{`21:14: /undo/tool: look only reads, so it undoes nothing; name a tool that has effects`}},
		"typing error":   {"undo:\n  tool: refund\n  arguments: {payment: x, amonut: 1}", []string{`23:27: /undo/arguments/amonut: refund has no argument "amonut"; did you mean amount?`}},
		"unknown":        {"undo:\n  tool: refund\n  arguments: {payment: x, currency: usd}", []string{`23:27: /undo/arguments/currency: refund has no argument "currency"; leave it out`}},
		"missing":        {"undo:\n  tool: refund\n  arguments: {amount: 1}", []string{`23:3: /undo/arguments: refund needs "payment"; say where it comes from`}},
		"none at all":    {"undo: {tool: refund}", []string{`21:7: /undo/arguments: refund needs "payment"; say where it comes from`}},
		"missing, wrong": {"undo: {tool: refund, arguments: {id: 1}}", []string{`/undo/arguments: refund needs`, `/undo/arguments/id: refund has no`}},
		"right":          {"undo: {tool: refund, arguments: {payment: x}}", nil},
	} {
		_, err := set(t, pay+test.undo+"\n", refund, reads)
		var faults contract.LoadErrors
		if err != nil && !errors.As(err, &faults) || len(faults) != len(test.want) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		for i, want := range test.want {
			if got := faults[i].Error(); !strings.HasPrefix(got, "tools.yaml:") || !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	}
	open := with(t, refund, "    why:", "    reason: {type: string}\n    why:", "  required: [payment]", "  additionalProperties: true\n  required: [payment]")
	if _, err := set(t, pay+"undo: {tool: refund, arguments: {payment: x, anything: 1}}\n", open); err != nil {
		t.Errorf("an open input: got %v", err)
	}
	back := refund + "undo: {tool: pay, arguments: {invoice: i, amount: 1}}\n"
	if _, err := set(t, pay+undone, back); err != nil { // switching on undoes switching off
		t.Errorf("two that undo each other: got %v", err)
	}
}

// A tool whose contract has a fault is not missing, and only its own fault is named.
func TestLoadNamesAnUndoThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pay.yaml", pay+undone)
	_, err := contract.Load(dir)
	if want := `pay.yaml:21:14: /undo/tool: there is no tool "refund"; add its contract`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	write(t, dir, "refund.yaml", with(t, refund, "method: POST", "method: post"))
	_, err = contract.Load(dir)
	var faults contract.LoadErrors
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].File != "refund.yaml" {
		t.Errorf("got %v", err)
	}
	write(t, dir, "refund.yaml", refund)
	if _, err := contract.Load(dir); err != nil {
		t.Error(err)
	}
}

func TestTheTimeBeforeAReview(t *testing.T) {
	if c := load(t, pay); c.ReviewAfter != time.Hour {
		t.Errorf("got %s, want 1h", c.ReviewAfter)
	}
	for text, want := range map[string]time.Duration{"1s": time.Second, "30d": 30 * 24 * time.Hour} {
		if c := load(t, with(t, pay, "  attach_for", "  review_after: "+text+"\n  attach_for")); c.ReviewAfter != want {
			t.Errorf("got %s, want %s", c.ReviewAfter, want)
		}
	}
}
