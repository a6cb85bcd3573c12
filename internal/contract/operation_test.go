package contract_test

import (
	"reflect"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

// IK-03: the id goes to where the target expects its key.
func TestIdentifiersGoWhereTheContractSays(t *testing.T) {
	form := with(t, pay, `json: {amount: "${args.amount}", note: "${args.?note}"}`, `form: {b: "${args.amount}", a: "${args.?note}", "c[]": x, d: true}`)
	for name, test := range map[string]struct{ text, header, media, body string }{
		"header": {pay, "Idempotency-Key", "application/json", `{"amount":5,"note":"n"}`},
		"json": {with(t, pay, "header: Idempotency-Key", "json: /ids/key"), "", "application/json",
			`{"amount":5,"ids":{"key":"act_0123456789abcdefghjkmnpqrs"},"note":"n"}`},
		"json and metadata": {with(t, pay, "header: Idempotency-Key", "json: /ids/key", "done_when:",
			"metadata: {json: [/ids/search, /a~1b]}\ndone_when:"), "", "application/json",
			`{"a/b":"6f1c","amount":5,"ids":{"key":"act_0123456789abcdefghjkmnpqrs","search":"6f1c"},"note":"n"}`},
		"metadata inside an object": {with(t, pay, "done_when:", "metadata: {json: /meta/search}\ndone_when:",
			`note: "${args.?note}"`, `meta: {note: "${args.?note}"}`), "Idempotency-Key", "application/json",
			`{"amount":5,"meta":{"note":"n","search":"6f1c"}}`},
		"form": {with(t, form, "header: Idempotency-Key", "form: c", "done_when:", "metadata: {form: \"m[idem_key]\"}\ndone_when:"),
			"", "application/x-www-form-urlencoded", "a=n&b=5&c=act_0123456789abcdefghjkmnpqrs&c%5B%5D=x&d=true&m%5Bidem_key%5D=6f1c"},
		"media type": {with(t, pay, "  method: POST", "  method: PATCH\n  headers: {Content-Type: application/merge-patch+json}"),
			"Idempotency-Key", "application/merge-patch+json", `{"amount":5,"note":"n"}`},
	} {
		r := resolve(t, load(t, test.text), `{"invoice":"i","amount":5,"note":"n"}`)
		op := operation(t, r)
		if string(op.Body) != test.body || op.MediaType != test.media || op.Key.Header != test.header {
			t.Errorf("%s: got %s, %q, key header %q\nwant %s, %q, key header %q", name, op.Body, op.MediaType, op.Key.Header,
				test.body, test.media, test.header)
		}
		if strings.Contains(r.Target(), "act_") || len(op.Headers) != 0 {
			t.Errorf("%s: the id stands in the target %s or in %v", name, r.Target(), op.Headers)
		}
		if again := operation(t, r); !reflect.DeepEqual(again, op) {
			t.Errorf("%s: the same call gave another operation", name)
		}
		other, err := r.Operation("act_other", "k2")
		if err != nil || string(operation(t, r).Body) != test.body {
			t.Errorf("%s: another identity changed this one: %s, %v", name, other.Body, err)
		}
	}
}

func TestOperationCarriesTheContract(t *testing.T) {
	c := load(t, with(t, pay, "  method: POST", "  method: PUT\n  credential: bank\n  private: [10.0.0.0/8, fd00::/8]\n  response_limit: 64KiB")+
		"timeout: 2m\nattempts: 7\n")
	op := operation(t, resolve(t, c, `{"invoice":"i","amount":5}`))
	want := action.Operation{
		Channel: "http", Method: "PUT", Path: "/v1/invoices/i/payments", Template: "/v1/invoices/{invoice}/payments",
		Target: action.Target{Scheme: "https", Host: "pay.example", Port: 443, Private: []string{"10.0.0.0/8", "fd00::/8"}},
		Body:   []byte(`{"amount":5}`), MediaType: "application/json", Credential: "bank",
		Key: action.KeyPlace{Header: "Idempotency-Key"}, Timeout: 120000, MaxResult: 64 << 10,
	}
	if !reflect.DeepEqual(op, want) {
		t.Errorf("got\n%+v\nwant\n%+v", op, want)
	}
	if c.MaxAttempts != 7 {
		t.Errorf("got %d attempts, want 7", c.MaxAttempts)
	}
}

func TestAnOperationNeedsAnIdentity(t *testing.T) {
	r := resolve(t, load(t, pay+"metadata: {json: /k}\n"), `{"invoice":"i","amount":5}`)
	if _, err := r.Operation("", "k"); err == nil {
		t.Error("an operation without an id was made")
	}
	if _, err := r.Operation("act_1", ""); err == nil {
		t.Error("an operation without an idem_key was made")
	}
}

func TestBodiesAreBounded(t *testing.T) {
	c := load(t, with(t, pay, `note: "${args.?note}"`, `note: ["${args.?note}","${args.?note}","${args.?note}","${args.?note}","${args.?note}"]`))
	got := refused(t, c, `{"invoice":"i","amount":1,"note":"`+strings.Repeat("x", 1<<20-100)+`"}`)
	if want := "the arguments make the body longer than 4194304 bytes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBodiesKeepTheirShape(t *testing.T) {
	c := load(t, with(t, pay, `json: {amount: "${args.amount}", note: "${args.?note}"}`,
		`json: [1, true, null, "plain", "$${x}", ["${args.?note}", 2.50], {list: "${[args.amount, 1.5]}", map: "${{'a': args.amount}}", empty: {}, none: []}]`))
	if got, want := body(t, resolve(t, c, `{"invoice":"i","amount":5}`)),
		`[1,true,null,"plain","${x}",[2.5],{"empty":{},"list":[5,1.5],"map":{"a":5},"none":[]}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEvaluationIsBounded(t *testing.T) {
	for name, expression := range map[string]string{
		"work":   `args.list.all(a, args.list.all(b, args.list.all(c, a + b + c >= 0))) ? 1 : 2`,
		"result": `args.list.map(a, args.text).map(a, a + a)`,
		"type":   `type(args.list)`,
		"bytes":  `b"abc"`,
		"nan":    `0.0 / 0.0`,
	} {
		c := load(t, with(t, pay, "note: {type: string}", "list: {type: array, items: {type: integer}}\n    text: {type: string}",
			"[invoice, amount]", "[invoice, amount, list, text]", `note: "${args.?note}"`, "note: '${"+expression+"}'"))
		args := `{"invoice":"i","amount":1,"text":"` + strings.Repeat("x", 5000) + `","list":[` + strings.Repeat("1,", 999) + `1]}`
		if got := refused(t, c, args); !strings.HasPrefix(got, "/http/json/note ") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
