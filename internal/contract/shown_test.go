package contract_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/contract"
)

func TestAgentsSeeRepeatOfOnToolsWithEffects(t *testing.T) {
	type shown struct {
		Properties           map[string]map[string]any
		Required             []string
		AdditionalProperties *bool
	}
	read := func(c *contract.Contract) (s shown) {
		t.Helper()
		if err := json.Unmarshal(c.InputSchema(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	c := load(t, pay)
	s := read(c)
	if p := s.Properties["repeat_of"]; p["type"] != "string" || !strings.Contains(p["description"].(string), "second time on purpose") {
		t.Errorf("got repeat_of %v", p)
	}
	if slices.Contains(s.Required, "repeat_of") || s.AdditionalProperties == nil || *s.AdditionalProperties {
		t.Errorf("got required %v, additionalProperties %v", s.Required, s.AdditionalProperties)
	}
	if s := read(load(t, readOnly(t))); s.Properties["repeat_of"] != nil {
		t.Error("a read has repeat_of")
	}
	if again := c.InputSchema(); string(again) != string(c.InputSchema()) {
		t.Error("the schema changes from one call to the next")
	}
	if s := read(load(t, with(t, pay, "  type: object\n", "  type: object\n  additionalProperties: true\n"))); !*s.AdditionalProperties {
		t.Error("an open input is shown as closed")
	}
}

// API-18
func TestAnnotationsComeFromTheClass(t *testing.T) {
	effects := contract.Annotations{Title: "Pay", Destructive: true, OpenWorld: true}
	for class, want := range map[string]contract.Annotations{
		"repeatable_with_key":   effects,
		"blocked_after_unknown": effects,
	} {
		if got := load(t, with(t, pay, "class: repeatable_with_key", "class: "+class)+"title: Pay\n").Annotations(); got != want {
			t.Errorf("%s: got %+v, want %+v", class, got, want)
		}
	}
	if got, want := load(t, readOnly(t)).Annotations(), (contract.Annotations{ReadOnly: true, Idempotent: true, OpenWorld: true}); got != want {
		t.Errorf("read_only: got %+v, want %+v", got, want)
	}
}

// DOC-05
func TestLabelComesFromTheClass(t *testing.T) {
	for want, text := range map[string]string{
		"safe":       readOnly(t),
		"idempotent": pay,
		"unsafe":     with(t, pay, "class: repeatable_with_key", "class: blocked_after_unknown"),
	} {
		if got := load(t, text).Label(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
