package graph_test

import (
	"os"
	"strings"
	"testing"

	"deed.dev/deed/internal/graph"
)

const guide = "../../docs/investigate.md"

// DOC-17: the guide has the five questions in their order, and its example is what the program prints.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, q := range graph.Questions {
		i := strings.Index(words(string(page))[at:], "**"+q+"**")
		if i < 0 {
			t.Fatalf("%s is not in the guide, or not in its place", q)
		}
		at += i
	}
	r, id, _ := deliveryFailed(t)
	text := printed(t, investigate(t, fromStore(r), id, ""))
	const prompt = "```text\n$ deed investigate "
	before, block, ok := strings.Cut(string(page), prompt)
	command, rest, ok2 := strings.Cut(block, "\n")
	_, after, ok3 := strings.Cut(rest, "```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the guide has no example")
	}
	golden(t, guide, before+prompt+command+"\n"+text+"```\n"+after)

	r2, a, b := twoProcesses(t)
	if c := investigate(t, fromStore(r2), a, b).Conclusion; !strings.Contains(words(string(page)), c) {
		t.Errorf("the guide does not say %q", c)
	}
}

// words joins lines, as a reader does.
func words(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\n> ", "\n")), " ")
}
