package canonical

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
)

// FuzzCanonicalize: any bytes are either refused with an *Error or get a form that
// is stable, and that JCS agrees with wherever JCS is exact.
func FuzzCanonicalize(f *testing.F) {
	for _, v := range loadVectors(f) {
		f.Add(v.input())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := Parse(data)
		if err != nil {
			if refusal := new(Error); !errors.As(err, &refusal) || refusal.Kind == "" || refusal.Msg == "" {
				t.Fatalf("refused with %v, want an *Error with kind and message", err)
			}
			return
		}
		text, err := Marshal(value)
		if err != nil {
			t.Fatalf("parsed but not written: %v", err)
		}
		again, err := Canonicalize(text)
		if err != nil || string(again) != string(text) {
			t.Fatalf("not stable: got %s, %v, want %s", again, err, text)
		}
		if !commonSubset(value) {
			return
		}
		if other, err := jcs.Transform(data); err == nil && string(other) != string(text) {
			t.Fatalf("got %s, JCS has %s", text, other)
		}
	})
}

// commonSubset says whether all integers are small enough for JCS to keep them.
func commonSubset(v any) bool {
	switch v := v.(type) {
	case Number:
		return len(v) <= 15 || strings.ContainsAny(string(v), ".e")
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !commonSubset(e) })
	case map[string]any:
		for _, e := range v {
			if !commonSubset(e) {
				return false
			}
		}
	}
	return true
}

func compareUnits(a, b string) int {
	return cmp.Compare(slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))), 0)
}
