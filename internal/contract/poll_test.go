package contract_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

const job = `poll:
  accepted_when: ${status == 202}
  job: ${body.id}
  request: {method: GET, url: "https://pay.example/v1/jobs/{deed.job}"}
  done_when: ${body.state == "done"}
  no_effect_when: ${body.state == "cancelled"}
  result: ${body.result}
`

func polling(t testing.TB, pairs ...string) *contract.Contract {
	t.Helper()
	return load(t, pay+with(t, job, pairs...))
}

// case 020, case 002: accepted is neither done nor failed, and the job is what it is asked about.
func TestAcceptedWorkHasAJob(t *testing.T) {
	unreadable := action.Verdict{Rule: "rule_cannot_be_evaluated"}
	taken := func(id string) action.Verdict { return action.Verdict{Rule: "accepted_when", Job: id} }
	long := strings.Repeat("j", 1<<10)
	c := polling(t)
	for name, test := range map[string]struct {
		c    *contract.Contract
		r    action.Response
		want action.Verdict
	}{
		"text":        {c, answer(202, `{"id":"j1"}`), taken("j1")},
		"number":      {c, answer(202, `{"id":9007199254740993}`), taken("9007199254740993")},
		"slash":       {c, answer(202, `{"id":"projects/1/jobs/2"}`), taken("projects/1/jobs/2")},
		"longest":     {c, answer(202, `{"id":"`+long+`"}`), taken(long)},
		"too long":    {c, answer(202, `{"id":"`+long+`j"}`), unreadable},
		"empty":       {c, answer(202, `{"id":""}`), unreadable},
		"missing":     {c, answer(202, `{}`), unreadable},
		"null":        {c, answer(202, `{"id":null}`), unreadable},
		"fraction":    {c, answer(202, `{"id":1.5}`), unreadable},
		"list":        {c, answer(202, `{"id":["j1"]}`), unreadable},
		"no JSON":     {c, answer(202, `j1`), unreadable},
		"no body":     {c, answer(202, ``), unreadable},
		"control":     {c, answer(202, `{"id":"j\n1"}`), unreadable},
		"dot segment": {c, answer(202, `{"id":"../x?y"}`), unreadable},
		"encoded":     {c, answer(202, `{"id":"%2e%2e"}`), unreadable},
		"truncated":   {c, action.Response{Status: 202, Body: []byte(`{"id":"j1"}`), Truncated: true}, unreadable},
		"optional":    {polling(t, "${body.id}", "${body.?id}"), answer(202, `{}`), unreadable},
		"in text":     {polling(t, "${body.id}", "jobs-${body.id}"), answer(202, `{"id":7}`), taken("jobs-7")},
		"header": {polling(t, "${body.id}", `${headers["x-job"]}`),
			action.Response{Status: 202, Header: map[string][]string{"X-Job": {"j1"}}, Truncated: true}, taken("j1")},
		"no text": {polling(t, "${body.id}", `${headers["x-job"]}`),
			action.Response{Status: 202, Header: map[string][]string{"X-Job": {"j\xff"}}}, unreadable},
		"dots in the query": {polling(t, "jobs/{deed.job}", "jobs?id={deed.job}"), answer(202, `{"id":"../x?y"}`), taken("../x?y")},
		"several rules": {polling(t, "${status == 202}", "${body.id != \"\"}"), answer(201, `{"id":"j1"}`),
			action.Verdict{Rule: "several_rules_match"}},
		"rule reads a truncated body": {polling(t, "${status == 202}", "${body.id != \"\"}"),
			action.Response{Status: 202, Body: []byte(`{"id":"j1"}`), Truncated: true}, action.Verdict{Rule: "answer_incomplete"}},
		"done at once": {c, answer(201, `{}`), done},
		"another":      {c, answer(200, `{"id":"j1"}`), silent},
	} {
		if got := test.c.Judge(test.r); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// case 020: what an answer about the job means.
func TestAnswersAboutAJob(t *testing.T) {
	c := polling(t)
	byStatus := polling(t, `${body.state == "done"}`, "${status == 303}", `${body.state == "cancelled"}`, "${status == 410}")
	both := polling(t, `${body.state == "done"}`, "${body.done}", `${body.state == "cancelled"}`, "${body.over}")
	quiet := polling(t, "  no_effect_when: ${body.state == \"cancelled\"}\n", "")
	named := polling(t, `${body.state == "done"}`, `${body.state == "done" && body.id == deed.job}`)
	id := who
	id.Job = "j1"
	for name, test := range map[string]struct {
		c    *contract.Contract
		r    action.Response
		want action.Finding
	}{
		"done":                    {c, answer(200, `{"state":"done"}`), action.Found},
		"over without effect":     {c, answer(200, `{"state":"cancelled"}`), action.EndedWithout},
		"running":                 {c, answer(200, `{"state":"running"}`), action.Pending},
		"running, 202":            {c, answer(202, `{"state":"queued"}`), action.Pending},
		"no state":                {c, answer(200, `{}`), action.Inconclusive},
		"no JSON":                 {c, answer(200, `<html>`), action.Inconclusive},
		"gone":                    {c, answer(404, `{"error":1}`), action.Inconclusive},
		"error that speaks":       {c, answer(500, `{"state":"running"}`), action.Inconclusive},
		"429":                     {c, answer(429, `{"state":"running"}`), action.Inconclusive},
		"truncated":               {c, action.Response{Status: 200, Body: []byte(`{"state":"done"}`), Truncated: true}, action.Inconclusive},
		"by status, done":         {byStatus, answer(303, ``), action.Found},
		"by status, over":         {byStatus, answer(410, ``), action.EndedWithout},
		"by status, empty":        {byStatus, answer(202, ``), action.Pending},
		"by status, no JSON":      {byStatus, answer(200, `<html>log in</html>`), action.Inconclusive},
		"by status, truncated":    {byStatus, action.Response{Status: 200, Truncated: true}, action.Inconclusive},
		"by status, done and cut": {byStatus, action.Response{Status: 303, Body: []byte(`{`), Truncated: true}, action.Found},
		"by status, 404":          {byStatus, answer(404, `{}`), action.Inconclusive},
		"contradictory":           {both, answer(200, `{"done":true,"over":true}`), action.Contradictory},
		"one of two":              {both, answer(200, `{"done":false,"over":true}`), action.EndedWithout},
		"half an answer":          {both, answer(200, `{"done":true}`), action.Inconclusive},
		"no word for an end":      {quiet, answer(200, `{"state":"cancelled"}`), action.Pending},
		"its own job":             {named, answer(200, `{"state":"done","id":"j1"}`), action.Found},
		"another job":             {named, answer(200, `{"state":"done","id":"j2"}`), action.Pending},
	} {
		if got := test.c.Poll.Find(test.r, id); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if got, given, err := c.Poll.Result(answer(200, `{"state":"done","result":{"b":1,"a":2}}`), id); string(got) != `{"a":2,"b":1}` || !given || err != nil {
		t.Errorf("got result %s, %v, %v", got, given, err)
	}
	if got, given, err := c.Poll.Result(answer(200, `{"state":"done"}`), id); got != nil || !given || err == nil {
		t.Errorf("without a result: got %s, %v, %v", got, given, err)
	}
}

func TestThePollIsARequestOfItsOwn(t *testing.T) {
	c := polling(t, "https://pay.example/v1/jobs/{deed.job}\"", "https://jobs.example/v1/{invoice}/{deed.job}.json?as={deed.action_id}\", headers: {X-Job: \"${deed.job}\"}",
		"  result", "  every: 100ms\n  give_up_after: 30d\n  result")
	id := who
	id.Job = "j/1 ä"
	if op, err := c.PollOperation([]byte(`{"invoice":"i","amount":1}`), id); err == nil {
		t.Errorf("a header took what is no ASCII: %+v", op)
	}
	id.Job = "j/1 a"
	got, err := c.PollOperation([]byte(`{"invoice":"i","amount":1}`), id)
	want := action.Operation{
		Channel: "http", Method: "GET", Timeout: 30000, MaxResult: 1 << 20,
		Target: action.Target{Scheme: "https", Host: "jobs.example", Port: 443},
		Path:   "/v1/i/j%2F1%20a.json", Template: "/v1/{invoice}/{deed.job}.json", Query: "as=act_0123456789abcdefghjkmnpqrs",
		Headers: []action.Header{{Name: "X-Job", Value: "j/1 a"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, %v\nwant\n%+v", got, err, want)
	}
	if c.Poll.Every != 100*time.Millisecond || c.Poll.GiveUpAfter != 30*24*time.Hour {
		t.Errorf("got %+v", c.Poll)
	}
	if p := polling(t).Poll; p.Every != 2*time.Second || p.GiveUpAfter != 24*time.Hour {
		t.Errorf("got %+v", p)
	}
	if op, err := c.PollOperation([]byte(`{"invoice":"i","amount":1}`), who); err == nil || err.Error() != "poll of pay: the action has no job yet" {
		t.Errorf("without a job: got %+v, %v", op, err)
	}
	if op, err := load(t, pay).PollOperation([]byte(`{}`), id); err == nil || err.Error() != "poll of pay: the contract has none" {
		t.Errorf("without a poll: got %+v, %v", op, err)
	}
}

// case 115: a job's id comes from the target, and stays one segment or one value.
func TestAJobKeepsItsPlace(t *testing.T) {
	path, query := polling(t), polling(t, "jobs/{deed.job}", "jobs?id={deed.job}&x=1")
	ask := func(c *contract.Contract, job string) (action.Operation, error) {
		id := who
		id.Job = job
		return c.PollOperation([]byte(`{"invoice":"i","amount":1}`), id)
	}
	for job, want := range map[string]string{
		"a/b": "a%2Fb", "a?b=1": "a%3Fb%3D1", "a#b": "a%23b", "a&x=2": "a%26x%3D2", "@evil": "%40evil", "a;b": "a%3Bb", "{x}": "%7Bx%7D",
		"a%2fb": "a%252fb", "a..b": "a..b", "\u2e2e": "%E2%B8%AE", "//evil.example/x": "%2F%2Fevil.example%2Fx",
	} {
		op, err := ask(path, job)
		if err != nil || op.Path != "/v1/jobs/"+want || op.Query != "" {
			t.Errorf("%q in the path: got %s?%s, %v", job, op.Path, op.Query, err)
		}
		checkAsSent(t, op.URL(), "pay.example:443", 3)
		op, err = ask(query, job)
		if err != nil || op.Path != "/v1/jobs" || op.Query != "id="+want+"&x=1" {
			t.Errorf("%q in the query: got %s?%s, %v", job, op.Path, op.Query, err)
		}
	}
	for _, job := range []string{".", "..", "../x?y", "a/../b", "..\\x", "%2e%2e", "%252e%252e", "..;x", "..%00", "a\nb", "a\x00", strings.Repeat("j", 9000)} {
		op, err := ask(path, job)
		if err == nil || !strings.HasPrefix(err.Error(), "poll of pay: ") || strings.Contains(err.Error(), job) && len(job) > 2 {
			t.Errorf("%q in the path: got %s, %v", job, op.Path, err)
		}
	}
	if op, err := ask(query, "../x?y"); err != nil || op.Query != "id=..%2Fx%3Fy&x=1" || op.Path != "/v1/jobs" {
		t.Errorf("got %s?%s, %v", op.Path, op.Query, err)
	}
}

func FuzzJob(f *testing.F) {
	for _, s := range []string{"j1", "../x?y", "%2e", "a/b", "\u2e2e", "a\r\nb", ""} {
		f.Add(s)
	}
	c := polling(f, "/{deed.job}\"", "/x{deed.job}/state?id={deed.job}\"")
	f.Fuzz(func(t *testing.T, job string) {
		id := who
		id.Job = job
		op, err := c.PollOperation([]byte(`{"invoice":"i","amount":1}`), id)
		if err != nil {
			return
		}
		if strings.Count(op.Path, "/") != 4 || strings.ContainsAny(op.Path, "?#\\ ") || strings.ContainsAny(op.Query, "&#") {
			t.Fatalf("the job changes the shape of %s?%s", op.Path, op.Query)
		}
		checkAsSent(t, op.URL(), "pay.example:443", 4)
	})
}
