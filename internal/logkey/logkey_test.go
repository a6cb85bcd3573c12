package logkey_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deed.dev/deed/internal/logkey"
	"deed.dev/deed/journal"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A key is made once, is for its owner alone, and is the same when it is opened again.
func TestAKeyIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := logkey.Open(dir); !errors.Is(err, logkey.ErrMissing) {
		t.Errorf("where there is none: %v", err)
	}
	if keys, err := logkey.ReadPublic(dir); err != nil || len(keys) != 0 {
		t.Errorf("where there is none, public: %v (%v)", keys, err)
	}
	made, err := logkey.Create(dir, "gw.example/audit")
	must(t, err)
	if _, err := logkey.Create(dir, "gw.example/audit"); err == nil {
		t.Error("a second key was made in its place")
	}
	again, err := logkey.Open(dir)
	must(t, err)
	public, err := logkey.ReadPublic(dir)
	must(t, err)
	if again.Signer().Key() != made.Signer().Key() || len(public) != 1 || public[0] != made.Signer().Key() || public[0].Name() != "gw.example/audit" {
		t.Errorf("made %v, opened %v, public %v", made.Signer().Key(), again.Signer().Key(), public)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "log.key"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %o (%v)", path, info.Mode(), want, err)
			}
		}
	}
	if _, err := logkey.Create(filepath.Join(dir, "other"), "two words"); err == nil {
		t.Error("a name that checkpoints cannot have was taken")
	}
}

// What is wrong with a file is said, and nothing of a private key is.
func TestDamagedFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, text string }{
		"half a private key": {"log.key", "PRIVATE+KEY+gw.example/audit+12345678+AWsecretsecret"},
		"no private key":     {"log.key", ""},
		"old keys":           {"old.pub", "gw.example\n"},
		"a huge file":        {"log.key", strings.Repeat("x", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keys")
			_, err := logkey.Create(dir, "gw.example/audit")
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600))
			if _, err := logkey.Open(dir); err == nil || errors.Is(err, logkey.ErrMissing) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "keys")
	d, err := logkey.Create(dir, "gw.example/audit")
	must(t, err)
	if signed, _, err := d.Remembered(); signed != nil || err != nil {
		t.Errorf("where nothing was signed: %q (%v)", signed, err)
	}
	private, _, err := journal.GenerateKey(strings.NewReader(strings.Repeat("k", 64)), "gw.example/audit")
	must(t, err)
	other, err := journal.NewSigner(private)
	must(t, err)
	forged, err := journal.SignCheckpoint(journal.Checkpoint{Origin: "gw.example/audit", Size: 3}, other)
	must(t, err)
	must(t, d.Remember(forged))
	if _, _, err := d.Remembered(); err == nil || !strings.Contains(err.Error(), "log.checkpoint") {
		t.Errorf("a checkpoint of another key: %v", err)
	}
}
