package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RM-25, LAB-30's numbers: the first minute. 81 calls through four layers, one intent, one effect, a valid chain.
func TestDemo(t *testing.T) {
	t.Parallel()
	keep := filepath.Join(t.TempDir(), "kept")
	out, err := exec.CommandContext(t.Context(), built.deed, "demo", "--json", "--keep", keep).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Intents, Calls, Effects int
		Naive                   int `json:"naive_effects"`
		Chain                   string
		Seconds                 float64
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("not one JSON object: %v\n%s", err, out)
	}
	if got.Intents != 1 || got.Calls != 81 || got.Effects != 1 || got.Naive != 81 || got.Chain != "valid" || got.Seconds <= 0 {
		t.Errorf("got %+v", got)
	}
	listed, err := exec.CommandContext(t.Context(), built.deed, "actions", "--data", filepath.Join(keep, "state")).Output()
	if err != nil || !strings.Contains(string(listed), "completed") {
		t.Errorf("the data that was kept: %v\n%s", err, listed)
	}
	story, err := exec.CommandContext(t.Context(), built.deed, "demo").Output()
	if err != nil || !strings.Contains(string(story), "81 charges without deed, 1 with it.") || strings.Contains(string(story), "\x1b[") {
		t.Errorf("the story: %v\n%s", err, story)
	}
}
