package canonical

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func mustCanonicalize(t *testing.T, document string) string {
	t.Helper()
	text, err := Canonicalize([]byte(document))
	if err != nil {
		t.Fatalf("canonicalize %s: %v", document, err)
	}
	return string(text)
}

// FP-01: a fingerprint is computed over this form, so the order of the members and
// the white space of a request must not reach it.
func TestOrderAndSpaceDoNotMatter(t *testing.T) {
	members := []string{
		`"amount"%:%{%"value"%:%250%,%"unit"%:%"dollars"%}`, `"to"%:%"acct_1"`, `"tags"%:%[%"a"%,%"b"%]`,
		`"dry_run"%:%false`, `"note"%:%null`,
	}
	want := `{"amount":{"unit":"dollars","value":250},"dry_run":false,"note":null,"tags":["a","b"],"to":"acct_1"}`
	random := rand.New(rand.NewPCG(1, 2))
	spaces := []string{"", " ", "\n", "\t", "\r\n  "}
	for range 50 {
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		var document strings.Builder
		for _, part := range strings.SplitAfter("%{%"+strings.Join(members, "%,%")+"%}%", "%") {
			document.WriteString(strings.TrimSuffix(part, "%"))
			document.WriteString(spaces[random.IntN(len(spaces))])
		}
		if got := mustCanonicalize(t, document.String()); got != want {
			t.Fatalf("canonicalize %s: got %s, want %s", document.String(), got, want)
		}
	}
}

// FP-16: nested objects in another order are equal, arrays in another order are not.
func TestArraysKeepTheirOrder(t *testing.T) {
	a := mustCanonicalize(t, `{"a":[{"x":1,"y":2},3],"b":0}`)
	if b := mustCanonicalize(t, `{"b":0,"a":[{"y":2,"x":1},3]}`); a != b {
		t.Errorf("objects in another order: got %s and %s, want them equal", a, b)
	}
	if b := mustCanonicalize(t, `{"a":[3,{"x":1,"y":2}],"b":0}`); a == b {
		t.Errorf("arrays in another order: got %s twice, want a difference", a)
	}
}

// case 043: integers beyond 2^53 that are next to each other stay two numbers,
// whichever way they are written.
func TestLargeIntegersStayApart(t *testing.T) {
	spellings := []string{"9007199254740992", "9007199254740993", "9007199254740994", "9007199254740992.0",
		"9007199254740993.0", "9007199254740994e0", "36028797018963968", "36028797018963968.0", "36028797018963970",
		"36028797018963970.0", "18446744073709551614", "18446744073709551615", "1844674407370955161.5e1"}
	writtenFor := map[string]string{} // canonical text → exact value
	for _, spelling := range spellings {
		text, err := Canonicalize([]byte(spelling))
		if err != nil {
			continue // refused is as safe as kept apart
		}
		exact, err := exactInteger(spelling)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := writtenFor[string(text)]; ok && other != exact {
			t.Errorf("%s and %s have the same form %s", other, exact, text)
		}
		writtenFor[string(text)] = exact
	}
	if len(writtenFor) < 7 {
		t.Errorf("got %d forms, want at least the 7 integers written as such", len(writtenFor))
	}
}

