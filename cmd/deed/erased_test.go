package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// Retention with the real program: what was kept as long as the contract says is erased by the gateway, and `deed show` says
// so and when. Nothing of it can be opened with the keys, the journal verifies, and asking for the content is refused. (AU-27)
func TestShowSaysThatContentIsErased(t *testing.T) {
	t.Parallel()
	tools := strings.NewReplacer("keep_result: 30d", "keep_result: 2s", "attach_for: 15m", "attach_for: 1s").Replace(demoContract)
	d := newDaemon(t, tools)
	d.start(built.deed, "DEED_LONGEST_RUN=1s")
	if st, ok := d.call(t.Context(), "charge", `{"amount":100,"currency":"usd","customer":"cus_42"}`, "k"); !ok || st.State != action.Completed {
		t.Fatalf("got %+v", st)
	}
	act := d.actions()[0]
	if out, err := d.deed("show", string(act.ID), "--protected", "--why", "in time"); err != nil || !strings.Contains(out, "cus_42") {
		t.Fatalf("in time: %v\n%s", err, out)
	}
	d.stop()
	kept := d.locks()
	time.Sleep(time.Until(act.FinishedAt.Add(2100 * time.Millisecond))) // as long as it is kept
	d.start(built.deed, "DEED_LONGEST_RUN=1s")
	for deadline := time.Now().Add(20 * time.Second); !d.actions()[0].Purged; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was erased")
		}
	}
	out, err := d.deed("show", string(act.ID), "--json")
	var shown struct {
		Erased string           `json:"content_erased_at"`
		Events []map[string]any `json:"events"`
	}
	if err != nil || json.Unmarshal([]byte(out), &shown) != nil {
		t.Fatalf("show: %v\n%s", err, out)
	}
	last := shown.Events[len(shown.Events)-1]
	if last["event"] != "action.purged" || shown.Erased == "" || shown.Erased != last["time"] {
		t.Errorf("erased at %q, and the last event is %v", shown.Erased, last)
	}
	if out, err := d.deed("show", string(act.ID)); err != nil || !strings.Contains(out, "erased "+shown.Erased+": ") || !strings.Contains(out, "content.read") {
		t.Errorf("show: %v\n%s", err, out)
	}
	if out, err := d.deed("show", string(act.ID), "--protected", "--why", "too late"); err == nil || !strings.Contains(out, "CONTENT_ERASED") ||
		!strings.Contains(out, "Nothing was shown") || strings.Contains(out, "cus_42") {
		t.Errorf("too late: %v\n%s", err, out)
	}
	d.stop()
	if left := d.contents(); len(left) != 0 {
		t.Errorf("%d bytes of content are left", len(left))
	}
	files, err := filepath.Glob(filepath.Join(d.data(), "deed.db*"))
	d.must(err)
	for _, path := range files {
		data, err := os.ReadFile(path)
		d.must(err)
		for _, lock := range kept {
			if bytes.Contains(data, lock) {
				t.Errorf("a lock of what is erased is still in %s", filepath.Base(path))
			}
		}
	}
	if len(kept) < 2 || len(files) == 0 {
		t.Errorf("%d locks and %d files were looked at", len(kept), len(files))
	}
	if found, err := journal.Verify(bytes.NewReader(d.export())); err != nil || found.Bad != nil {
		t.Errorf("the journal: %+v, %v", found, err)
	}
}
