package contract

import (
	"strings"
	"testing"
)

const (
	foundBefore = "probed 2026-01-02 against https://old.example:8443: returns_original_only"
	foundNow    = "probed 2026-11-30 against https://sandbox.example: returns_original_and_refuses_changed, stored errors replayed"
)

// UN-08, IK-05: what a probe found goes behind the evidence, and not a byte of the rest changes.
func TestEvidenceIsAddedInPlace(t *testing.T) {
	around := func(evidence string) string {
		return "# Ä comment\r\ntool: other\non_lost_response: {evidence: \"x\"}\n--- # here\n\n# ünd\ntool:  charge   # name\n" +
			"on_lost_response:   # é\n  class: x\n  " + evidence + "\ndone_when:   '${status == 200}' # end\n\n# last\n"
	}
	for name, c := range map[string]struct{ before, after string }{
		"plain":                  {"evidence: the docs, read 2026-11-30", "evidence: \"the docs, read 2026-11-30; NOW\""},
		"plain with a comment":   {"evidence:   the docs  # see it", "evidence:   \"the docs; NOW\"  # see it"},
		"plain with signs":       {"evidence: https://a.example/ü?x=1&y=<2>#z", "evidence: \"https://a.example/ü?x=1&y=<2>#z; NOW\""},
		"double quotes":          {`evidence: "a \"b\" \u00e9 # no"  # see`, `evidence: "a \"b\" \u00e9 # no; NOW"  # see`},
		"single quotes":          {`evidence: 'it''s so'`, `evidence: 'it''s so; NOW'`},
		"once more":              {`evidence: "the docs; OLD"`, `evidence: "the docs; NOW"`},
		"once more, and more":    {`evidence: 'the docs; OLD; seen by us'`, `evidence: 'the docs; seen by us; NOW'`},
		"a block":                {"evidence: >-\n    the docs,\n    read\n\n", "evidence: >-\n    the docs,\n    read; NOW\n\n"},
		"a block once more":      {"evidence: |\n    the docs; OLD\n", "evidence: |\n    the docs; NOW\n"},
		"last of a flow mapping": {"key: {a: 1}\n  evidence: docs", "key: {a: 1}\n  evidence: \"docs; NOW\""},
	} {
		fill := strings.NewReplacer("OLD", foundBefore, "NOW", foundNow)
		got, err := WithEvidence([]byte(around(fill.Replace(c.before))), "charge", foundNow)
		if want := around(fill.Replace(c.after)); err != nil || string(got) != want {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, want)
		}
		again, err := WithEvidence(got, "charge", foundNow)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s, again: %v\ngot  %q\nwant %q", name, err, again, got)
		}
	}
	flow := `{"tool": "charge", "on_lost_response": {"class": "x", "evidence": "docs", "scope": "run"}}`
	got, err := WithEvidence([]byte(flow), "charge", foundNow)
	if want := strings.Replace(flow, `"docs"`, `"docs; `+foundNow+`"`, 1); err != nil || string(got) != want {
		t.Errorf("JSON: %v, got %s", err, got)
	}
	flow = "tool: charge\non_lost_response: {class: x, evidence: the docs, scope: run}\n"
	got, err = WithEvidence([]byte(flow), "charge", foundNow)
	if want := strings.Replace(flow, "the docs", `"the docs; `+foundNow+`"`, 1); err != nil || string(got) != want {
		t.Errorf("flow: %v, got %s", err, got)
	}
}

// What cannot be written in place is left alone, and says so.
func TestEvidenceThatCannotBeAdded(t *testing.T) {
	for name, c := range map[string]struct{ text, found string }{
		"no evidence":   {"tool: charge\non_lost_response: {class: x}\n", foundNow},
		"another tool":  {"tool: other\non_lost_response: {evidence: x}\n", foundNow},
		"several lines": {"tool: charge\non_lost_response:\n  evidence: the docs\n    go on\n", foundNow},
		"another form":  {"tool: charge\non_lost_response: {evidence: x}\n", "probed \"yesterday\""},
		"not readable":  {"tool: charge\non_lost_response: {evidence: x\n", foundNow},
	} {
		if got, err := WithEvidence([]byte(c.text), "charge", c.found); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
}
