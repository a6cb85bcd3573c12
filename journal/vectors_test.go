package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// vectors is docs/vectors/journal.json.
type vectors struct {
	Bodies []struct {
		About      string // what the rules fix: order, unicode, time, absent, encoding, number, depth
		Name       string
		Body       string
		BodyBase64 []byte `json:"body_base64"` // where the body is not valid text
		Hash       string // of a body that is accepted
		Refused    Rule
	}
	Journals []struct {
		Name   string
		Lines  string
		Result struct {
			RecordsChecked uint64  `json:"records_checked"`
			FirstSequence  uint64  `json:"first_sequence"`
			LastSequence   uint64  `json:"last_sequence"`
			Head           string  `json:"head"`
			Root           *string `json:"root"` // base64, as in checkpoints; absent when it is not known
			Chain          string  `json:"chain"`
			Bad            *struct {
				Sequence           uint64
				Reason             Reason
				Rule               Rule
				Expected, Observed string
				ObservedSequence   uint64 `json:"observed_sequence"`
				TornBytes          int    `json:"torn_bytes"`
			}
		}
	}
}

func loadVectors(t testing.TB) (file vectors) {
	t.Helper()
	data, err := os.ReadFile("../docs/vectors/journal.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Bodies) == 0 || len(file.Journals) == 0 {
		t.Fatal("the vector file is empty")
	}
	for i, v := range file.Bodies {
		if v.BodyBase64 == nil {
			file.Bodies[i].BodyBase64 = []byte(v.Body)
		}
	}
	return file
}

// AU-04: the written rules are in doc.go. Field order, Unicode normalization, time
// precision, absent fields and byte encoding each have vectors of what is accepted
// and what is not, with the hash that every implementation must get.
func TestBodyVectors(t *testing.T) {
	accepted, refused := map[string]int{}, map[string]int{}
	rules := map[Rule]bool{}
	for _, v := range loadVectors(t).Bodies {
		t.Run(v.Name, func(t *testing.T) {
			body := v.BodyBase64
			err := CheckProfile(body)
			if v.Refused != "" {
				refused[v.About]++
				rules[v.Refused] = true
				var broken *ProfileError
				if !errors.As(err, &broken) || broken.Rule != v.Refused {
					t.Fatalf("got %v, want rule %q broken", err, v.Refused)
				}
				if broken.Offset < 0 || broken.Offset > len(body) {
					t.Errorf("got offset %d in %d bytes", broken.Offset, len(body))
				}
				return
			}
			accepted[v.About]++
			if err != nil {
				t.Fatalf("got %v, want it accepted", err)
			}
			if got := LeafHash(body).String(); got != v.Hash {
				t.Errorf("got hash %s, want %s", got, v.Hash)
			}
			if got, err := Encode(decode(t, body)); err != nil || !bytes.Equal(got, body) {
				t.Errorf("encoded again: got %s, %v, want %s", got, err, body)
			}
		})
	}
	for _, about := range []string{"order", "time", "absent", "encoding", "number", "depth"} {
		if accepted[about] == 0 || refused[about] == 0 {
			t.Errorf("about %s: got %d accepted and %d refused, want some of each", about, accepted[about], refused[about])
		}
	}
	if accepted["unicode"] == 0 || refused["unicode"] != 0 {
		t.Error("text is kept as it is: no vector may refuse a form of it")
	}
	for _, rule := range []Rule{RuleSyntax, RuleEncoding, RuleSpace, RuleName, RuleOrder, RuleReserved, RuleLink, RuleEscape, RuleNumber, RuleNull, RuleTime, RuleDepth} {
		if !rules[rule] {
			t.Errorf("no vector breaks the rule %q", rule)
		}
	}
}

func TestJournalVectors(t *testing.T) {
	for _, v := range loadVectors(t).Journals {
		t.Run(v.Name, func(t *testing.T) {
			got, err := Verify(strings.NewReader(v.Lines))
			if err != nil {
				t.Fatal(err)
			}
			want := v.Result
			if got.RecordsChecked != want.RecordsChecked || got.FirstSequence != want.FirstSequence || got.LastSequence != want.LastSequence {
				t.Errorf("got %d records from %d to %d, want %d from %d to %d", got.RecordsChecked, got.FirstSequence, got.LastSequence,
					want.RecordsChecked, want.FirstSequence, want.LastSequence)
			}
			if got.Head.String() != want.Head || got.Chain.String() != want.Chain {
				t.Errorf("got head %s, chain %s, want %s, %s", got.Head, got.Chain, want.Head, want.Chain)
			}
			if got.RootKnown != (want.Root != nil) {
				t.Errorf("got root known %t, want %t", got.RootKnown, want.Root != nil)
			} else if root := base64.StdEncoding.EncodeToString(got.Root[:]); got.RootKnown && root != *want.Root {
				t.Errorf("got root %s, want %s", root, *want.Root)
			}
			if (got.Bad != nil) != (want.Bad != nil) {
				t.Fatalf("got %v, want %+v", got.Bad, want.Bad)
			}
			if want.Bad == nil {
				return
			}
			if got.Bad.Sequence != want.Bad.Sequence || got.Bad.Reason != want.Bad.Reason {
				t.Errorf("got %v, want %s at %d", got.Bad, want.Bad.Reason, want.Bad.Sequence)
			}
			if want.Bad.Expected != "" && (got.Bad.Expected.String() != want.Bad.Expected || got.Bad.Observed.String() != want.Bad.Observed) {
				t.Errorf("got %v, want expected %s, observed %s", got.Bad, want.Bad.Expected, want.Bad.Observed)
			}
			if got.Bad.ObservedSequence != want.Bad.ObservedSequence || got.Bad.TornBytes != want.Bad.TornBytes {
				t.Errorf("got %v, want sequence %d, torn bytes %d", got.Bad, want.Bad.ObservedSequence, want.Bad.TornBytes)
			}
			var broken *ProfileError
			if errors.As(got.Bad, &broken) != (want.Bad.Rule != "") || broken != nil && broken.Rule != want.Bad.Rule {
				t.Errorf("got %v, want rule %q", got.Bad, want.Bad.Rule)
			}
		})
	}
}

// decode reads a body as another program would, for Encode to write it again.
func decode(t testing.TB, body []byte) map[string]any {
	t.Helper()
	fields, err := tryDecode(body)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func tryDecode(body []byte) (fields map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	return integers(fields).(map[string]any), nil
}

// integers replaces numbers by int64, which is what Encode takes.
func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		return 0.5
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = integers(v[name])
		}
	}
	return v
}
