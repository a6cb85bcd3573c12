package receiptpage_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/receiptpage"
	"deed.dev/deed/verifier"
)

// node runs a script in testdata, and fails the test when Node is missing or the script fails.
func node(t *testing.T, stdin []byte, script string, answer any) {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the page runs on JavaScript, and the tests on Node: run scripts/needs: %v", err)
	}
	// Read here too, so that go test sees when one of them has changed.
	for _, file := range []string{"testdata/receipt.mjs", "testdata/open.mjs", "../../verifier/test/make.mjs"} {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, filepath.Join("testdata", script))
	cmd.Stdin = bytes.NewReader(stdin)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, complaint.Bytes())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// example is a receipt whose texts are hostile to whoever shows them.
type example struct {
	Receipt, Unseen, Policy string
	Hostile                 []string
}

// shown is what a person sees of a page.
type shown struct {
	Verdict, Look, Text string
	Names, Headings     []string
}

func open(t *testing.T, receipt, policy string) (html string, seen shown) {
	t.Helper()
	var page bytes.Buffer
	if err := receiptpage.Write(&page, []byte(receipt), []byte(policy)); err != nil {
		t.Fatal(err)
	}
	html = page.String()
	node(t, page.Bytes(), "open.mjs", &seen)
	return html, seen
}

// AU-09: one file that a person opens offline, and that checks itself.
func TestThePageShowsTheLifeOfTheAction(t *testing.T) {
	var e example
	node(t, nil, "receipt.mjs", &e)
	_, seen := open(t, e.Receipt, e.Policy)
	if !strings.HasPrefix(seen.Verdict, "Valid: ") || seen.Look != "verdict good" {
		t.Errorf("got verdict %q, look %q, want a valid receipt", seen.Verdict, seen.Look)
	}
	if n := len(e.Hostile); len(seen.Headings) != n || !strings.HasPrefix(seen.Headings[0], "Accepted") || !strings.HasPrefix(seen.Headings[n-1], "Completed") {
		t.Errorf("got events %q, want %d from accepted to completed", seen.Headings, n)
	}
	for _, part := range []string{"act_1", "gw.example/audit/page", "2026-10-05 10:09:51.123456 UTC", "witness.example/w", "signed", "From elsewhere"} {
		if !strings.Contains(strings.ToLower(seen.Text), strings.ToLower(part)) {
			t.Errorf("the page does not show %q", part)
		}
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	var e example
	node(t, nil, "receipt.mjs", &e)
	html, seen := open(t, e.Receipt, e.Policy)
	if strings.Contains(html, `"owned"`) || strings.Contains(html, "alert(") || strings.Contains(html, "onerror") {
		t.Error("a text of the receipt or the policy stands in the page as it is")
	}
	for _, text := range e.Hostile[:4] {
		if !strings.Contains(seen.Text, text) {
			t.Errorf("the page does not show the text %q", text)
		}
	}
	if i := strings.IndexFunc(seen.Text+seen.Verdict, func(r rune) bool { return r < ' ' || r == '\u202e' || r == '\u2066' }); i >= 0 {
		t.Errorf("a character that cannot be seen is shown as it is, at %d", i)
	}
	// All that the script makes; none of them runs or loads anything.
	if want := []string{"@class", "@datetime", "dd", "details", "div", "dl", "dt", "h2", "h3", "li", "ol", "p", "pre", "summary", "time"}; !slices.Equal(seen.Names, want) {
		t.Errorf("got elements and attributes %q, want %q", seen.Names, want)
	}
}

func TestNothingIsShownThatIsNotProven(t *testing.T) {
	var e, other example
	node(t, nil, "receipt.mjs", &e)
	node(t, nil, "receipt.mjs", &other)
	for name, c := range map[string]struct{ receipt, policy, verdict, look string }{
		"a changed index":      {strings.Replace(e.Receipt, "index 7", "index 6", 1), e.Policy, "Invalid: ", "verdict bad"},
		"another log":          {e.Receipt, other.Policy, "Invalid: ", "verdict bad"},
		"no witness":           {e.Unseen, e.Policy, "Invalid: not enough of the witnesses", "verdict bad"},
		"no receipt":           {"", e.Policy, "Invalid: ", "verdict bad"},
		"markup for a receipt": {"</script><b>", e.Policy, "Invalid: ", "verdict bad"},
		"no policy":            {e.Receipt, "", "Not checked: ", "verdict bad"},
		"markup for a policy":  {e.Receipt, "</script><b>\n", "Not checked: ", "verdict bad"},
		"a policy without log": {e.Receipt, "quorum none\n", "Not checked: ", "verdict warn"},
	} {
		_, seen := open(t, c.receipt, c.policy)
		if !strings.HasPrefix(seen.Verdict, c.verdict) || seen.Look != c.look || seen.Text != "" {
			t.Errorf("%s: got %q, look %q, and %q, want %q and nothing else", name, seen.Verdict, seen.Look, seen.Text, c.verdict)
		}
	}
}

// A script of its own cannot end the block that it stands in, and nothing can be loaded.
func TestThePartsFitIntoAPage(t *testing.T) {
	for name, part := range map[string]string{"program": verifier.Program, "page script": verifier.PageScript, "style": verifier.PageStyle} {
		for _, ending := range []string{"</script", "<!--", "</style", "<script"} {
			if strings.Contains(strings.ToLower(part), ending) {
				t.Errorf("the %s contains %q", name, ending)
			}
		}
	}
	for _, word := range []string{"url(", "@import"} {
		if strings.Contains(verifier.PageStyle, word) {
			t.Errorf("the style uses %s", word)
		}
	}
	for _, word := range []string{"fetch(", "XMLHttpRequest", "WebSocket", "innerHTML", "insertAdjacent", "document.write", "eval(", "Function("} {
		if strings.Contains(verifier.Program+verifier.PageScript, word) {
			t.Errorf("the script uses %s", word)
		}
	}
}
