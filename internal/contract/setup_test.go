package contract_test

import (
	"errors"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

// pay is a whole contract from which the tests make others by replacing parts of it.
const pay = `tool: pay
description: Pay an invoice.
input:
  type: object
  required: [invoice, amount]
  properties:
    invoice: {type: string}
    amount: {type: integer}
    note: {type: string}
http:
  method: POST
  url: https://pay.example/v1/invoices/{invoice}/payments
  json: {amount: "${args.amount}", note: "${args.?note}"}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_only, kept_for: 24h}
  attach_for: 15m
  evidence: https://pay.example/docs, read 2026-11-30
done_when: ${status == 201}
keep_result: 30d
`

// with replaces parts of a contract: old, new, old, new.
func with(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the contract has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func load(t testing.TB, text string) *contract.Contract {
	t.Helper()
	list, err := contract.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("got %d contracts, want 1", len(list))
	}
	return list[0]
}

func resolve(t testing.TB, c *contract.Contract, args string) contract.Resolved {
	t.Helper()
	r, err := c.Resolve([]byte(args))
	if err != nil {
		t.Fatalf("resolve %s: %v", args, err)
	}
	return r
}

// refused resolves a call that has to be refused as invalid, and gives the message.
func refused(t testing.TB, c *contract.Contract, args string) string {
	t.Helper()
	_, err := c.Resolve([]byte(args))
	if err == nil {
		t.Fatalf("%s was accepted", args)
	}
	var known *action.Error
	if !errors.As(err, &known) || known.Code != action.CodeInvalidArguments {
		t.Fatalf("got error %v, want %s", err, action.CodeInvalidArguments)
	}
	return known.Message
}

func body(t testing.TB, r contract.Resolved) string {
	t.Helper()
	return string(operation(t, r).Body)
}

func operation(t testing.TB, r contract.Resolved) action.Operation {
	t.Helper()
	op, err := r.Operation("act_0123456789abcdefghjkmnpqrs", "6f1c")
	if err != nil {
		t.Fatal(err)
	}
	return op
}
