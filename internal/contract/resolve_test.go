package contract_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

// case 111
func TestArgumentsAreNeverCoerced(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "tags: {type: array, items: {type: string}}\n    body: {type: string}",
		`note: "${args.?note}"`, `tags: "${args.?tags}", body: "${args.?body}"`))
	got := refused(t, c, `{"invoice":"i1","amount":5,"tags":"[\"a\"]","body":"{\"x\":1}"}`)
	if want := "/tags has to be of type array and is of type string"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r := resolve(t, c, `{"invoice":"i1","amount":5,"tags":["a"],"body":"{\"x\":1}"}`)
	if got, want := body(t, r), `{"amount":5,"body":"{\"x\":1}","tags":["a"]}`; got != want {
		t.Errorf("got body %s, want %s", got, want)
	}
	for _, args := range []string{`{"invoice":"i1","amount":"5"}`, `{"invoice":7,"amount":5}`, `{"invoice":"i1","amount":true}`,
		`{"invoice":"i1","amount":null}`, `{"invoice":"i1","amount":5.5}`, `[]`, `null`, `"x"`} {
		refused(t, c, args)
	}
}

func TestEveryWrongArgumentIsNamedAtOnce(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", `
    to: {type: object, required: [zip], properties: {zip: {type: string, pattern: "^[0-9]+$"}, country: {enum: [de, fr]}}}
    lines: {type: array, items: {type: object, required: [sku], properties: {sku: {type: string}}}}
    at: {type: string, format: date}
    share: {type: number, exclusiveMinimum: 0, maximum: 0.5}`, `, note: "${args.?note}"`, ""))
	got := refused(t, c, `{"amount":"x","to":{"zip":"a1","country":"it","planet":1},"lines":[{"sku":"a"},{"sku":2,"a/b~c":0}],"at":"soon","share":0.75}`)
	want := strings.Join([]string{
		"/amount has to be of type integer and is of type string",
		"/at is not written as a valid date",
		"/invoice is missing",
		"/lines/1/a~1b~0c is unknown",
		"/lines/1/sku has to be of type string and is of type number",
		"/share has to be at most 0.5",
		`/to/country has to be one of "de", "fr"`,
		"/to/planet is unknown",
		"/to/zip does not match ^[0-9]+$",
	}, "; ")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, "; ", "\n"), strings.ReplaceAll(want, "; ", "\n"))
	}
	many := refused(t, c, `{"lines":[`+strings.Repeat(`{},`, 5000)+`{}]}`)
	if len(many) > 9<<10 || !strings.Contains(many, "more") {
		t.Errorf("a refusal of many arguments has %d bytes and ends in %q", len(many), many[len(many)-20:])
	}
}

func TestRefusalsNeverRepeatValues(t *testing.T) {
	const canary = "c4n4ry"
	c := load(t, with(t, pay, "note: {type: string}", `
    note: {type: string}
    word: {enum: [a, b]}
    fixed: {const: a}
    day: {type: string, format: date}
    mail: {type: string, format: email}
    short: {type: string, maxLength: 2}
    form: {oneOf: [{type: string, pattern: "^a"}, {type: integer}]}
    not: {not: {type: string}}
    set: {type: array, uniqueItems: true}
    number: {type: string}`,
		`note: "${args.?note}"`, `note: "${args.?note}", number: "${has(args.number) ? int(args.number) : 1}"`,
		"  json:", "  headers: {X-Note: \"${args.?note}\"}\n  json:"))
	for _, member := range []string{`"word":"%s"`, `"fixed":"%s"`, `"day":"%s"`, `"mail":"%s"`, `"short":"%s"`, `"form":"%s"`,
		`"not":"%s"`, `"set":["%[1]s","%[1]s"]`, `"number":"%s"`, `"note":"%s\r\nX-Evil: 1"`, `"note":5%s`, `"note":{"a":"%s"}`} {
		args := `{"invoice":"i1","amount":5,` + fmt.Sprintf(member, canary) + `}`
		if got := refused(t, c, args); strings.Contains(got, canary) {
			t.Errorf("the refusal of %s repeats the value: %s", args, got)
		}
	}
	for _, invoice := range []string{`..\/` + canary, canary + `\u0000`, canary + `/../x`} {
		if got := refused(t, c, `{"invoice":"`+invoice+`","amount":5}`); strings.Contains(got, canary) {
			t.Errorf("the refusal of the path value %s repeats it: %s", invoice, got)
		}
	}
}

func TestUnknownMembersAreRefusedUnlessTheContractWelcomesThem(t *testing.T) {
	closed := load(t, pay)
	if got, want := refused(t, closed, `{"invoice":"i1","amount":5,"amonut":6}`), "/amonut is unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	open := load(t, with(t, pay, "  type: object\n", "  type: object\n  additionalProperties: true\n"))
	if r := resolve(t, open, `{"invoice":"i1","amount":5,"other":[1]}`); !bytes.Contains(r.Canonical, []byte(`"other":[1]`)) {
		t.Errorf("got canonical arguments %s, want the unknown member in them", r.Canonical)
	}
	patterned := load(t, with(t, pay, "note: {type: string}", `note: {type: object, patternProperties: {"^x-": {type: string}}}`))
	resolve(t, patterned, `{"invoice":"i1","amount":5,"note":{"x-a":"b"}}`)
	if got, want := refused(t, patterned, `{"invoice":"i1","amount":5,"note":{"y":"b"}}`), "/note/y is unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	composed := load(t, with(t, pay, "note: {type: string}", `note: {type: string}
    to: {$ref: "#/$defs/to"}
  $defs: {to: {type: object, properties: {zip: {type: string}}}}
  anyOf: [{properties: {by: {const: card}}}, {properties: {by: {const: cash}}}]`))
	resolve(t, composed, `{"invoice":"i1","amount":5,"by":"cash","to":{"zip":"1"}}`)
	if got, want := refused(t, composed, `{"invoice":"i1","amount":5,"bye":"cash","to":{"zap":"1"}}`),
		"/bye is not allowed here; /to/zap is not allowed here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLargeArgumentsAreRefusedUnread(t *testing.T) {
	c := load(t, pay)
	got := refused(t, c, `{"invoice":"`+strings.Repeat("x", 50<<20)+`"}`)
	if want := "the arguments have 52428814 bytes, and at most 1048576 are taken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	refused(t, c, strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000))
}

func TestMalformedArgumentsAreRefused(t *testing.T) {
	c := load(t, pay)
	for args, want := range map[string]string{
		`{"invoice":"a","invoice":"b","amount":1}`: "/invoice: duplicate member name",
		`{"invoice":"\ud800","amount":1}`:          "lone surrogate",
		`{"invoice":"a","amount":1e400}`:           "/amount: number that a double cannot hold",
		`{"invoice":"a"`:                           "invalid JSON",
		`{} {}`:                                    "more than one JSON value",
		"{\"invoice\":\"\xff\"}":                   "invalid UTF-8",
	} {
		if got := refused(t, c, args); !strings.Contains(got, want) {
			t.Errorf("refusal of %s: got %q, want %q in it", args, got, want)
		}
	}
}

func TestRepeatOfIsTakenOut(t *testing.T) {
	c := load(t, pay)
	r := resolve(t, c, `{"invoice":"i1","amount":5,"repeat_of":"rep_1"}`)
	plain := resolve(t, c, `{"amount":5,"invoice":"i1"}`)
	if r.RepeatOf != "rep_1" || !bytes.Equal(r.Canonical, plain.Canonical) || !bytes.Equal(r.Requested, plain.Requested) {
		t.Errorf("got token %q and arguments %s, want rep_1 and %s", r.RepeatOf, r.Canonical, plain.Canonical)
	}
	for _, token := range []string{`""`, `null`, `7`, `["rep_1"]`} {
		if got := refused(t, c, `{"invoice":"i1","amount":5,"repeat_of":`+token+`}`); !strings.HasPrefix(got, "/repeat_of") {
			t.Errorf("repeat_of %s: got %q", token, got)
		}
	}
	reads := load(t, readOnly(t))
	refused(t, reads, `{"invoice":"i1","amount":5,"repeat_of":"rep_1"}`)
}

func readOnly(t testing.TB) string {
	return with(t, pay, "method: POST", "method: GET", "  json: {amount: \"${args.amount}\", note: \"${args.?note}\"}\n", "",
		"payments", "payments{?amount,note}", "class: repeatable_with_key", "class: read_only",
		"  key: {header: Idempotency-Key, repeat: returns_original_only, kept_for: 24h}\n", "", "  attach_for: 15m\n", "",
		"keep_result: 30d\n", "")
}

// HT-05: defaults, templates and the choice of a credential are visible.
func TestResolutionNamesItsSteps(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "note: {type: string, default: thanks}", "  method: POST",
		"  method: POST\n  credential: bank\n  headers: {X-Note: \"${args.note}\"}", "done_when:",
		"normalize: {amount: \"${args.amount * 1}\"}\ndone_when:"))
	r := resolve(t, c, `{"invoice":"s3cr3t","amount":5}`)
	want := []action.Step{
		{Kind: "default", Field: "/note", Detail: "written"},
		{Kind: "normalize", Field: "/amount"},
		{Kind: "template", Field: "url", Detail: "/v1/invoices/{invoice}/payments"},
		{Kind: "header", Field: "X-Note"},
		{Kind: "body", Field: "application/json"},
		{Kind: "credential", Field: "bank"},
		{Kind: "key", Field: "header Idempotency-Key", Detail: "the action's id"},
	}
	if !slices.Equal(r.Steps, want) {
		t.Errorf("got steps\n%v\nwant\n%v", r.Steps, want)
	}
	if got, want := string(r.Requested), `{"amount":5,"invoice":"s3cr3t"}`; got != want { // HT-04
		t.Errorf("got requested arguments %s, want %s", got, want)
	}
}

func TestWordsAboutAnActionCannotBeForged(t *testing.T) {
	c := load(t, pay+"resource: invoice/${args.invoice}\nimpact: |\n  Pays ${args.amount} for ${args.invoice}.\n  Cannot be undone.\n")
	r := resolve(t, c, `{"invoice":"a\u202eb","amount":5}`)
	if got, want := r.Impact, "Pays 5 for a\\u{202e}b.\nCannot be undone.\n"; got != want {
		t.Errorf("got impact %q, want %q", got, want)
	}
	if got, want := r.Resource, "invoice/a\u202eb"; got != want {
		t.Errorf("got resource %q, want %q", got, want)
	}
}

func TestContractsAreSafeForSeveralGoroutines(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "note: {type: string, default: thanks}"))
	want := body(t, resolve(t, c, `{"invoice":"i1","amount":5}`))
	done := make(chan string)
	for range 8 {
		go func() {
			var got string
			for range 50 {
				r, err := c.Resolve([]byte(`{"invoice":"i1","amount":5}`))
				if err != nil {
					got = err.Error()
					break
				}
				op, _ := r.Operation("act_1", "")
				got = string(op.Body)
				c.Judge(action.Response{Status: 201})
			}
			done <- got
		}()
	}
	for range 8 {
		if got := <-done; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
