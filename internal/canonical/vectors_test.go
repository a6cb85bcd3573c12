package canonical

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// vector is one line of docs/vectors/canonical.json. The input is Text, or Base64
// where it is not valid text itself. Path is left out where readers may differ.
type vector struct {
	Name      string
	Text      *string
	Base64    []byte
	Canonical *string
	Refused   Kind
	Path      *string
}

func (v vector) input() []byte {
	if v.Text != nil {
		return []byte(*v.Text)
	}
	return v.Base64
}

func loadVectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("../../docs/vectors/canonical.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("the vector file has no vectors")
	}
	return file.Vectors
}

// FP-19: numbers, Unicode, and absent or null fields have one canonical form, which
// the vectors state for every language.
func TestVectors(t *testing.T) {
	seen := map[Kind]bool{}
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			got, err := Canonicalize(v.input())
			if v.Canonical != nil {
				if err != nil || string(got) != *v.Canonical {
					t.Fatalf("got %q, %v, want %q", got, err, *v.Canonical)
				}
				again, err := Canonicalize(got)
				if err != nil || string(again) != string(got) {
					t.Fatalf("canonical text changed when read again: got %q, %v, want %q", again, err, got)
				}
				return
			}
			var refusal *Error
			if !errors.As(err, &refusal) {
				t.Fatalf("got %q, %v, want a refusal of kind %s", got, err, v.Refused)
			}
			if refusal.Kind != v.Refused {
				t.Errorf("got kind %s (%v), want %s", refusal.Kind, refusal, v.Refused)
			}
			if v.Path != nil && refusal.Path != *v.Path {
				t.Errorf("got path %q, want %q", refusal.Path, *v.Path)
			}
			seen[v.Refused] = true
		})
	}
	for _, kind := range []Kind{Syntax, InvalidUTF8, LoneSurrogate, DuplicateName, NumberRange, TooDeep} {
		if !seen[kind] {
			t.Errorf("no vector is refused with the kind %s", kind)
		}
	}
}
