package contract_test

import (
	"bytes"
	"testing"
)

const normalizers = `normalize:
  amount: '${args.unit == "dollars" ? args.amount * 100 : args.amount}'
  unit: '${"cents"}'
done_when:`

// FP-05
func TestKnownEquivalentsBecomeOneRequest(t *testing.T) {
	text := with(t, pay, "note: {type: string}", "unit: {enum: [cents, dollars], default: cents}",
		`note: "${args.?note}"`, `unit: "${args.unit}"`)
	plain, normal := load(t, text), load(t, with(t, text, "done_when:", normalizers))
	const dollars, cents = `{"invoice":"i1","amount":250,"unit":"dollars"}`, `{"amount":25000,"invoice":"i1"}`

	a, b := resolve(t, normal, dollars), resolve(t, normal, cents)
	if !bytes.Equal(a.Meaningful, b.Meaningful) || body(t, a) != body(t, b) || a.Target() != b.Target() {
		t.Errorf("250 dollars is %s and 25000 cents is %s", a.Meaningful, b.Meaningful)
	}
	a, b = resolve(t, plain, dollars), resolve(t, plain, cents)
	if bytes.Equal(a.Meaningful, b.Meaningful) {
		t.Errorf("without the normalizer both are %s", a.Meaningful)
	}
	if plain.Digest == normal.Digest {
		t.Error("a contract with another normalizer has the same digest")
	}
}

