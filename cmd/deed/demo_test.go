package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// The gateway of the demo inherited the user's settings: with a tool named charge among the user's own contracts, the demo
// charged a real card.
func TestDemoLeavesTheUsersSettingsAlone(t *testing.T) {
	t.Parallel()
	theirs := newDaemon(t, demoContract)
	untouched := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.deed, "demo", "--json")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it has started
	cmd.Env = append(os.Environ(), "DEED_CONTRACTS="+filepath.Join(theirs.dir, "config", "contracts"),
		"DEED_CREDENTIALS="+filepath.Join(theirs.dir, "config", "credentials.yaml"), "DEED_CONFIG_DIR="+filepath.Join(theirs.dir, "config"),
		"DEED_DATA_DIR="+untouched, "DEED_DEMO_SECRET=canary-users-secret", "DEED_WAIT=1ms")
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var got demoResult
	if err := json.Unmarshal(out, &got); err != nil || got.Calls != 81 || got.Effects != 1 || got.Chain != "valid" {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len(theirs.provider.Requests()); n != 0 {
		t.Errorf("the user's own provider saw %d requests", n)
	}
	if _, err := os.Stat(untouched); err == nil {
		t.Error("the user's data directory was made")
	}
}
