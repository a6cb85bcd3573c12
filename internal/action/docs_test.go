package action_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"deed.dev/deed/internal/action"
)

var update = flag.Bool("update", false, "rewrite the documents that are printed from the tables")

// golden compares a document with what the tables print. `go test ./internal/action -update` rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/%s differs from the tables in the code; run go test ./internal/action -update and read the diff", name)
	}
}

func TestStatesDocumentIsPrintedFromTheTable(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# States of an action\n\nPrinted from `internal/action` by its tests. What is known of the **effect** and what the agent\n" +
		"received (**delivery**) are two dimensions, never one.\n\n```mermaid\nstateDiagram-v2\n")
	for _, m := range action.Moves {
		from := string(m.From)
		if from == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, m.To, m.Name)
	}
	b.WriteString("```\n\n| state | may the effect have happened? | final | coarse |\n|---|---|---|---|\n")
	for _, s := range action.States {
		final := ""
		if s.Final() {
			final = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", s, s.Effect(), final, s.Coarse())
	}
	b.WriteString("\nA `failed` action that was never sent may be tried again (T22); every other final state stays.\n\n" +
		"## Legal moves\n\nNothing else is legal: the code has no other way, and the database refuses it too.\n\n" +
		"| move | from | to | when | durable before the next step |\n|---|---|---|---|---|\n")
	for _, m := range action.Moves {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s |\n", m.Name, code(string(m.From)), m.To, m.Trigger, m.Durable)
	}
	b.WriteString("\nT2 (an invalid call makes no action) and T23 (only the delivery changes) move no state.\n\n" +
		"## Delivery\n\n| from | to |\n|---|---|\n")
	for _, from := range action.Deliveries {
		for _, to := range action.Deliveries {
			if from.CanBecome(to) {
				fmt.Fprintf(&b, "| `%s` | `%s` |\n", from, to)
			}
		}
	}
	b.WriteString("\nMost transports cannot prove that an answer arrived: the delivery then ends as `unconfirmed`. A call that cites\n" +
		"`repeat_of` proves it.\n")
	golden(t, "states.md", b.Bytes())
}

func code(s string) string {
	if s == "" {
		return "–"
	}
	return "`" + s + "`"
}

// API-11, API-07: the list is closed, and each code says what to do next.
func TestErrorsDocumentIsPrintedFromTheTable(t *testing.T) {
	names := make([]string, 0, len(action.Codes))
	for c := range action.Codes {
		names = append(names, string(c))
	}
	sort.Strings(names)
	var b bytes.Buffer
	b.WriteString("# Errors\n\nPrinted from `internal/action` by its tests. Every answer without a proved effect carries one of these codes.\n" +
		"`retryable` means: the same call, unchanged, may be made again, and deed keeps it to one effect. It never means that\n" +
		"another way around is safe.\n\n| code | retryable | may the effect have happened? | meaning |\n|---|---|---|---|\n")
	for _, n := range names {
		a := action.Codes[action.Code(n)]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n, yes(a.Retryable), yes(a.EffectMay), a.Meaning)
		if a.Meaning == "" {
			t.Errorf("%s has no meaning for people", n)
		}
	}
	golden(t, "errors.md", b.Bytes())
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// DOC-12: one table in code, rendered in the documents. TestRetryRule holds it against MaySend.
func TestRetryRuleDocumentIsPrintedFromTheTable(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# The retry rule\n\nPrinted from `internal/action` by its tests. This is the whole rule by which deed sends anything; there is no other\n" +
		"place that decides. A response that is lost is resumed or looked up where the protocol and the target allow it; the\n" +
		"action is sent again only if this table says so, under its own identity and with its recorded bytes.\n\n" +
		"| state | replay class | another attempt? | why |\n|---|---|---|---|\n")
	for _, r := range action.RetryRule {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.State, r.Class, r.Sent, r.Why)
	}
	b.WriteString("\nThe attempts of an action are bounded by its contract over all layers that may ask: a retry of a retry of a retry counts\n" +
		"against the same number.\n")
	golden(t, "retry-rule.md", b.Bytes())
}
