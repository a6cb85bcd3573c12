package audit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/journal"
)

const docs = "../../docs/"

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(docs + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// DOC-13, AU-04: the rules are a document, each of the five questions has a row and vectors, and its example is true.
func TestTheFormatIsDescribedAsItIs(t *testing.T) {
	text := page(t, "journal-format.md")
	for _, question := range []string{"encoding", "field order", "Unicode normalization", "time", "absent fields"} {
		if !strings.Contains(text, "\n| "+question+" |") {
			t.Errorf("there is no row about %s", question)
		}
	}
	vectors := page(t, "vectors/journal.json")
	_, profile, _ := strings.Cut(text, "\n## The profile of a body\n")
	profile, _, _ = strings.Cut(profile, "\n## ")
	_, profile, _ = strings.Cut(profile, "|---|---|---|\n")
	rows := regexp.MustCompile(`(?m)^\| [a-zA-Z ]+ \| .* \| ([a-z, ]+) \|$`).FindAllStringSubmatch(profile, -1)
	if len(rows) < 10 {
		t.Errorf("only %d rows were found", len(rows))
	}
	for _, row := range rows {
		for rule := range strings.SplitSeq(row[1], ", ") {
			if !strings.Contains(vectors, `"refused": "`+rule+`"`) {
				t.Errorf("no vector is refused by the rule %q", rule)
			}
		}
	}
	example := func(name string) string {
		_, rest, ok := strings.Cut(text, "<!-- example: "+name+" -->\n```text\n")
		found, _, ok2 := strings.Cut(rest, "```\n")
		if !ok || !ok2 {
			t.Fatalf("there is no example of %s", name)
		}
		return found
	}
	path := filepath.Join(t.TempDir(), "journal.events")
	for name, content := range map[string]string{path: example("records"), path + audit.CheckpointSuffix: example("checkpoint")} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := journal.ParseKey(strings.TrimSuffix(example("key"), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.Verify(path, audit.Demand{Policy: journal.TrustLogs(key)})
	const want = "records_checked: 3\nfirst_sequence: 0\nlast_sequence: 2\nchain: valid\nsignature: valid\n"
	if err != nil || r.Text() != want {
		t.Errorf("the example is\n%s (%v), want\n%s", r.Text(), err, want)
	}
}

// AU-12, AU-17: the claims are exact. No page calls the record more than it is, and the threat model names what it is not.
func TestClaimsAreExact(t *testing.T) {
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob(docs + "decisions/*.md")
	if err != nil || len(pages) < 5 || len(decisions) < 5 {
		t.Fatalf("only %d pages and %d decisions were found (%v)", len(pages), len(decisions), err)
	}
	large := regexp.MustCompile(`(?i)\bimmutab|\bunhackable|\bunbreakable|\bcannot be (tampered|forged)`)
	for _, p := range append(append(pages, decisions...), "../../README.md") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if found := large.Find(text); found != nil {
			t.Errorf("%s says %q", p, found)
		}
	}
	model := strings.Join(strings.Fields(page(t, "threat-model.md")), " ")
	for _, claim := range []string{
		"a person who holds both the log's key and its storage can forge everything after the last outside checkpoint, and nothing before it",
		"With no outside checkpoint they can forge all of it",
		"An action that nobody wrote down cannot be found here",
		"Tamper evidence does not make the original decision right; it makes later rewriting hard",
		"A witness proves that there was one history, not that it was true",
		"the record proves nothing about the content any more",
		"Ed25519 does not hold against a large quantum computer",
	} {
		if !strings.Contains(model, claim) {
			t.Errorf("the threat model does not say: %s", claim)
		}
	}
}
