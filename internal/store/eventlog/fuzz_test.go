package eventlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"deed.dev/deed/internal/store/eventlog"
)

// FuzzDecode: whatever a journal holds, reading it is an error at worst.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/v*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden bodies (%v)", err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := eventlog.Decode(body)
		if err != nil {
			return
		}
		if _, err := eventlog.Body(r.Event, about, r.After); err != nil {
			t.Logf("what was read cannot be written: %v", err) // host "" of an accepted action and the like
		}
	})
}