func TestNormalizersReadText(t *testing.T) {
	c := load(t, with(t, pay, "amount: {type: integer}", `amount: {type: string, pattern: "^[0-9]{1,9} (cents|dollars)$"}`,
		"done_when:", `normalize:
  amount: '${int(args.amount.split(" ")[0]) * (args.amount.endsWith("dollars") ? 100 : 1)}'
  note: '${args.?note.optMap(n, n.trim())}'
done_when:`))
	a := resolve(t, c, `{"invoice":"i1","amount":"250 dollars"}`)
	b := resolve(t, c, `{"invoice":"i1","amount":"25000 cents"}`)
	if got, want := body(t, a), `{"amount":25000}`; got != want || body(t, b) != want {
		t.Errorf("got bodies %s and %s, want %s", got, body(t, b), want)
	}
	d := resolve(t, c, `{"invoice":"i1","amount":"1 cents","note":" hi "}`)
	if got, want := string(d.Canonical), `{"amount":1,"invoice":"i1","note":"hi"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNormalizersSeeTheOriginalArguments(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "note: {type: string}\n    memo: {type: [string, \"null\"]}",
		"done_when:", `normalize:
  memo: '${args.?note}'
  note: '${args.?memo}'
done_when:`, `note: "${args.?note}"`, `note: "${args.?note}", memo: "${args.?memo}"`))
	for args, want := range map[string]string{
		`{"invoice":"i","amount":1,"note":"n","memo":"m"}`:  `{"amount":1,"invoice":"i","memo":"n","note":"m"}`,
		`{"invoice":"i","amount":1,"note":"n"}`:             `{"amount":1,"invoice":"i","memo":"n"}`,
		`{"invoice":"i","amount":1,"note":"n","memo":null}`: `{"amount":1,"invoice":"i","memo":"n"}`, // null removes
		`{"invoice":"i","amount":1}`:                        `{"amount":1,"invoice":"i"}`,
	} {
		if got := string(resolve(t, c, args).Canonical); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

// FP-06, case 047
func TestDefaultsAreAlwaysWrittenOrAlwaysOmitted(t *testing.T) {
	written := with(t, pay, "note: {type: string}", "note: {type: string}\n    currency: {type: string, default: usd}",
		`note: "${args.?note}"`, `note: "${args.?note}", currency: "${args.?currency}"`)
	for mode, want := range map[string]string{
		"":                              `{"amount":5,"currency":"usd","invoice":"i1"}`,
		"defaults: written\n":           `{"amount":5,"currency":"usd","invoice":"i1"}`,
		"defaults: omitted\n":           `{"amount":5,"invoice":"i1"}`,
		"defaults: {currency: omitted}": `{"amount":5,"invoice":"i1"}`,
	} {
		c := load(t, written+mode)
		absent, explicit := resolve(t, c, `{"invoice":"i1","amount":5}`), resolve(t, c, `{"invoice":"i1","amount":5,"currency":"usd"}`)
		if string(absent.Canonical) != want || string(explicit.Canonical) != want || body(t, absent) != body(t, explicit) {
			t.Errorf("%q: got %s and %s, want %s", mode, absent.Canonical, explicit.Canonical, want)
		}
		other := resolve(t, c, `{"invoice":"i1","amount":5,"currency":"eur"}`)
		if bytes.Equal(other.Canonical, absent.Canonical) {
			t.Errorf("%q: another currency gives the same arguments", mode)
		}
	}
}

// case 047
func TestNullIsNotAbsent(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", `note: {type: [string, "null"]}`))
	null, absent := resolve(t, c, `{"invoice":"i1","amount":5,"note":null}`), resolve(t, c, `{"invoice":"i1","amount":5}`)
	if bytes.Equal(null.Meaningful, absent.Meaningful) {
		t.Errorf("null and absent are both %s", null.Meaningful)
	}
	if got, want := body(t, null), `{"amount":5,"note":null}`; got != want {
		t.Errorf("got body %s, want %s", got, want)
	}
	if got, want := body(t, absent), `{"amount":5}`; got != want {
		t.Errorf("got body %s, want %s", got, want)
	}
}

func TestDefaultsAreFilledAtEveryDepth(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", `
    ship: {type: object, default: {}, properties: {speed: {type: string, default: slow}, to: {$ref: "#/$defs/to"}}}
    lines: {type: array, items: {type: object, properties: {sku: {type: string}, count: {type: integer, default: 1}}}}
  $defs: {to: {type: object, properties: {zip: {type: string}, country: {type: string, default: de}}}}`,
		`note: "${args.?note}"`, `ship: "${args.ship}", lines: "${args.?lines}"`))
	for args, want := range map[string]string{
		`{"invoice":"i","amount":1}`: `{"amount":1,"ship":{"speed":"slow"}}`,
		`{"invoice":"i","amount":1,"ship":{"to":{"zip":"1"}},"lines":[{"sku":"a"},{"sku":"b","count":2}]}`: `{"amount":1,"lines":[{"count":1,"sku":"a"},{"count":2,"sku":"b"}],` +
			`"ship":{"speed":"slow","to":{"country":"de","zip":"1"}}}`,
	} {
		if got := body(t, resolve(t, c, args)); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	omitted := load(t, with(t, pay, "note: {type: string}", `
    lines: {type: array, items: {type: object, properties: {sku: {type: string}, count: {type: integer, default: 1}}}}`,
		`note: "${args.?note}"`, `lines: "${args.?lines}"`, "done_when:", "defaults: {/lines/*/count: omitted}\ndone_when:"))
	r := resolve(t, omitted, `{"invoice":"i","amount":1,"lines":[{"sku":"a","count":1},{"sku":"b","count":2}]}`)
	if got, want := body(t, r), `{"amount":1,"lines":[{"sku":"a"},{"count":2,"sku":"b"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestADefaultThatBreaksTheSchemaIsRefused(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "note: {type: string, default: thanks}\n    memo: {type: string}\n  not: {required: [note, memo]}"))
	resolve(t, c, `{"invoice":"i","amount":1}`)
	refused(t, c, `{"invoice":"i","amount":1,"memo":"x"}`)
}

// case 049
func TestVolatileFieldsDoNotCount(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", `client_ts: {type: string}
    lines: {type: array, items: {type: object, properties: {sku: {type: string}, seen: {type: string}}}}`,
		`note: "${args.?note}"`, `ts: "${args.?client_ts}", lines: "${args.?lines}"`, "done_when:",
		"volatile: [client_ts, /lines/*/seen]\ndone_when:"))
	a := resolve(t, c, `{"invoice":"i","amount":1,"client_ts":"10:00","lines":[{"sku":"a","seen":"1"}]}`)
	b := resolve(t, c, `{"invoice":"i","amount":1,"client_ts":"10:01","lines":[{"sku":"a","seen":"2"}]}`)
	if !bytes.Equal(a.Meaningful, b.Meaningful) || a.Target() != b.Target() {
		t.Errorf("got %s and %s, want them equal", a.Meaningful, b.Meaningful)
	}
	if bytes.Equal(a.Canonical, b.Canonical) || body(t, a) == body(t, b) {
		t.Error("the volatile field did not reach the request")
	}
	if got, want := string(a.Meaningful), `{"amount":1,"invoice":"i","lines":[{"sku":"a"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d := resolve(t, c, `{"invoice":"i","amount":2,"client_ts":"10:00"}`)
	if bytes.Equal(a.Meaningful, d.Meaningful) {
		t.Error("another amount is the same call")
	}
}

// FP-01
func TestOrderAndSpaceDoNotCount(t *testing.T) {
	c := load(t, pay)
	a := resolve(t, c, "{\"note\":\"x\",  \"amount\":5,\n\"invoice\":\"i\\u0031\"}")
	b := resolve(t, c, `{"invoice":"i1","amount":5.0,"note":"x"}`)
	if !bytes.Equal(a.Canonical, b.Canonical) {
		t.Errorf("got %s and %s, want them equal", a.Canonical, b.Canonical)
	}
}

// case 043
func TestIntegersKeepEveryDigit(t *testing.T) {
	c := load(t, with(t, pay, `amount: "${args.amount}"`, `amount: "${args.amount}", text: "n${args.amount}", fixed: 9007199254740993, next: "${args.amount < 18446744073709551615u ? args.amount : args.amount}"`))
	seen := map[string]bool{}
	for _, n := range []string{"9007199254740992", "9007199254740993", "-9223372036854775808", "18446744073709551615"} {
		got := body(t, resolve(t, c, `{"invoice":"i","amount":`+n+`}`))
		want := `{"amount":` + n + `,"fixed":9007199254740993,"next":` + n + `,"text":"n` + n + `"}`
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		seen[got] = true
	}
	if len(seen) != 4 {
		t.Errorf("got %d different requests, want 4", len(seen))
	}
	refused(t, c, `{"invoice":"i","amount":18446744073709551616}`)
	sum := load(t, with(t, pay, `amount: "${args.amount}"`, `amount: "${args.amount + 1}"`))
	if got, want := body(t, resolve(t, sum, `{"invoice":"i","amount":9007199254740992}`)), `{"amount":9007199254740993}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := refused(t, sum, `{"invoice":"i","amount":9223372036854775807}`), "/http/json/amount cannot be computed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFractionsHaveTheirCanonicalForm(t *testing.T) {
	c := load(t, with(t, pay, "amount: {type: integer}", "amount: {type: number}", `amount: "${args.amount}"`, `amount: "${args.amount / 2.0}"`))
	if got, want := body(t, resolve(t, c, `{"invoice":"i","amount":0.5}`)), `{"amount":0.25}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := refused(t, c, `{"invoice":"i","amount":1}`), "/http/json/amount does not fit the types of the values"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
