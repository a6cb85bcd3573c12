package contract_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

var who = contract.Identity{Action: "act_0123456789abcdefghjkmnpqrs", IdemKey: "6f1c0a77d2b94e55"}

// asking is the usual contract with idem_key in its body and a look-up.
func asking(t testing.TB, lookup string, pairs ...string) *contract.Contract {
	t.Helper()
	return load(t, with(t, pay+"metadata: {json: /ref}\nlookup:\n"+lookup, pairs...))
}

const search = `  request: {method: GET, url: "https://pay.example/v1/payments?ref={deed.idem_key}"}
`

func answer(status int, body string) action.Response {
	return action.Response{Status: status, Body: []byte(body)}
}

// UN-13, case 017: what an answer means. Nothing but the effect itself is found, and "absent" is never more than that.
func TestAnswersOfALookup(t *testing.T) {
	one := asking(t, search+"  found: ${size(body.data) == 1}\n")
	byStatus := asking(t, search+"  found: ${status == 200}\n")
	both := asking(t, search+"  found: ${size(body.data) == 1}\n  absent: ${body.gone}\n")
	absentByStatus := asking(t, search+"  found: ${status == 200 && size(body.data) == 1}\n  absent: ${status in [204, 503]}\n")
	member := asking(t, search+"  found: ${body.data.exists(x, x.?ref == optional.of(deed.idem_key))}\n")
	noType := asking(t, search+"  found: ${body.data}\n")
	const mine, theirs = `{"data":[{"id":7,"ref":"6f1c0a77d2b94e55"}]}`, `{"data":[{"id":7,"ref":"other"}]}`
	for name, test := range map[string]struct {
		c    *contract.Contract
		r    action.Response
		want action.Finding
	}{
		"found":                           {one, answer(200, mine), action.Found},
		"found by the action's id":        {one, answer(200, `{"data":[{"key":"act_0123456789abcdefghjkmnpqrs"}]}`), action.Found},
		"found within a text":             {one, answer(200, `{"data":[{"note":"by deed: act_0123456789abcdefghjkmnpqrs."}]}`), action.Found},
		"found as a label":                {one, answer(200, `{"data":[{"labels":["ref=6f1c0a77d2b94e55"]}]}`), action.Found},
		"found at its own address":        {one, answer(200, `{"data":[{"self":"https://x/by-ref/6f1c0a77d2b94e55"}]}`), action.Found},
		"found by status":                 {byStatus, answer(200, mine), action.Found},
		"look-alike":                      {one, answer(200, theirs), action.LookAlike}, // case 019
		"look-alike without a body":       {byStatus, answer(200, ``), action.LookAlike},
		"look-alike and an echo":          {one, answer(200, `{"next":"/v1/payments?ref=6f1c0a77d2b94e55\u0026page=2","data":[{"id":7}]}`), action.LookAlike},
		"mine behind an echo":             {one, answer(200, `{"next":"/v1/payments?ref=6f1c0a77d2b94e55","data":[{"ref":"6f1c0a77d2b94e55"}]}`), action.Found},
		"somebody else's, member":         {member, answer(200, theirs), action.Absent},
		"mine, member":                    {member, answer(200, mine), action.Found},
		"without the member":              {member, answer(200, `{"data":[{}]}`), action.Absent},
		"absent":                          {one, answer(200, `{"data":[]}`), action.Absent},
		"two":                             {one, answer(200, `{"data":[1,2]}`), action.Absent}, // found says exactly one
		"404":                             {byStatus, answer(404, `<html>`), action.Absent},
		"410":                             {byStatus, answer(410, ``), action.Absent},
		"404 that cannot be evaluated":    {one, answer(404, `{"error":{}}`), action.Inconclusive},
		"contradictory":                   {both, answer(200, `{"data":[1],"gone":true}`), action.Contradictory},
		"absent by its own word":          {both, answer(200, `{"data":[],"gone":true}`), action.Absent},
		"neither":                         {both, answer(200, `{"data":[],"gone":false}`), action.Inconclusive},
		"error with its own word":         {both, answer(500, `{"data":[],"gone":true}`), action.Inconclusive},
		"absent by a status of its own":   {absentByStatus, answer(503, ``), action.Absent},
		"404 that absent does not list":   {absentByStatus, answer(404, `{}`), action.Inconclusive},
		"401":                             {byStatus, answer(401, `{}`), action.Inconclusive},
		"403":                             {byStatus, answer(403, `{}`), action.Inconclusive},
		"429":                             {byStatus, answer(429, `{}`), action.Inconclusive},
		"redirect":                        {byStatus, answer(302, `{}`), action.Inconclusive},
		"500":                             {byStatus, answer(500, `{}`), action.Inconclusive},
		"500 with an empty list":          {one, answer(500, `{"data":[]}`), action.Inconclusive},
		"503":                             {byStatus, answer(503, `{}`), action.Inconclusive},
		"no JSON":                         {one, answer(200, `<html>log in</html>`), action.Inconclusive},
		"no JSON, nothing read":           {byStatus, answer(203, `<html>log in</html>`), action.Inconclusive},
		"nothing":                         {byStatus, answer(204, ``), action.Inconclusive},
		"another shape":                   {one, answer(200, `{"error":"x"}`), action.Inconclusive},
		"no truth value":                  {noType, answer(200, `{"data":[]}`), action.Inconclusive},
		"truncated":                       {one, action.Response{Status: 200, Body: []byte(mine), Truncated: true}, action.Inconclusive},
		"truncated, found by status":      {byStatus, action.Response{Status: 200, Body: []byte(mine[:40]), Truncated: true}, action.Found},
		"truncated, look-alike by status": {byStatus, action.Response{Status: 200, Body: []byte(mine[:9]), Truncated: true}, action.LookAlike},
		"truncated success":               {byStatus, action.Response{Status: 201, Body: []byte(`{}`), Truncated: true}, action.Inconclusive},
		"truncated 404":                   {byStatus, action.Response{Status: 404, Body: []byte(`{`), Truncated: true}, action.Absent},
		"truncated where absent reads it": {both, action.Response{Status: 200, Body: []byte(mine), Truncated: true}, action.Inconclusive},
	} {
		if got := test.c.Lookup.Find(test.r, who); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// case 019: the marker is asked for by deed itself, wherever the contract does not say that the question names the action.
func TestOnlyTheMarkerMakesAnEffectOurs(t *testing.T) {
	inAnswer := asking(t, search+"  found: ${status == 200}\n")
	byRequest := asking(t, search+"  found: ${status == 200}\n  marker: by_request\n")
	byFound := asking(t, with(t, search, "?ref={deed.idem_key}", "/{invoice}")+"  found: ${body.hash == deed.action_id}\n  marker: by_request\n")
	if got := byRequest.Lookup.Find(answer(200, `{"id":7}`), who); got != action.Found {
		t.Errorf("the question names the action: got %q", got)
	}
	if got := byFound.Lookup.Find(answer(200, `{"hash":"act_0123456789abcdefghjkmnpqrs"}`), who); got != action.Found {
		t.Errorf("found names the action: got %q", got)
	}
	for name, header := range map[string]http.Header{
		"id":      {"Idempotency-Key": {"act_0123456789abcdefghjkmnpqrs"}},
		"second":  {"X-Refs": {"other", "a, 6f1c0a77d2b94e55"}},
		"in text": {"X-Ref": {"deed:6f1c0a77d2b94e55"}},
	} {
		if got := inAnswer.Lookup.Find(action.Response{Status: 200, Header: header}, who); got != action.Found {
			t.Errorf("header, %s: got %q", name, got)
		}
	}
	for name, header := range map[string]http.Header{
		"none":    {"Date": {"today"}},
		"a part":  {"X-Ref": {"6f1c0a77d2b94e5"}},
		"a link":  {"Link": {`<https://pay.example/v1/payments?ref=6f1c0a77d2b94e55&page=2>; rel="next"`}},
		"content": {"Content-Location": {`/v1/payments?ref=6f1c0a77d2b94e55`}},
	} {
		if got := inAnswer.Lookup.Find(action.Response{Status: 200, Header: header}, who); got != action.LookAlike {
			t.Errorf("header, %s: got %q", name, got)
		}
	}
	if got := inAnswer.Lookup.Find(answer(200, `{}`), contract.Identity{}); got != action.LookAlike {
		t.Errorf("no identity: got %q, and an empty text stands in everything", got)
	}
}

func TestNothingIsProvedAbsentByAnAnswer(t *testing.T) {
	c := asking(t, search+"  found: ${size(body.data) == 1}\n  authoritative: true\n  settle: 30s\n")
	if got := c.Lookup.Find(answer(200, `{"data":[]}`), who); got != action.Absent {
		t.Errorf("got %q; only the gateway knows the time since the send", got)
	}
	if !c.Lookup.Authoritative || c.Lookup.Settle != 30*time.Second {
		t.Errorf("got %+v", c.Lookup)
	}
}

func TestALookupBringsTheResult(t *testing.T) {
	c := asking(t, search+"  found: ${size(body.data) == 1}\n  result: ${body.data[0]}\n")
	got, given, err := c.Lookup.Result(answer(200, `{"data":[{"z":1, "amount": 9007199254740993}]}`), who)
	if want := `{"amount":9007199254740993,"z":1}`; string(got) != want || !given || err != nil {
		t.Errorf("got %s, %v, %v; want %s", got, given, err, want)
	}
	for _, r := range []action.Response{answer(200, `{"data":[]}`), answer(200, `secret`), {Status: 200, Body: []byte(`{"data":[1]}`), Truncated: true}} {
		got, given, err := c.Lookup.Result(r, who)
		if got != nil || !given || err == nil || !strings.HasPrefix(err.Error(), "/lookup/result ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %s, %v, %v", r.Body, got, given, err)
		}
	}
	whole := asking(t, search+"  found: ${size(body.data) == 1}\n")
	if got, given, err := whole.Lookup.Result(answer(200, `{}`), who); got != nil || given || err != nil {
		t.Errorf("without a result: got %s, %v, %v", got, given, err)
	}
	named := asking(t, search+"  found: ${true}\n  result: '${{\"ref\": deed.idem_key, \"id\": headers[\"x-id\"]}}'\n")
	got, _, err = named.Lookup.Result(action.Response{Header: http.Header{"X-Id": {"7"}}}, who)
	if want := `{"id":"7","ref":"6f1c0a77d2b94e55"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestTheLookupIsARequestOfItsOwn(t *testing.T) {
	c := asking(t, `  request:
    method: HEAD
    url: "https://status.example:8443/v1/{invoice}/{deed.action_id}?ref={deed.idem_key}{&currency,note}"
    headers: {X-Ref: "${deed.idem_key}/${args.currency}", X-Note: "${args.?note}"}
  found: ${status == 200}
`, "note: {type: string}", "note: {type: string}\n    currency: {type: string, default: usd}",
		"  method: POST", "  method: POST\n  credential: bank\n  private: [10.0.0.0/8]\n  response_limit: 64KiB",
		"done_when:", "normalize: {currency: \"${args.currency.lowerAscii()}\"}\ntimeout: 2m\ndone_when:")
	requested := resolve(t, c, `{"invoice":"a/b","amount":5,"currency":"EUR"}`).Requested
	got, err := c.LookupOperation(requested, who)
	if err != nil {
		t.Fatal(err)
	}
	want := action.Operation{
		Channel: "http", Method: "HEAD", Credential: "bank", Timeout: 30000, MaxResult: 64 << 10,
		Target:   action.Target{Scheme: "https", Host: "status.example", Port: 8443, Private: []string{"10.0.0.0/8"}},
		Path:     "/v1/a%2Fb/act_0123456789abcdefghjkmnpqrs",
		Template: "/v1/{invoice}/{deed.action_id}",
		Query:    "ref=6f1c0a77d2b94e55&currency=eur",
		Headers:  []action.Header{{Name: "X-Ref", Value: "6f1c0a77d2b94e55/eur"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	again, err := c.LookupOperation(requested, who)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	own := asking(t, with(t, search, "method: GET", "method: GET, credential: reader")+"  found: ${true}\n", "keep_result", "timeout: 5s\nkeep_result")
	if op, err := own.LookupOperation([]byte(`{"invoice":"i","amount":1}`), who); err != nil || op.Credential != "reader" || op.Timeout != 5000 {
		t.Errorf("got %+v, %v", op, err)
	}
}

// A question about nobody would be a search for everything.
func TestALookupNeedsAnIdentity(t *testing.T) {
	c := asking(t, search+"  found: ${true}\n")
	inHeader := asking(t, with(t, search, "?ref={deed.idem_key}\"", "\", headers: {X-Ref: \"${deed.?idem_key}\"}")+"  found: ${true}\n")
	for name, test := range map[string]struct {
		c    *contract.Contract
		args string
		id   contract.Identity
		want string
	}{
		"no id":            {c, `{"invoice":"i","amount":1}`, contract.Identity{IdemKey: "k"}, "look-up of pay: the action has no action_id yet"},
		"no key":           {c, `{"invoice":"i","amount":1}`, contract.Identity{Action: "act_1"}, "look-up of pay: the action has no idem_key yet"},
		"no key, header":   {inHeader, `{"invoice":"i","amount":1}`, contract.Identity{Action: "act_1"}, "look-up of pay: the action has no idem_key yet"},
		"other arguments":  {c, `{"invoice":"i"}`, who, "look-up of pay: INVALID_ARGUMENTS: /amount is missing"},
		"without a lookup": {load(t, pay), `{}`, who, "look-up of pay: the contract has none"},
	} {
		if op, err := test.c.LookupOperation([]byte(test.args), test.id); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %+v, %v; want %s", name, op, err, test.want)
		}
	}
}

// Recovery asks under the version of the contract that the action was made under.
func TestARecordedContractAsksTheSame(t *testing.T) {
	c := asking(t, search+"  found: ${size(body.data) == 1}\n  absent: ${size(body.data) == 0}\n  result: ${body.data[0]}\n  marker: by_request\n")
	again := load(t, string(c.Source))
	a, err := c.LookupOperation([]byte(`{"invoice":"i","amount":1}`), who)
	b, err2 := again.LookupOperation([]byte(`{"amount":1,"invoice":"i"}`), who)
	if err != nil || err2 != nil || !reflect.DeepEqual(a, b) || again.Digest != c.Digest {
		t.Errorf("got %+v and %+v, %v, %v", a, b, err, err2)
	}
	if got := again.Lookup.Find(answer(200, `{"data":[7]}`), who); got != action.Found {
		t.Errorf("got %q", got)
	}
}
