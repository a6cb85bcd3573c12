package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const canary = "canary-7f/3+Kd9\"q\\Z&<s é"

type holder struct {
	Name   string
	Secret Secret
	hidden Secret
	list   []Secret
	byName map[string]Secret
	any    any
	ptr    *Secret
}

func held() holder {
	s := NewSecret(canary)
	return holder{"x", s, s, []Secret{s}, map[string]Secret{"k": s}, s, &s}
}

// HT-07, VA-12: no way to print a secret prints it.
func TestSecretNeverPrints(t *testing.T) {
	opened, err := open(Credential{Ref: "r", Kind: Bearer}, canary)
	if err != nil {
		t.Fatal(err)
	}
	_ = opened.forms()
	values := map[string]any{
		"secret": NewSecret(canary), "pointer": &[]Secret{NewSecret(canary)}[0], "struct": held(), "struct pointer": ptr(held()),
		"vault": newVault(nil), "token": accessToken{value: NewSecret(canary)}, "sealed": &sealedEntry{value: newBuffer([]byte(canary)), next: newBuffer([]byte(canary))},
		"beside": opened.With(NewSecret(canary)), "buffer": newBuffer([]byte(canary)), "unlocker": Unlocker{passphrase: newBuffer([]byte(canary))},
		"opened": opened, "opened value": *opened, "slice": []any{NewSecret(canary), held()}, "error": fmt.Errorf("x: %v", held()),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%s", "%+v", "%#v", "%q", "%x", "%X", "%d", "%t", "%-9v", "%T", "%c", "%U", "%o", "%b", "%e", "% x", "%#x", "%+q", "%p"} {
			mustHide(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		if raw, err := json.Marshal(v); err == nil {
			mustHide(t, name+" JSON", string(raw))
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		mustHide(t, name+" log", log.String())
	}
	if got := fmt.Sprint(NewSecret(canary)); got != Redacted {
		t.Errorf("a secret prints as %q, want %q", got, Redacted)
	}
	if got, _ := json.Marshal(struct{ S Secret }{NewSecret(canary)}); string(got) != `{"S":"[secret]"}` {
		t.Errorf("a secret in JSON is %s", got)
	}
	if got := NewSecret(canary).Reveal(); got != canary {
		t.Error("Reveal does not give the value")
	}
}

// HT-07: a panic shows its value on standard error.
func TestSecretNeverPrintsInPanic(t *testing.T) {
	switch os.Getenv("VAULT_TEST_PANIC") {
	case "secret":
		panic(NewSecret(canary))
	case "struct":
		panic(held())
	case "opened":
		o, _ := open(Credential{Ref: "r", Kind: Bearer}, canary)
		panic(o)
	case "deep":
		panic(map[string]any{"a": []any{held(), ptr(held())}})
	case "sealed":
		panic(&sealedEntry{value: newBuffer([]byte(canary))})
	case "error":
		panic(fmt.Errorf("with %+v: %w", held(), errors.New("x")))
	}
	for _, kind := range []string{"secret", "struct", "error", "opened", "deep", "sealed"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSecretNeverPrintsInPanic$")
		cmd.Env = append(os.Environ(), "VAULT_TEST_PANIC="+kind, "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic") {
			t.Fatalf("%s: the process did not panic: %s", kind, out)
		}
		mustHide(t, "panic "+kind, string(out))
	}
}

func mustHide(t *testing.T, what, text string) {
	t.Helper()
	for form, s := range spellings(canary) {
		if strings.Contains(text, s) {
			t.Errorf("%s shows the secret (%s): %s", what, form, text)
		}
	}
}

func ptr[T any](v T) *T { return &v }
