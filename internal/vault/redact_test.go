package vault

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spellings are the ways in which an answer may carry a secret.
func spellings(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	inner := string(quoted[1 : len(quoted)-1])
	twice, _ := json.Marshal(inner)
	all := map[string]string{
		"raw": s, "query": url.QueryEscape(s), "path": url.PathEscape(s), "query lower": lowerHex(url.QueryEscape(s)),
		"percent all": percentAll(s), "hex": hex.EncodeToString([]byte(s)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(s))),
		"json": inner, "json in json": string(twice[1 : len(twice)-1]), "json unicode": unicodeAll(s),
		"html": html.EscapeString(s), "percent twice": url.QueryEscape(url.QueryEscape(s)),
		"json of percent": strings.ReplaceAll(url.QueryEscape(s), "%", `\u0025`),
	}
	for name, enc := range map[string]*base64.Encoding{
		"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding,
	} {
		all["base64 "+name] = enc.EncodeToString([]byte(s))
		all["base64 "+name+" percent"] = url.QueryEscape(enc.EncodeToString([]byte(s)))
	}
	return all
}

func lowerHex(s string) string {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' {
			s = s[:i] + strings.ToLower(s[i:i+3]) + s[i+3:]
		}
	}
	return s
}

func percentAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func unicodeAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func mustOpen(t interface{ Fatal(...any) }, kind Kind, value string) *Opened {
	o, err := open(Credential{Ref: "r", Kind: kind, Header: "X-Api-Key"}, value)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// HT-22, case 121: each spelling of the secret is found, wherever it stands, and nothing around it is lost.
func TestRedactFindsEverySpelling(t *testing.T) {
	o := mustOpen(t, Header, canary)
	for name, s := range spellings(canary) {
		for _, around := range [][2]string{{"", ""}, {"before ", " after"}, {`{"a":"`, `","b":1}`}, {"\n\n", "\n"}, {"100% \\ & ", " 5%"}} {
			got, found := o.Redact([]byte(around[0] + s + around[1]))
			want := around[0] + Redacted + around[1]
			if !found || string(got) != want {
				t.Errorf("%s between %q: got %q, want %q", name, around, got, want)
			}
		}
	}
}

// case 121: the secret inside what was then encoded as a whole, at each of the three places where base64 can start.
func TestRedactFindsSecretInsideBase64(t *testing.T) {
	o := mustOpen(t, Bearer, canary)
	for before := range 7 {
		for after := range 5 {
			plain := strings.Repeat("u", before) + canary + strings.Repeat(":", after)
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "raw url": base64.RawURLEncoding} {
				text := enc.EncodeToString([]byte(plain))
				got, found := o.Redact([]byte("x=" + text))
				if !found {
					t.Fatalf("%s, %d before, %d after: not found in %s", name, before, after, text)
				}
				if left := strings.ReplaceAll(string(got), Redacted, ""); len(left) > len("x=")+(before+after)*2+2 {
					t.Errorf("%s, %d before, %d after: %q is left", name, before, after, left)
				}
			}
		}
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte("Authorization: Bearer " + canary))
	wrapped = wrapped[:34] + "\r\n  " + wrapped[34:]
	if got, found := o.Redact([]byte(wrapped)); !found {
		t.Errorf("base64 broken over lines was not found: %q", got)
	}
}

// HT-22: for any secret and any text around it.
func TestRedactLeavesNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringOfN(rapid.RuneFrom([]rune("abcXYZ019+/=-_%&\\\"'<>.: ~é")), 8, 40, -1).Draw(t, "secret")
		around := rapid.StringOfN(rapid.RuneFrom([]rune("ab:,\"u0 \n{}é")), 0, 30, -1)
		o := mustOpen(t, Header, secret)
		for name, s := range spellings(secret) {
			before, after := around.Draw(t, "before"), around.Draw(t, "after")
			got, found := o.Redact([]byte(before + s + after))
			if !found || bytes.Contains(got, []byte(s)) {
				t.Fatalf("%s of %q is left in %q", name, secret, got)
			}
		}
	})
}

func TestRedactLeavesOtherTextAlone(t *testing.T) {
	o := mustOpen(t, Bearer, canary)
	for _, s := range []string{"", "x", canary[:len(canary)-1], canary[1:], `{"id":"ch_1","amount":100,"url":"https:\/\/a\/b?c=%20"}`} {
		if got, found := o.Redact([]byte(s)); found || string(got) != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// HT-22: a text that broke off within the secret does not keep the beginning of it.
func TestRedactCutTakesTheBeginningOfASecret(t *testing.T) {
	o := mustOpen(t, Bearer, canary)
	for name, s := range spellings(canary) {
		for n := len(s) - 1; n >= len(s)/2; n-- {
			got, found := o.RedactCut([]byte(`{"echo":"` + s[:n]))
			if !found || strings.Contains(string(got), s[:len(s)/2]) {
				t.Errorf("%s cut after %d of %d bytes: %q", name, n, len(s), got)
			}
		}
	}
	if got, found := o.RedactCut([]byte("nothing to see")); found {
		t.Errorf("a harmless text became %q", got)
	}
}

// HT-22: both the whole of a basic credential and its secret part alone are found.
func TestRedactKnowsBothPartsOfBasic(t *testing.T) {
	o := mustOpen(t, Basic, "deploy:"+canary)
	for name, s := range map[string]string{
		"header": base64.StdEncoding.EncodeToString([]byte("deploy:" + canary)), "whole": "deploy:" + canary, "password": canary,
	} {
		if got, found := o.Redact([]byte(s)); !found || strings.Contains(string(got), canary) {
			t.Errorf("%s: %q", name, got)
		}
	}
	stripe := mustOpen(t, Basic, "sk_test_canary:")
	if got, _ := stripe.RedactString(`{"user":"sk_test_canary"}`); got != `{"user":"[secret]"}` {
		t.Errorf("a key used as user name is left: %s", got)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"a":"\ud83d\ude00\u00e9\u12"} %4 %zz &amp &#x26; &;`))
	f.Add([]byte(percentAll(canary)))
	o := mustOpen(f, Bearer, canary)
	f.Fuzz(func(t *testing.T, text []byte) {
		got, _ := o.RedactCut(text)
		if bytes.Contains(got, []byte(canary)) {
			t.Errorf("left in %q", got)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	o := mustOpen(b, Bearer, canary)
	text := []byte(strings.Repeat(`{"id":"ch_1","url":"https:\/\/api.example\/v1?a=%20b","n":1},`+"\n", 16))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		o.Redact(text)
	}
}
