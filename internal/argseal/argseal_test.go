package argseal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/argseal"
)

// VA-11, VA-12: a sealed argument opens for its own action and name, under its own key, unchanged, and in no other way.
func TestASealedArgumentOpensInItsPlaceOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "arguments.key")
	s, err := argseal.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	const value = "canary-of-an-argument"
	sealed, err := s.Seal("act_1", "password", value)
	if err != nil || bytes.Contains(sealed, []byte("canary")) {
		t.Fatalf("sealed is %q, %v", sealed, err)
	}
	again, err := s.Seal("act_1", "password", value)
	if err != nil || bytes.Equal(sealed, again) {
		t.Error("the same value is sealed to the same bytes, so equal secrets can be told")
	}
	same, err := argseal.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := same.Open("act_1", "password", sealed); err != nil || got != value {
		t.Errorf("opened %q, %v", got, err)
	}
	other, err := argseal.OpenKey(filepath.Join(t.TempDir(), "arguments.key"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, got string, err error) {
		t.Helper()
		if err == nil || got != "" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	got, err := s.Open("act_2", "password", sealed)
	refused("another action", got, err)
	got, err = s.Open("act_1", "extra", sealed)
	refused("another name", got, err)
	got, err = other.Open("act_1", "password", sealed)
	refused("another key", got, err)
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		got, err = s.Open("act_1", "password", bad)
		refused(fmt.Sprint("byte ", i), got, err)
		got, err = s.Open("act_1", "password", sealed[:i])
		refused(fmt.Sprint("cut after ", i), got, err)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if printed := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(printed, strings.TrimSpace(string(key))) || printed != "[sealer] [sealer] [sealer] [sealer]" {
		t.Errorf("it prints as %s", printed)
	}
	if err := os.WriteFile(path, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := argseal.OpenKey(path); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a broken key file: %v", err)
	}
}
