package contract_test

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

var (
	done     = action.Verdict{Certainty: action.EffectProven, Rule: "done_when"}
	noEffect = action.Verdict{Certainty: action.NoEffectProven, Rule: "no_effect_when"}
	retry    = action.Verdict{Certainty: action.NoEffectProven, Retry: true, Rule: "retry_when"}
	silent   = action.Verdict{Rule: "no_rule_matches"}
)

func judging(t testing.TB, doneWhen, noEffectWhen, retryWhen string) *contract.Contract {
	rules := "done_when: '${" + doneWhen + "}'\n"
	if noEffectWhen != "" {
		rules += "no_effect_when: '${" + noEffectWhen + "}'\n"
	}
	if retryWhen != "" {
		rules += "retry_when: '${" + retryWhen + "}'\n"
	}
	return load(t, with(t, pay, "done_when: ${status == 201}\n", rules))
}

// UN-15, case 031: only what the contract lists is proved. Nothing is failed by default.
func TestOnlyListedAnswersProveAnything(t *testing.T) {
	c := judging(t, "status in [200, 201]", "status in [400, 403, 404, 422]", "status in [429, 503]")
	unlisting := judging(t, "status in [200, 201]", "status in [400, 403, 404, 422]", "")
	for status := range 600 {
		want := silent
		switch status {
		case 200, 201:
			want = done
		case 400, 403, 404, 422:
			want = noEffect
		case 429, 503:
			want = retry
		}
		if got := c.Judge(action.Response{Status: status}); got != want {
			t.Errorf("status %d: got %+v, want %+v", status, got, want)
		}
		if want == retry {
			want = silent
		}
		if got := unlisting.Judge(action.Response{Status: status}); got != want {
			t.Errorf("status %d without retry_when: got %+v, want %+v", status, got, want)
		}
	}
}

// HT-15: 202 is not completed by default, and a conflict proves nothing by default.
func TestAcceptedIsNotCompleted(t *testing.T) {
	c := judging(t, "status in [200, 201]", "status == 400", "")
	for _, status := range []int{202, 204, 301, 302, 303, 307, 308, 409, 500, 502, 504} {
		if got := c.Judge(action.Response{Status: status}); got.Certainty != action.Indeterminate || got.Retry {
			t.Errorf("status %d: got %+v", status, got)
		}
	}
}

func TestRulesReadHeadersAndBody(t *testing.T) {
	c := judging(t, `status == 200 && body.state == "done"`, `status == 200 && body.state == "refused"`,
		`status == 503 && headers["x-not-executed"] == "true" && "retry-after" in headers`)
	for body, want := range map[string]action.Verdict{
		`{"state":"done"}`:    done,
		`{"state":"refused"}`: noEffect,
		`{"state":"running"}`: silent,
		`{"status":"done"}`:   {Rule: "rule_cannot_be_evaluated"},
		`{"state":"done"`:     {Rule: "rule_cannot_be_evaluated"},
		``:                    {Rule: "rule_cannot_be_evaluated"},
		`<html>`:              {Rule: "rule_cannot_be_evaluated"},
		`[]`:                  {Rule: "rule_cannot_be_evaluated"},
		`{"state":9007199254740` + strings.Repeat("9", 50) + `}`: {Rule: "rule_cannot_be_evaluated"},
	} {
		if got := c.Judge(action.Response{Status: 200, Body: []byte(body)}); got != want {
			t.Errorf("body %s: got %+v, want %+v", body, got, want)
		}
	}
	header := map[string][]string{"X-Not-Executed": {"true"}, "Retry-After": {"1"}}
	if got := c.Judge(action.Response{Status: 503, Header: header}); got != retry {
		t.Errorf("503 with the promise: got %+v", got)
	}
	if got := c.Judge(action.Response{Status: 503}); got.Certainty != action.Indeterminate {
		t.Errorf("503 without the promise: got %+v", got)
	}
	header["X-Not-Executed"] = []string{"true", "false"}
	if got := c.Judge(action.Response{Status: 503, Header: header}); got != silent {
		t.Errorf("503 with two promises: got %+v", got)
	}
}

func TestContradictingRulesProveNothing(t *testing.T) {
	c := judging(t, `"x-done" in headers`, `"x-refused" in headers`, `"x-later" in headers`)
	yes := []string{"1"}
	for name, test := range map[string]struct {
		header map[string][]string
		want   action.Verdict
	}{
		"none":                {nil, silent},
		"done":                {map[string][]string{"X-Done": yes}, done},
		"no effect":           {map[string][]string{"x-refused": yes}, noEffect},
		"retry":               {map[string][]string{"X-LATER": yes}, retry},
		"done and no effect":  {map[string][]string{"X-Done": yes, "X-Refused": yes}, action.Verdict{Rule: "several_rules_match"}},
		"no effect and retry": {map[string][]string{"X-Later": yes, "X-Refused": yes}, action.Verdict{Rule: "several_rules_match"}},
		"all": {map[string][]string{"X-Done": yes, "X-Refused": yes, "X-Later": yes},
			action.Verdict{Rule: "several_rules_match"}},
	} {
		if got := c.Judge(action.Response{Status: 200, Header: test.header}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// HT-20: the status may prove the effect though the body broke off, and a rule that reads the body stays silent.
func TestTruncatedBodyLeavesOnlyTheStatusToSpeak(t *testing.T) {
	byStatus := judging(t, "status == 201", `status == 409 && body.code == "closed"`, "")
	if got := byStatus.Judge(action.Response{Status: 201, Body: []byte(`{"id":`), Truncated: true}); got != done {
		t.Errorf("got %+v, want %+v", got, done)
	}
	cut := action.Verdict{Rule: "answer_incomplete"}
	if got := byStatus.Judge(action.Response{Status: 409, Body: []byte(`{"code":"closed"}`), Truncated: true}); got != cut {
		t.Errorf("got %+v, want %+v", got, cut)
	}
	byBody := judging(t, `status == 201 && body.id != ""`, "status == 400", "")
	if got := byBody.Judge(action.Response{Status: 201, Body: []byte(`{"id":"x"}`), Truncated: true}); got != cut {
		t.Errorf("got %+v, want %+v", got, cut)
	}
	if got := byBody.Judge(action.Response{Status: 400, Truncated: true}); got != noEffect {
		t.Errorf("got %+v, want %+v", got, noEffect)
	}
}

func TestJudgeIsBounded(t *testing.T) {
	c := judging(t, "body.all(a, body.all(b, body.all(c, a + b + c >= 0)))", "", "")
	got := c.Judge(action.Response{Status: 200, Body: []byte("[" + strings.Repeat("1,", 2000) + "1]")})
	if got != (action.Verdict{Rule: "rule_cannot_be_evaluated"}) {
		t.Errorf("got %+v", got)
	}
	notBool := judging(t, "body.x", "", "")
	if got := notBool.Judge(action.Response{Status: 200, Body: []byte(`{"x":1}`)}); got.Certainty != action.Indeterminate {
		t.Errorf("got %+v", got)
	}
}

// case 043
func TestRulesCompareIntegersExactly(t *testing.T) {
	c := judging(t, "body.id == 9007199254740993", "", "")
	if got := c.Judge(action.Response{Body: []byte(`{"id":9007199254740993}`)}); got != done {
		t.Errorf("got %+v, want %+v", got, done)
	}
	if got := c.Judge(action.Response{Body: []byte(`{"id":9007199254740992}`)}); got != silent {
		t.Errorf("got %+v, want %+v", got, silent)
	}
}
