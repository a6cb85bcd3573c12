package approval

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A policy counts as it stands in the moment, and one that is missing, damaged or open to others lets nobody decide and says so.
func TestThePolicyFileIsReadEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvers.yaml")
	file := PolicyFile(path)
	_, public := keyFile(t)
	good := "approvers:\n  - name: ada\n    actors: [\"token:ada-agent\"]\n    keys:\n      - " + public + "\n"
	write := func(text string, mode os.FileMode) {
		t.Helper()
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(says string) {
		t.Helper()
		if p, err := file.Policy(); err == nil || p != nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Errorf("it says %v, want %q and no path", err, says)
		}
	}
	refused("there is no approvers.yaml")
	write(good, 0o600)
	p, err := file.Policy()
	if err != nil {
		t.Fatal(err)
	}
	ada, ok := p.Of(p.Approvers[0].Keys[0].CLI)
	if _, nobody := p.Of([]byte("no key")); !ok || ada.Name != "ada" || nobody || !ada.ActsAs("token:ada-agent") || ada.ActsAs("token:other") {
		t.Errorf("the key is %+v's", ada)
	}
	if runtime.GOOS != "windows" {
		for _, mode := range []os.FileMode{0o620, 0o602, 0o666} {
			write(good, mode)
			refused("written by others")
		}
	}
	write(good+"    surprise: 1\n", 0o600)
	refused("surprise")
	write(strings.Replace(good, "token:ada-agent", "ada-agent", 1), 0o600)
	refused("token:NAME")
	write(strings.Repeat("#", maxPolicy+1), 0o600)
	refused("larger")
	_ = os.Remove(path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("no plain file")
}
