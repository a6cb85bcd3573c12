package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/contract"
)

const probedFor = "probed 2026-11-30 against https://sandbox.example: returns_original_only"

// evidenceStage is a directory with one contract, opened as before a probe.
func evidenceStage(t *testing.T) (*app, config.Config, *contractFile) {
	t.Helper()
	cfg := config.Config{Contracts: t.TempDir()}
	path := filepath.Join(cfg.Contracts, "charge.yaml")
	text := strings.ReplaceAll(demoContract, "PROVIDER", "https://target.example")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	set, err := contract.Load(cfg.Contracts)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := set.Tool("charge")
	f, err := openContractFile(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return &app{terminal: terminal{err: &strings.Builder{}}}, cfg, f
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// UN-08: only the evidence changes, and the file keeps its mode.
func TestEvidenceIsWritten(t *testing.T) {
	a, cfg, f := evidenceStage(t)
	if err := a.writeEvidence(cfg, f, probedFor); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(f.text), "evidence: the provider of this demo, lab/provider",
		`evidence: "the provider of this demo, lab/provider; `+probedFor+`"`, 1)
	if got := readText(t, f.path); got != want {
		t.Errorf("got %s", got)
	}
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A contract that somebody changed while the probe ran is left alone.
func TestEvidenceIsNotWrittenOverAChange(t *testing.T) {
	a, cfg, f := evidenceStage(t)
	changed := string(f.text) + "# mine\n"
	if err := os.WriteFile(f.path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	err := a.writeEvidence(cfg, f, probedFor)
	if err == nil || !strings.Contains(err.Error(), "was changed while the probe ran") || !strings.Contains(err.Error(), probedFor) {
		t.Errorf("got %v", err)
	}
	if got := readText(t, f.path); got != changed {
		t.Errorf("got %s", got)
	}
}

// When the contracts do not load afterwards, whatever the reason, the text before comes back.
func TestEvidenceIsTakenBack(t *testing.T) {
	a, cfg, f := evidenceStage(t)
	if err := os.WriteFile(filepath.Join(cfg.Contracts, "other.yaml"), []byte("tool: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.writeEvidence(cfg, f, probedFor); err == nil || !strings.Contains(err.Error(), "The file is as it was") {
		t.Errorf("got %v", err)
	}
	if got := readText(t, f.path); got != string(f.text) {
		t.Errorf("got %s", got)
	}
}
