package journal

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzVerify: any bytes get a verdict and no panic, and what is called valid can be
// exported again as the same bytes.
func FuzzVerify(f *testing.F) {
	for _, v := range loadVectors(f).Journals {
		f.Add([]byte(v.Lines))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		original := bytes.Clone(lines)
		result, err := Verify(bytes.NewReader(lines))
		if err != nil {
			t.Fatalf("reading memory: %v", err)
		}
		if !bytes.Equal(lines, original) {
			t.Fatal("the journal was changed by its verification")
		}
		if (result.Chain == Broken) != (result.Bad != nil) || result.Chain == Valid && result.RecordsChecked == 0 {
			t.Fatalf("contradiction in %+v", result)
		}
		if result.Bad != nil {
			if result.Bad.Error() == "" {
				t.Fatal("damage without a message")
			}
			return
		}
		var again []byte
		for line := range bytes.Lines(lines) {
			if line[0] == '#' {
				again = append(again, line...)
				continue
			}
			r, err := ParseLine(line)
			if err != nil {
				t.Fatalf("a line of a valid journal: %v", err)
			}
			if LeafHash(r.Body) != r.Hash {
				t.Fatal("a record of a valid journal has another hash")
			}
			again = AppendLine(again, r)
		}
		if !bytes.Equal(again, lines) {
			t.Fatal("a valid journal has another spelling")
		}
	})
}

// FuzzProfile: the check of bytes and the writer of values were made apart and must
// agree. A body is in the profile exactly if writing what it says gives it back.
func FuzzProfile(f *testing.F) {
	for _, v := range loadVectors(f).Bodies {
		f.Add(v.BodyBase64)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checked := CheckProfile(body)
		fields, err := tryDecode(body)
		if err != nil {
			if checked == nil {
				t.Fatalf("accepted, but not JSON: %v", err)
			}
			return
		}
		again, err := Encode(fields)
		if same := err == nil && bytes.Equal(again, body); same != (checked == nil) {
			t.Fatalf("check: %v; encode: %s, %v", checked, again, err)
		}
		if err == nil {
			if err := CheckProfile(again); err != nil {
				t.Fatalf("encoded, but not in the profile: %v", err)
			}
		} else if broken := new(ProfileError); !errors.As(err, &broken) || broken.Error() == "" {
			t.Fatalf("got %v, want a *ProfileError", err)
		}
	})
}
