package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"deed.dev/deed/internal/contract"
)

// The examples of docs/contracts.md, one for each class, with what deed says about them. IK-22, DOC-03, DOC-07.
func TestReportsOnTheExamples(t *testing.T) {
	var out bytes.Buffer
	for _, c := range documented(t) {
		out.WriteString(contract.Describe(c).String())
		for _, a := range contract.Check(c) {
			out.WriteString(a.String())
		}
		out.WriteString("\n")
	}
	golden(t, "testdata/report.txt", out.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s", file, got)
	}
}

// M-08, DOC-08: six tools and their six answers.
func TestWhereTheEffectHappensDecidesTheLevel(t *testing.T) {
	for name, test := range map[string]struct {
		facts contract.Facts
		want  string
	}{
		"no effect":               {contract.Facts{Where: contract.Nowhere}, "no level"},
		"own database":            {contract.Facts{Where: contract.OwnDatabase}, "L4"},
		"key honoured":            {contract.Facts{Where: contract.Elsewhere, KeyHonoured: true, Found: true}, "L2"},
		"key honoured, long":      {contract.Facts{Where: contract.Elsewhere, KeyHonoured: true, Long: true}, "L3 with L2"},
		"look-up":                 {contract.Facts{Where: contract.Elsewhere, Found: true}, "L5"},
		"nothing":                 {contract.Facts{Where: contract.Elsewhere}, "L5 and an approval of each action"},
		"irreversible with a key": {contract.Facts{Where: contract.Elsewhere, KeyHonoured: true, Irreversible: true}, "L5 and an approval of each action"},
	} {
		got, why, _ := strings.Cut(contract.Decide(test.facts).String(), ": ")
		if got != test.want || why == "" {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		test.facts.Compensates = true
		undo, why, _ := strings.Cut(contract.Decide(test.facts).String(), ": ")
		if undo != test.want || !strings.Contains(why, "same questions") {
			t.Errorf("%s as a compensation: got %s: %s", name, undo, why)
		}
	}
	if zero := contract.Decide(contract.Facts{}); !zero.Approval {
		t.Error("a tool about which nothing is said needs no approval")
	}
}

func TestUnguardedToolsFailTheCheck(t *testing.T) {
	blocked := with(t, pay, "class: repeatable_with_key", "class: blocked_after_unknown")
	for name, test := range map[string]struct {
		text  string
		fails int
	}{
		"key":               {pay, 0},
		"read":              {readOnly(t), 0},
		"nothing, no asks":  {blocked, 1},
		"nothing, each use": {blocked + "each_use: true\n", 0},
		"nothing, look-up":  {blocked + "lookup:\n" + search + "  found: ${status == 200}\nmetadata: {json: /ref}\n", 0},
		"look-up": {with(t, pay, "class: repeatable_with_key", "class: status_queryable") + "lookup:\n" + search +
			"  found: ${status == 200}\nmetadata: {json: /ref}\n", 0},
		"key outlives": {with(t, pay, "keep_result: 30d", "keep_result: 1h"), 1},
	} {
		answers := contract.Check(load(t, test.text))
		fails := 0
		for _, a := range answers {
			if !a.Pass {
				fails++
			}
		}
		if len(answers) != 10 || fails != test.fails {
			t.Errorf("%s: %d of %d answers fail, want %d of 10", name, fails, len(answers), test.fails)
		}
	}
}

// A job that runs on is long, and a look-up that is declared is a way to ask, whatever the class.
func TestLookupAndPollChangeTheLevel(t *testing.T) {
	const asks = "lookup:\n" + search + "  found: ${status == 200}\nmetadata: {json: /ref}\n"
	blocked := with(t, pay, "class: repeatable_with_key", "class: blocked_after_unknown")
	for name, test := range map[string]struct{ text, want string }{
		"key":               {pay, "L2"},
		"key and job":       {pay + job, "L3 with L2"},
		"nothing":           {blocked, "L5 and an approval of each action"},
		"nothing, and job":  {blocked + job, "L5 and an approval of each action"},
		"nothing, but asks": {blocked + asks, "L5"},
	} {
		if got, _, _ := strings.Cut(contract.Level(load(t, test.text)).String(), ": "); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// UN-25, UN-29: the report says what follows a lost response, in each way that a contract can be written.
func TestTheReportSaysWhatFollowsALostResponse(t *testing.T) {
	asks := "metadata: {json: /ref}\nlookup:\n" + search + "  found: ${status == 200}\n"
	const proves = "  authoritative: true\n  settle: 30s\n"
	of := func(class string) string { return with(t, pay, "class: repeatable_with_key", "class: "+class) }
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"key": {pay, []string{"until 23h58m30s after the first send. After that a person decides.", "look-up      none", "poll         none",
			"A person is asked when nothing is left to try, and after 1h without evidence.", "undo         none"}},
		"key, asks":      {pay + asks, []string{`After that the target is asked. "Not found" proves nothing, so it is not sent again. Without evidence for 1h a person decides.`}},
		"key, proves":    {pay + asks + proves, []string{`After that the target is asked. "Not found" from 30s after the last send on lets it be sent again, in at most 3 attempts.`}},
		"asks":           {of("status_queryable") + asks, []string{`Nothing is sent again on a guess. The target is asked. "Not found" proves nothing`, "else it is a look-alike"}},
		"by request":     {of("status_queryable") + asks + "  marker: by_request\n", []string{"GET https://pay.example:443/v1/payments. The question names the action"}},
		"blocked":        {of("blocked_after_unknown"), []string{"Nothing is sent again. A person decides.", "A person is asked at once."}},
		"blocked, asks":  {of("blocked_after_unknown") + asks + proves, []string{`"Not found" from 30s after the last send on closes it as having had no effect.`}},
		"poll":           {pay + job, []string{"it is asked every 2s for up to 1d: GET https://pay.example:443/v1/jobs/{deed.job}. After that a person is asked."}},
		"undo":           {pay + undone, []string{"The tool refund, whose call is an action of its own."}},
		"another review": {with(t, pay, "  attach_for", "  review_after: 90m\n  attach_for"), []string{"after 1h30m without evidence"}},
	} {
		got := contract.Describe(load(t, test.text)).String()
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the report lacks %q:\n%s", name, want, got)
			}
		}
	}
	if got := contract.Describe(load(t, readOnly(t))).String(); strings.Contains(got, "look-up") || strings.Contains(got, "undo") {
		t.Errorf("a read is reported with\n%s", got)
	}
}

