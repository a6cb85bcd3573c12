package action_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
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

// UN-21, API-19: what agents are told, on a page that is printed from the code.
func TestAnswersDocumentIsPrintedFromTheCode(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# What an agent is told\n\nPrinted from `internal/action` by its tests. Every answer has one sentence for the model and the same facts as data, under\n" +
		"`deed` in the structured content of an MCP result. It is the same whether it comes from a call, from a call that\n" +
		"attaches, or from `action_status` and `action_wait`.\n\n" +
		"These two tools stand beside those of the contracts, whose names they cannot have. Both take an `action_id` (or\n" +
		"`execution_id`, its other name) of an earlier answer, send nothing and change nothing. `action_wait` answers when nothing more\n" +
		"will become of the action by itself, or after `seconds`, or after what the gateway allows (`wait` in its configuration, which\n" +
		"is also what holds without `seconds`). An agent sees its own actions only; where several share a token, those of the run that\n" +
		"the call names (`dev.deed/run`). Any other id is answered `" + string(action.CodeNoSuchAction) + "`, whether or not there is such an action.\n\n" +
		"An answer without a proved effect has a `code` ([errors](errors.md)) and is marked as an error in MCP, so that nobody takes\n" +
		"it for a success. It always carries its `state`: a client that retries on every error has in hand what it needs to see that\n" +
		"the same call attaches and does nothing twice.\n\n" +
		"A call that attaches, and a look at an action, is told the same after \"Nothing new was done; this is " + toldID + " of\n" +
		clockOfDoc + ".\", and a failure is then `" + string(action.CodePreviouslyFailed) + "` unless it can be tried again. Rows of attached calls that\n" +
		"differ in more are shown.\n\n" +
		"| next | what the caller can do |\n|---|---|\n")
	for _, n := range []struct{ word, means string }{
		{action.NextWait, "make the same call again: it attaches and waits; or `action_wait`"},
		{action.NextStatus, "`action_status` with the `action_id`"},
		{action.NextReview, "a person has to settle it: say so to whoever the agent works for"},
		{action.NextRetry, "make the same call again now, or after `retry_after_seconds`"},
		{action.NextRepeat, "do it a second time on purpose, with `repeat_of`"},
		{action.NextChange, "this call leads nowhere; make another one, or give up"},
	} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.word, n.means)
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\nMay the effect have happened? %s.\n\n", s.state, s.state.Effect())
		rows(&b)
		for _, w := range s.ways {
			row(&b, w.when, w.give(s.state, false, deliveries(s.state, false)[0]))
			if s.state != action.Completed {
				continue
			}
			for _, d := range []action.Delivery{action.DeliveryPending, action.DeliveryInterrupted} {
				a := w.give(s.state, true, d)
				if d == action.DeliveryInterrupted && a.Action.Result == "" {
					continue // told as above
				}
				row(&b, fmt.Sprintf("– attached, delivery %s", d), a)
			}
		}
		i := slices.IndexFunc(s.ways, func(w told) bool { return w.when == s.example })
		example := s.ways[i].give(s.state, true, deliveries(s.state, true)[0])
		fmt.Fprintf(&b, "\nThe facts of \"%s\", attached:\n\n```json\n%s\n```\n", s.example, indented(t, example.Status()))
	}
	b.WriteString("\n## Held\n\nAnother action stands in the way, and nothing of it belongs to this call.\n\n")
	rows(&b)
	for _, w := range held() {
		row(&b, w.when, w.answer)
	}
	fmt.Fprintf(&b, "\n```json\n%s\n```\n", indented(t, held()[0].answer.Status()))
	golden(t, "answers.md", b.Bytes())
}

const clockOfDoc = "14:03:05Z on 2026-11-30"

func rows(b *bytes.Buffer) {
	b.WriteString("| when | what it is told | code | retryable | next |\n|---|---|---|---|---|\n")
}

func row(b *bytes.Buffer, when string, a action.Answer) {
	s := a.Status()
	words := make([]string, len(s.Next))
	for i, n := range s.Next {
		words[i] = code(n)
	}
	c := code(string(s.Code))
	if s.ErrorType != "" {
		c += ", " + s.ErrorType
	}
	next := strings.Join(words, ", ")
	if next == "" {
		next = "–"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", when, s.Message, c, yes(s.Retryable), next)
}
