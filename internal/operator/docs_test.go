package operator_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
)

var update = flag.Bool("update", false, "write what is printed into the guide")

const guide = "../../docs/review.md"

// What differs from run to run, and what stands for it in the guide.
var steady = []struct{ pattern, with string }{
	{`act_[0-9a-z]+`, "act_01j4k8j7dx7v000000000000ab"},
	{`127\.0\.0\.1:\d+`, "mail.example"},
	{`127\.0\.0\.1`, "mail.example"},
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`, "2026-11-30T09:14:07.104512Z"},
	{`for \d+s\n`, "for 26m41s\n"},
	{`(\n  \d+ )[0-9a-f]{64}`, "${1}8d1f4a0c6b2e9f37d5a81c04e6f2b9730d5c8e1fa46b0927c3d8e5f1a2b40c9d"},
	{`bytes_sent=\d+`, "bytes_sent=412"},
	{`\d+ bytes left`, "412 bytes left"},
}

// UN-27: the example of the guide is what the program prints, and each decision is explained there in its words.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("a")
	c, err := operator.NewClient(s.socket).Show(t.Context(), id)
	s.must(err)
	var b strings.Builder
	s.must(c.Print(&b))
	text := b.String()
	for _, r := range steady {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	page, err := os.ReadFile(guide)
	s.must(err)
	before, rest, ok := strings.Cut(string(page), "```text\n$ deed review show ")
	command, rest, ok2 := strings.Cut(rest, "\n")
	_, after, ok3 := strings.Cut(rest, "```\n")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the guide has no example")
	}
	want := before + "```text\n$ deed review show " + command + "\n" + text + "```\n" + after
	if *update {
		s.must(os.WriteFile(guide, []byte(want), 0o600))
	} else if want != string(page) {
		t.Errorf("the guide shows something else than is printed; run the test with -update. Printed is\n%s", text)
	}
	for _, d := range action.ReviewDecisions {
		if !strings.Contains(string(page), "**"+string(d)+"**") {
			t.Errorf("the guide does not explain %s", d)
		}
	}
}
