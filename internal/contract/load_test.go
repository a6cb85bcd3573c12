package contract_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const wantMark = "-- want --\n"

// Each file holds broken contracts, and after the mark what the loader says about them.
//
// effects.txt shows UN-06, UN-08, DOC-01 and RM-17, key.txt IK-05 and IK-12, class-rules.txt UN-25, times.txt case 112,
// url.txt case 117 and headers.txt the names of case 119.
func TestBrokenContractsAreRefusedWithPlaceAndAdvice(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken contracts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text, want, found := bytes.Cut(data, []byte(wantMark))
			if !found {
				t.Fatalf("%s has no %q", file, wantMark)
			}
			_, err = contract.Parse(name+".yaml", text)
			if err == nil {
				t.Fatal("the broken contracts were accepted")
			}
			got := err.Error() + "\n"
			if *update {
				golden := slices.Concat(text, []byte(wantMark), []byte(got))
				if err := os.WriteFile(file, golden, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			var faults contract.LoadErrors
			if !errors.As(err, &faults) {
				t.Fatalf("the error is a %T", err)
			}
			checkPlaces(t, string(text), faults)
		})
	}
}

// checkPlaces makes sure that every document is faulted, and every fault lies in the text.
func checkPlaces(t *testing.T, text string, faults contract.LoadErrors) {
	lines := strings.Split(text, "\n")
	faulted := map[int]bool{}
	document := make([]int, len(lines)+1)
	for i, line := range lines {
		document[i+1] = document[i]
		if line == "---" {
			document[i+1]++
		}
	}
	for _, f := range faults {
		if f.Line < 1 || f.Line > len(lines) || f.Column < 1 {
			t.Errorf("%v lies outside of the text", f)
			continue
		}
		faulted[document[f.Line]] = true
	}
	for i := range document[len(lines)] + 1 {
		if !faulted[i] {
			t.Errorf("document %d was accepted", i)
		}
	}
}
