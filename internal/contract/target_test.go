package contract_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/yosida95/uritemplate/v3"
	"pgregory.net/rapid"
)

// case 115
func TestPathArgumentsKeepTheirPlace(t *testing.T) {
	c := load(t, with(t, pay, "/v1/invoices/{invoice}/payments", "/v1/users/{invoice}/mail"))
	for value, want := range map[string]string{
		"a/b":     "/v1/users/a%2Fb/mail",
		"a?x=1":   "/v1/users/a%3Fx%3D1/mail",
		"a#f":     "/v1/users/a%23f/mail",
		"a b":     "/v1/users/a%20b/mail",
		"a;b":     "/v1/users/a%3Bb/mail",
		"a%2fb":   "/v1/users/a%252fb/mail",
		"a\\\\b":  "/v1/users/a%5Cb/mail",
		"@evil":   "/v1/users/%40evil/mail",
		":8080":   "/v1/users/%3A8080/mail",
		"...":     "/v1/users/.../mail",
		"a..b":    "/v1/users/a..b/mail",
		".well":   "/v1/users/.well/mail",
		"ünïcode": "/v1/users/%C3%BCn%C3%AFcode/mail",
		"%":       "/v1/users/%25/mail",
		"100%":    "/v1/users/100%25/mail",
		"{x}":     "/v1/users/%7Bx%7D/mail",
		"\u2e2e":  "/v1/users/%E2%B8%AE/mail", // its code point is 2E 2E, two dots
		"\u012f":  "/v1/users/%C4%AF/mail",    // 01 2F
		"😀":       "/v1/users/%F0%9F%98%80/mail",
	} {
		op := operation(t, resolve(t, c, `{"invoice":"`+value+`","amount":5}`))
		if op.Path != want {
			t.Errorf("%q: got path %s, want %s", value, op.Path, want)
		}
		checkAsSent(t, op.URL(), "pay.example:443", 4)
		if op.Template != "/v1/users/{invoice}/mail" {
			t.Errorf("got template %s", op.Template) // HT-06
		}
	}
	for _, value := range []string{"", ".", "..", "../..", "..;", "..;x=1", ".;", "a/..", "../a", "a/./b", "..\\\\a", "%2e%2e", "%2E", "%2e.",
		"%252e%252e", "%252525252e", "..%2f", "%2e%2e%2f%zz", "..%00", ".. ", "\\u0000", "a\\nb", "a\\tb", "a\\u007f", "a\\u0085"} {
		got := refused(t, c, `{"invoice":"`+value+`","amount":5}`)
		if !strings.HasPrefix(got, "/invoice ") {
			t.Errorf("%q: got %q, want the argument to be named", value, got)
		}
	}
}

// checkAsSent reads the URL as Go's client would, and counts what an argument must not change.
func checkAsSent(t *testing.T, raw, host string, segments int) {
	t.Helper()
	req, err := http.NewRequest("POST", raw, nil)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if req.URL.Host != host || req.URL.User != nil || req.URL.Fragment != "" {
		t.Errorf("%s goes to %s", raw, req.URL.Host)
	}
	path, _, _ := strings.Cut(req.URL.RequestURI(), "?")
	if got := strings.Count(path, "/"); got != segments {
		t.Errorf("%s has %d segments, want %d", raw, got, segments)
	}
	if joined := req.URL.JoinPath(); joined.EscapedPath() != req.URL.EscapedPath() {
		t.Errorf("%s cleans to %s", raw, joined)
	}
}

func TestSegmentsOfSeveralPartsAreCheckedAsAWhole(t *testing.T) {
	c := load(t, with(t, pay, "/v1/invoices/{invoice}/payments", "/v1/.{invoice}/{invoice}:{amount}.json"))
	if got, want := operation(t, resolve(t, c, `{"invoice":"a","amount":5}`)).Path, "/v1/.a/a:5.json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	refused(t, c, `{"invoice":".","amount":5}`)
}

func TestQueryKeepsItsStructure(t *testing.T) {
	c := load(t, with(t, pay, "payments", "payments?v=2&id={invoice}{&note,tags*}", "note: {type: string}",
		"note: {type: string}\n    tags: {type: array, items: {type: [string, integer]}}", `, note: "${args.?note}"`, ""))
	for args, want := range map[string]string{
		`{"invoice":"i","amount":1}`:                                  "v=2&id=i",
		`{"invoice":"i&id=2","amount":1,"note":"a&b=c#d?e/f"}`:        "v=2&id=i%26id%3D2&note=a%26b%3Dc%23d%3Fe%2Ff",
		`{"invoice":"i","amount":1,"note":"","tags":["x y","a&b",7]}`: "v=2&id=i&note=&tags=x%20y&tags=a%26b&tags=7",
		`{"invoice":"i","amount":1,"tags":[]}`:                        "v=2&id=i",
		`{"invoice":"https://evil.example/","amount":1,"note":"../"}`: "v=2&id=https%3A%2F%2Fevil.example%2F&note=..%2F",
	} {
		op := operation(t, resolve(t, c, args))
		if op.Query != want {
			t.Errorf("%s: got query %s, want %s", args, op.Query, want)
		}
		parsed, err := url.ParseQuery(op.Query)
		if err != nil || len(parsed["v"]) != 1 || len(parsed["id"]) != 1 {
			t.Errorf("%s parses as %v, %v", op.Query, parsed, err)
		}
	}
	for _, args := range []string{`{"invoice":"i","amount":1,"note":"v\r\nX-Evil: 1"}`, `{"invoice":"i","amount":1,"tags":["a\u0000"]}`} { // case 119
		if got := refused(t, c, args); strings.Contains(got, "Evil") || !strings.Contains(got, "control character") {
			t.Errorf("%s: got %q", args, got)
		}
	}
	if got := refused(t, c, `{"invoice":"i","amount":1,"note":"`+strings.Repeat("x", 9000)+`"}`); !strings.Contains(got, "longer than 8192 bytes") {
		t.Errorf("got %q", got)
	}
}