// case 046: exact duplicates are refused, and names that differ only in case or in
// looks are different names.
func TestDuplicateNamesAreRefused(t *testing.T) {
	_, err := Parse([]byte(`{"to":"acct_1","to":"acct_2"}`))
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Kind != DuplicateName || refusal.Path != "/to" {
		t.Errorf("got %v, want duplicate_name at /to", err)
	}
	value, err := Parse([]byte(`{"kind":"a","\u212Aind":"b","sum":1,"\u017Fum":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(value.(map[string]any)); got != 4 {
		t.Errorf("got %d members, want 4: no name is folded into another", got)
	}
}

// case 047: null and absent are two things.
func TestNullIsNotAbsent(t *testing.T) {
	null, absent := mustCanonicalize(t, `{"note":null}`), mustCanonicalize(t, `{}`)
	if null == absent {
		t.Errorf("got %s for both, want two forms", null)
	}
	value, err := Parse([]byte(`{"note":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if note, present := value.(map[string]any)["note"]; !present || note != nil {
		t.Errorf("got %v, present %t, want nil, present", note, present)
	}
}

func TestMarshalOfGoValues(t *testing.T) {
	deep := any("end")
	for range MaxDepth + 1 {
		deep = []any{deep}
	}
	loop := map[string]any{}
	loop["again"] = loop
	for _, test := range []struct {
		name    string
		value   any
		want    string
		refused Kind
		path    string
	}{
		{name: "every type", value: map[string]any{"a": nil, "b": true, "c": "x", "d": Number("1.50"), "e": 1, "f": int64(-2), "g": uint64(math.MaxUint64),
			"h": 0.5, "i": json.Number("1e2"), "j": []string{"y"}, "k": []any{}, "l": json.RawMessage(` {"z":1, "y":[1.0]}`), "m": jsontext.Value(`[ ]`)},
			want: `{"a":null,"b":true,"c":"x","d":1.5,"e":1,"f":-2,"g":18446744073709551615,"h":0.5,"i":100,"j":["y"],"k":[],"l":{"y":[1],"z":1},"m":[]}`},
		{name: "nil slice and map", value: []any{[]any(nil), []string(nil), map[string]any(nil)}, want: `[[],[],{}]`},
		{name: "negative zero", value: math.Copysign(0, -1), want: "0"},
		{name: "float beyond 2^53", value: 36028797018963968.0, want: "36028797018963968"},
		{name: "float beyond 64 bits", value: 1e20, refused: NumberRange},
		{name: "float with exponent", value: 1e21, want: "1e+21"},
		{name: "not a number", value: []any{0, math.NaN()}, refused: NumberRange, path: "/1"},
		{name: "infinity", value: math.Inf(-1), refused: NumberRange},
		{name: "number that is none", value: Number("1; drop"), refused: Syntax},
		{name: "empty number", value: Number(""), refused: Syntax},
		{name: "number of a minus", value: json.Number("-"), refused: Syntax},
		{name: "invalid text", value: map[string]any{"a": []string{"ok", "\xff"}}, refused: InvalidUTF8, path: "/a/1"},
		{name: "invalid name", value: []any{map[string]any{"\xff": 1}}, refused: InvalidUTF8, path: "/0"},
		{name: "raw text that is refused", value: map[string]any{"a": json.RawMessage(`{"b":1,"b":2}`)}, refused: DuplicateName, path: "/a/b"},
		{name: "other type", value: []any{int32(1)}, refused: WrongType, path: "/0"},
		{name: "too deep", value: deep, refused: TooDeep, path: strings.Repeat("/0", MaxDepth)},
		{name: "without end", value: loop, refused: TooDeep},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Marshal(test.value)
			if test.refused == "" {
				if err != nil || string(got) != test.want {
					t.Fatalf("got %s, %v, want %s", got, err, test.want)
				}
				return
			}
			var refusal *Error
			if !errors.As(err, &refusal) || refusal.Kind != test.refused {
				t.Fatalf("got %s, %v, want kind %s", got, err, test.refused)
			}
			if test.path != "" && refusal.Path != test.path {
				t.Errorf("got path %q, want %q", refusal.Path, test.path)
			}
		})
	}
}

func TestSizeIsTheCallersChoice(t *testing.T) {
	document := []byte(`{"a":1}`)
	if _, err := ParseMax(document, len(document)); err != nil {
		t.Errorf("at the limit: got %v, want nil", err)
	}
	_, err := ParseMax(document, len(document)-1)
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Kind != TooLarge {
		t.Errorf("above the limit: got %v, want too_large", err)
	}
}

// An error is logged and shown to agents, so it must not repeat what it refused.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "hunter2"
	for _, document := range []string{
		`{"password":"` + secret + `\ud800"}`, `{"password":"` + secret + "\xff" + `"}`, `{"password":"` + secret + `" x}`,
		`["` + secret + `"`, `{"a":"` + secret + `","a":"` + secret + `"}`, `"` + secret + `\q"`, `"` + secret + `" "` + secret + `"`, secret,
	} {
		_, err := Canonicalize([]byte(document))
		if err == nil {
			t.Errorf("got no error for %s", document)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats the value: %v", err)
		}
	}
	_, err := Canonicalize([]byte(`{"` + strings.Repeat("é", 10_000) + `":1e400}`))
	if got := len(err.Error()); got > 2*pathLimit {
		t.Errorf("the error has %d bytes, want a short one", got)
	}
}

func TestNumberAsGoValue(t *testing.T) {
	if i, ok := Number("-9223372036854775808").Int64(); !ok || i != math.MinInt64 {
		t.Errorf("got %d, %t, want the least int64", i, ok)
	}
	if u, ok := Number("18446744073709551615").Uint64(); !ok || u != math.MaxUint64 {
		t.Errorf("got %d, %t, want the largest uint64", u, ok)
	}
	if _, ok := Number("1.5").Int64(); ok {
		t.Error("1.5 is said to be an integer")
	}
	if f := Number("1.5").Float64(); f != 1.5 {
		t.Errorf("got %v, want 1.5", f)
	}
}

// What one call returns must not change when the next call uses the same memory.
func TestResultsAreTheCallersOwn(t *testing.T) {
	document := []byte(`{"a":"first"}`)
	value, err := Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	text := mustCanonicalize(t, string(document))
	copy(document, `{"b":"other"}`)
	mustCanonicalize(t, `{"c":"third"}`)
	if got := value.(map[string]any)["a"]; got != "first" || text != `{"a":"first"}` {
		t.Errorf("got %v and %s, want the first document", got, text)
	}
}