// FP-22: what the report lists is what is computed.
func TestReportedArgumentsAreTheMeaningfulOnes(t *testing.T) {
	c := load(t, with(t, pay, "note: {type: string}", "note: {type: string}\n    ts: {type: string}\n    kind: {type: string, default: a}",
		`note: "${args.?note}"`, `ts: "${args.?ts}"`)+"volatile: [ts]\nnormalize: {note: \"${args.?note}\"}\n")
	r := resolve(t, c, `{"invoice":"i","amount":1,"note":"n","ts":"10:00","repeat_of":"rep_1"}`)
	var meaningful map[string]any
	if err := json.Unmarshal(r.Meaningful, &meaningful); err != nil {
		t.Fatal(err)
	}
	f := c.Fingerprint()
	listed := 0
	for _, part := range f.Included {
		if name, ok := strings.CutPrefix(part, "argument /"); ok {
			listed++
			if _, there := meaningful[name]; !there {
				t.Errorf("%s is listed and not in %s", name, r.Meaningful)
			}
		}
	}
	if listed != len(meaningful) {
		t.Errorf("%d arguments are listed and %s has %d", listed, r.Meaningful, len(meaningful))
	}
	excluded, normalized := strings.Join(f.Excluded, ";"), strings.Join(f.Normalized, ";")
	if !strings.Contains(excluded, "argument /ts") || !strings.Contains(excluded, "repeat_of") {
		t.Errorf("got excluded %s", excluded)
	}
	if want := "/note: ${args.?note};/kind: default written"; normalized != want {
		t.Errorf("got normalized %s, want %s", normalized, want)
	}
}
