package canonical

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"
)

// Inside the subset where both are defined, another implementation must agree:
// unique names, valid text, doubles, and integers that doubles hold exactly.
func TestAgreesWithJCS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := drawDocument(t, 4)
		got, err := Canonicalize([]byte(document))
		if err != nil {
			t.Fatalf("canonicalize %s: %v", document, err)
		}
		want, err := jcs.Transform([]byte(document))
		if err != nil {
			t.Fatalf("jcs refused %s: %v", document, err)
		}
		if string(got) != string(want) {
			t.Fatalf("canonicalize %s: got %s, want %s", document, got, want)
		}
	})
}

// A number keeps its value: the canonical text and the literal are the same
// rational number, except where a fraction below 2^53 is rounded to a double.
func TestNumbersKeepTheirValue(t *testing.T) {
	twoTo53 := big.NewRat(1<<53, 1)
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "literal")
		text, err := Canonicalize([]byte(literal))
		if err != nil {
			return
		}
		want, got := rational(literal), rational(string(text))
		if want.Cmp(got) == 0 {
			return
		}
		nearest, _ := strconv.ParseFloat(literal, 64)
		if new(big.Rat).Abs(want).Cmp(twoTo53) >= 0 || got.Cmp(rational(strconv.FormatFloat(nearest, 'g', -1, 64))) != 0 {
			t.Fatalf("%s became %s", literal, text)
		}
	})
}

func rational(literal string) *big.Rat {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		panic("not a number: " + literal)
	}
	return r
}

func exactInteger(literal string) (string, error) {
	r := rational(literal)
	if !r.IsInt() {
		return "", fmt.Errorf("%s is not an integer", literal)
	}
	return r.Num().String(), nil
}

// TestOrderIsThatOfUTF16 compares with the definition: encode both, compare units.
func TestOrderIsThatOfUTF16(t *testing.T) {
	edges := rapid.StringOf(rapid.SampledFrom([]rune("aé\u20ac\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600\U0010ffff")))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(edges, rapid.String())
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if got, want := compareUTF16(a, b), compareUnits(a, b); got != want {
			t.Fatalf("compare %q, %q: got %d, want %d", a, b, got, want)
		}
	})
}

func drawDocument(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r\n"})
	pad := func(s string) string { return space.Draw(t, "space") + s + space.Draw(t, "space") }
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return pad(rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal"))
	case 1:
		return pad(strconv.FormatInt(rapid.Int64Range(-1<<53, 1<<53).Draw(t, "integer"), 10))
	case 2:
		format := rapid.SampledFrom([]byte{'e', 'g', 'E'}).Draw(t, "format")
		f := rapid.OneOf(rapid.Float64Range(-1e15, 1e15), rapid.Float64Range(1e21, 1e308), rapid.Float64Range(-1e-5, 1e-5)).Draw(t, "double")
		return pad(strconv.FormatFloat(f, format, -1, 64))
	case 3:
		return pad(quote(t, rapid.String().Draw(t, "text")))
	case 4:
		var elements []string
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			elements = append(elements, drawDocument(t, depth-1))
		}
		return pad("[" + strings.Join(elements, ",") + "]")
	}
	var members []string
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "names") {
		members = append(members, pad(quote(t, name))+":"+drawDocument(t, depth-1))
	}
	return pad("{" + strings.Join(members, ",") + "}")
}

// quote writes text with escapes that are legal but not canonical.
func quote(t *rapid.T, text string) string {
	if rapid.Bool().Draw(t, "escape") {
		quoted := strconv.QuoteToASCII(text)
		if !strings.ContainsAny(quoted, "Uxav") { // escapes that Go has and JSON has not
			return quoted
		}
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}