// case 117
func TestHostHasOneSpelling(t *testing.T) {
	for raw, want := range map[string]string{
		"https://API.example./v1/pay":           "https://api.example:443/v1/pay",
		"https://api.example:8443/v1/pay":       "https://api.example:8443/v1/pay",
		"HTTP://api.example":                    "http://api.example:80/",
		"https://api.example?q=1":               "https://api.example:443/?q=1",
		"https://[2001:DB8:0::1]/v1":            "https://[2001:db8::1]:443/v1",
		"https://[::1]:8080/":                   "https://[::1]:8080/",
		"http://127.0.0.1:9/x/":                 "http://127.0.0.1:9/x/",
		"https://xn--bcher-kva.example/v1":      "https://xn--bcher-kva.example:443/v1",
		"https://my_host-1.internal/v1/%2F/a+b": "https://my_host-1.internal:443/v1/%2F/a+b",
	} {
		c := load(t, with(t, pay, "https://pay.example/v1/invoices/{invoice}/payments", raw))
		if got := resolve(t, c, `{"invoice":"i","amount":1}`).Target(); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

// case 119
func TestHeaderValuesCannotAddHeaders(t *testing.T) {
	c := load(t, with(t, pay, "  method: POST", "  method: POST\n  headers: {X-Note: \"${args.?note}\", X-Both: \"n=${args.amount}\"}"))
	op := operation(t, resolve(t, c, `{"invoice":"i","amount":1,"note":"plain text"}`))
	if len(op.Headers) != 2 || op.Headers[0].Value != "n=1" || op.Headers[1].Value != "plain text" {
		t.Errorf("got headers %v", op.Headers)
	}
	if op := operation(t, resolve(t, c, `{"invoice":"i","amount":1}`)); len(op.Headers) != 1 {
		t.Errorf("an absent argument gives headers %v", op.Headers)
	}
	for _, value := range []string{`v\r\nX-Evil: 1`, `v\nX: 1`, `v\rX: 1`, `\u0000`, `a\tb`, `a\u007f`, `a\u0085b`, `é`, ` a`, `a `,
		strings.Repeat("x", 5000)} {
		got := refused(t, c, `{"invoice":"i","amount":1,"note":"`+value+`"}`)
		if !strings.HasPrefix(got, "the header X-Note ") || strings.Contains(got, "Evil") {
			t.Errorf("%q: got %q, want the field and not the value", value, got)
		}
	}
}

// The library that reads the templates expands ASCII as we do.
func TestExpansionAgreesWithTheLibrary(t *testing.T) {
	const template = "/v1/{a}/x.{a}:{b}?v=1&q={b}{&c,d,e*}"
	c := load(t, with(t, readOnly(t), "https://pay.example/v1/invoices/{invoice}/payments{?amount,note}", "https://pay.example"+template,
		"[invoice, amount]", "[a, b]", "invoice: {type: string}", "a: {type: string}\n    b: {type: string}\n    c: {type: string}\n"+
			"    d: {type: array, items: {type: string}}\n    e: {type: array, items: {type: string}}"))
	library := uritemplate.MustNew(template)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[ -~]{0,6}")
		inPath := rapid.StringMatching(`[ -$&--/-~]{1,6}([a-z]\.[a-z])?`) // never empty, never a dot segment, written plainly or as %2e
		a, b, c1 := rapid.StringMatching("[!-%-~0-9]{1,6}").Draw(t, "a"), inPath.Draw(t, "b"), text.Draw(t, "c")
		d, e := rapid.SliceOfN(text, 1, 3).Draw(t, "d"), rapid.SliceOfN(text, 1, 3).Draw(t, "e")
		args, err := json.Marshal(map[string]any{"a": a, "b": b, "c": c1, "d": d, "e": e})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Resolve(args)
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		want, err := library.Expand(uritemplate.Values{"a": uritemplate.String(a), "b": uritemplate.String(b),
			"c": uritemplate.String(c1), "d": uritemplate.List(d...), "e": uritemplate.List(e...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(r.Target(), "https://pay.example:443"); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
