package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/probe"
	"deed.dev/deed/lab/provider"
)

// charge is a contract for a target; REPEAT is what it says of a key that comes again.
const charge = `tool: charge
description: Charge a card.
input:
  type: object
  required: [amount, currency]
  properties:
    amount: {type: integer}
    currency: {type: string}
    name: {type: string, default: good}
http:
  method: POST
  url: BASE/v1/objects/{name}
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: "${args.currency}", metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response:
  class: CLASS
  key: {header: Idempotency-Key, repeat: REPEAT, kept_for: 24h}
  attach_for: 15m
  evidence: the docs
done_when: ${status == 201}
timeout: 500ms
keep_result: 30d
`

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// stage is a target with a contract.
type stage struct {
	*testing.T
	provider *provider.Server
	setup    probe.Setup
	records  records
}

func newStage(t *testing.T, declared contract.Repeat, class action.Class) *stage {
	t.Helper()
	p, err := provider.Open(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	base, err := p.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &stage{T: t, provider: p, setup: setup(t, base, declared, class)}
}

func setup(t *testing.T, base string, declared contract.Repeat, class action.Class) probe.Setup {
	t.Helper()
	text := strings.NewReplacer("BASE", base, "REPEAT", string(declared), "CLASS", string(class)).Replace(charge)
	all, err := contract.Parse("charge.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return probe.Setup{
		Contract: all[0], First: []byte(`{"amount":100,"currency":"eur"}`), Changed: []byte(`{"amount":200,"currency":"eur"}`),
		Now: func() time.Time { return now },
	}
}

// records is a recorder that remembers, and can refuse.
type records struct {
	planned  []probe.Plan
	observed []probe.Report
	refuse   error
}

func (r *records) Planned(_ context.Context, p probe.Plan) error {
	r.planned = append(r.planned, p)
	return r.refuse
}

func (r *records) Observed(_ context.Context, report probe.Report) error {
	r.observed = append(r.observed, report)
	return nil
}

func run(t *testing.T, s probe.Setup, r *records) probe.Report {
	t.Helper()
	p, err := probe.New(s)
	if err != nil {
		t.Fatal(err)
	}
	executor := httpexec.New(httpexec.Options{})
	defer executor.Close()
	report, err := p.Run(t.Context(), executor, r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (s *stage) run() probe.Report {
	s.Helper()
	return run(s.T, s.setup, &s.records)
}

func (s *stage) set(w provider.Switches) {
	s.Helper()
	if err := s.provider.Set(w); err != nil {
		s.Fatal(err)
	}
}

// want compares a report with what the provider itself saw.
func (s *stage) want(r probe.Report, verdict probe.Verdict, found contract.Repeat, requests, effects int) {
	s.Helper()
	if r.Verdict != verdict || r.Found != found {
		s.Errorf("got %s, %s (%s); want %s, %s", r.Verdict, r.Found, r.Means, verdict, found)
	}
	if got := len(s.provider.Requests()); got != requests || len(r.Steps) != requests {
		s.Errorf("the provider saw %d requests, the report has %d; want %d", got, len(r.Steps), requests)
	}
	if got := len(s.provider.Effects()); got != effects {
		s.Errorf("the provider had %d effects, want %d", got, effects)
	}
	if len(s.records.planned) != 1 || len(s.records.observed) != 1 {
		s.Errorf("%d plans and %d reports are on record, want one of each", len(s.records.planned), len(s.records.observed))
	}
}

// IK-05: a target that returns the original and refuses a changed request.
func TestTargetThatHonoursKeys(t *testing.T) {
	s := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
	r := s.run()
	s.want(r, probe.Agrees, contract.ReturnsOriginalRefusesChanged, 3, 1)
	if want := "probed 2026-11-30 against " + s.records.planned[0].Target + ": returns_original_and_refuses_changed"; r.Evidence() != want {
		t.Errorf("the evidence is %q, want %q", r.Evidence(), want)
	}
	keys := map[string]bool{}
	for _, q := range s.provider.Requests() {
		keys[q.Values("Idempotency-Key")[0]] = true
	}
	for key := range keys {
		if len(keys) != 1 || !action.ValidID(action.Prefix, key) {
			t.Errorf("the keys are %v, want one action id", keys)
		}
	}
}

// IK-05, IK-06: a target that takes no notice of the key. Each request is an effect, and the class is not true.
func TestTargetThatIgnoresKeys(t *testing.T) {
	s := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
	s.set(provider.Switches{Keys: provider.IgnoreKey})
	r := s.run()
	s.want(r, probe.Contradicts, contract.RepeatIgnored, 3, 3)
	if want := "a resend with this key is a second effect: class repeatable_with_key is not true for this target"; r.Means != want {
		t.Errorf("it means %q, want %q", r.Means, want)
	}
	if r.Evidence() != "" {
		t.Errorf("the evidence is %q, want none", r.Evidence())
	}
}

// IK-06: a target that answers a changed request with the original. A contract that says refusal is contradicted.
func TestTargetThatAcceptsAChangedBody(t *testing.T) {
	for declared, verdict := range map[contract.Repeat]probe.Verdict{
		contract.ReturnsOriginalRefusesChanged: probe.Contradicts,
		contract.ReturnsOriginalOnly:           probe.Agrees,
	} {
		s := newStage(t, declared, action.RepeatableWithKey)
		s.set(provider.Switches{Keys: provider.AcceptChangedBody})
		r := s.run()
		s.want(r, verdict, contract.ReturnsOriginalOnly, 3, 1)
		if !strings.Contains(r.Means, "does not prove that what was sent was done") {
			t.Errorf("it means %q", r.Means)
		}
	}
}

// A contract that promises less than the target does is not contradicted; one that denies it is.
func TestContractThatPromisesLess(t *testing.T) {
	for declared, verdict := range map[contract.Repeat]probe.Verdict{
		contract.ReturnsOriginalOnly: probe.Agrees, contract.RepeatUnspecified: probe.Agrees, contract.RepeatIgnored: probe.Contradicts,
	} {
		class := action.BlockedAfterUnknown
		if declared == contract.ReturnsOriginalOnly {
			class = action.RepeatableWithKey
		}
		s := newStage(t, declared, class)
		s.want(s.run(), verdict, contract.ReturnsOriginalRefusesChanged, 3, 1)
	}
}

// IK-21: a target stores an error after its effect and gives it again, gives the same error for another reason, does not
// store it, or gives none.
func TestStoredErrors(t *testing.T) {
	for name, c := range map[string]struct {
		faults            []provider.Fault
		verdict           probe.Verdict
		errors            probe.StoredErrors
		suffix            string
		requests, effects int
	}{
		"stored":     {[]provider.Fault{{Kind: provider.CommitThenStatus, Times: 1, Status: 500}}, probe.Agrees, probe.ErrorsReplayed, ", stored errors replayed", 5, 2},
		"alike":      {[]provider.Fault{{Kind: provider.AnswerStatus, Status: 402}}, probe.Agrees, probe.ErrorsReplayed, ", stored errors replayed", 5, 1},
		"not stored": {[]provider.Fault{{Kind: provider.AnswerStatus, Times: 1, Status: 500}}, probe.Agrees, probe.ErrorsNotStored, ", errors not stored", 5, 2},
		"lost":       {[]provider.Fault{{Kind: provider.AnswerStatus, Times: 1, Status: 500}, {Kind: provider.DropAfterRead}}, probe.Unknown, probe.ErrorsUnknown, "", 5, 1},
		"no error":   {nil, probe.Unknown, probe.ErrorsUnknown, "", 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
			s.setup.Failing = []byte(`{"amount":-1,"currency":"eur","name":"bad"}`)
			for i := range c.faults {
				c.faults[i].Path = "/v1/objects/bad"
			}
			s.set(provider.Switches{Faults: c.faults})
			r := s.run()
			s.want(r, c.verdict, contract.ReturnsOriginalRefusesChanged, c.requests, c.effects)
			if r.Errors != c.errors || !strings.HasSuffix(r.Evidence(), c.suffix) {
				t.Errorf("errors are %s, the evidence is %q (%s)", r.Errors, r.Evidence(), r.Means)
			}
			seen := s.provider.Requests()
			if own := seen[3].Values("Idempotency-Key")[0]; own == seen[0].Values("Idempotency-Key")[0] {
				t.Errorf("the failing request has the key of the others, %s", own)
			}
		})
	}
}

// UN-08: what is not clear confirms nothing, and ends the probe before it costs another effect.
func TestWhatIsNotClearConfirmsNothing(t *testing.T) {
	pass := provider.Fault{Kind: provider.Delay, Delay: time.Millisecond, Times: 1}
	for name, c := range map[string]struct {
		faults            []provider.Fault
		requests, effects int
	}{
		"first lost":         {[]provider.Fault{{Kind: provider.CommitThenDrop}}, 1, 1},
		"first cut":          {[]provider.Fault{{Kind: provider.TruncateBody}}, 1, 1},
		"first refused":      {[]provider.Fault{{Kind: provider.AnswerStatus, Status: 422}}, 1, 0},
		"first silent":       {[]provider.Fault{{Kind: provider.CommitThenHang}}, 1, 1},
		"same lost":          {[]provider.Fault{pass, {Kind: provider.CommitThenDrop}}, 2, 1},
		"same fails":         {[]provider.Fault{pass, {Kind: provider.AnswerStatus, Status: 500}}, 2, 1},
		"same not now":       {[]provider.Fault{pass, {Kind: provider.AnswerStatus, Status: 429}}, 2, 1},
		"same not allowed":   {[]provider.Fault{pass, {Kind: provider.AnswerStatus, Status: 401}}, 2, 1},
		"changed lost":       {[]provider.Fault{pass, pass, {Kind: provider.DropAfterRead}}, 3, 1},
		"changed not now":    {[]provider.Fault{pass, pass, {Kind: provider.AnswerStatus, Status: 429}}, 3, 1},
		"changed redirected": {[]provider.Fault{pass, pass, {Kind: provider.Redirect, Status: 307, Location: "/"}}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, declared := range []contract.Repeat{contract.ReturnsOriginalRefusesChanged, contract.ReturnsOriginalOnly} {
				s := newStage(t, declared, action.RepeatableWithKey)
				s.setup.Failing = []byte(`{"amount":-1,"currency":"eur","name":"bad"}`)
				s.set(provider.Switches{Faults: c.faults})
				r := s.run()
				s.want(r, probe.Unknown, contract.RepeatUnspecified, c.requests, c.effects)
				if r.Evidence() != "" || r.Means == "" {
					t.Errorf("the evidence is %q, it means %q", r.Evidence(), r.Means)
				}
			}
		})
	}
}

// A target that refuses a resend although the first request was done makes a failure of a success.
func TestTargetThatRefusesAResend(t *testing.T) {
	s := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
	s.set(provider.Switches{Faults: []provider.Fault{{Kind: provider.Delay, Delay: time.Millisecond, Times: 1}, {Kind: provider.AnswerStatus, Status: 409}}})
	r := s.run()
	s.want(r, probe.Contradicts, contract.RepeatUnspecified, 3, 1)
	if !strings.Contains(r.Means, "is refused (409)") {
		t.Errorf("it means %q", r.Means)
	}
}

// Targets of other kinds, each a few lines.
func TestOtherTargets(t *testing.T) {
	for name, c := range map[string]struct {
		serve   func(number int, body map[string]any) (status int, answer string)
		ignore  []string
		verdict probe.Verdict
		found   contract.Repeat
		says    string
	}{
		"answers that name nothing": { // and that would be equal for two effects
			func(int, map[string]any) (int, string) { return 201, `{"ok":true,"code":0,"message":"created"}` }, nil,
			probe.Unknown, contract.RepeatUnspecified, "names nothing"},
		"empty answers": {
			func(int, map[string]any) (int, string) { return 204, "" }, nil, probe.Unknown, contract.RepeatUnspecified, "names nothing"},
		"answers that echo the request only": {
			func(_ int, body map[string]any) (int, string) { b, _ := json.Marshal(body); return 201, string(b) }, nil,
			probe.Unknown, contract.RepeatUnspecified, "names nothing"},
		"the key counts for one body only": {
			func(_ int, body map[string]any) (int, string) {
				return 201, `{"id":"ch_` + strconv.FormatFloat(body["amount"].(float64), 'f', 0, 64) + `7"}`
			}, nil, probe.Contradicts, contract.RepeatUnspecified, "a changed request with a used key is a second effect: class repeatable_with_key is not true"},
		"a member that differs each time": {
			func(n int, body map[string]any) (int, string) {
				if body["amount"] != 100.0 {
					return 400, `{}`
				}
				return 201, `{"served":{"at":` + strconv.Itoa(n) + `},"id":"ch_17"}`
			}, nil, probe.Unknown, contract.RepeatUnspecified, "/served/at"},
		"the same, ignored": {
			func(n int, body map[string]any) (int, string) {
				if body["amount"] != 100.0 {
					return 400, `{}`
				}
				return 201, `{"list":[{"at":` + strconv.Itoa(n) + `}],"id":"ch_17"}`
			}, []string{"/list/*/at"}, probe.Agrees, contract.ReturnsOriginalRefusesChanged, "does what the contract says"},
		"another order of members": {
			func(n int, body map[string]any) (int, string) {
				switch {
				case body["amount"] != 100.0:
					return 422, `{}`
				case n == 1:
					return 201, `{"id":17,"a":1}`
				}
				return 201, `{ "a": 1, "id": 17 }`
			}, nil, probe.Agrees, contract.ReturnsOriginalRefusesChanged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				var body map[string]any
				_ = json.NewDecoder(r.Body).Decode(&body)
				status, text := c.serve(requests, body)
				w.WriteHeader(status)
				_, _ = w.Write([]byte(text))
			}))
			defer server.Close()
			s := setup(t, server.URL, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
			s.Ignore = c.ignore
			r := run(t, s, &records{})
			if r.Verdict != c.verdict || r.Found != c.found || !strings.Contains(r.Means, c.says) {
				t.Errorf("got %s, %s (%s); want %s, %s (…%s…)", r.Verdict, r.Found, r.Means, c.verdict, c.found, c.says)
			}
		})
	}
}

// A target that marks its stored answers is believed where the answers alone would show nothing, and no further.
func TestMarkedAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		statuses [5]int
		bodies   [5]string // a body that ends in * is marked
		verdict  probe.Verdict
		errors   probe.StoredErrors
		says     string
	}{
		"the mark tells them apart": {[5]int{201, 201, 409, 500, 500}, [5]string{`{"ok":true}`, `{"ok":true}*`, `{}`, `{"request":1}`, `{"request":2}*`},
			probe.Agrees, probe.ErrorsReplayed, "does what the contract says"},
		"a fresh key is known": {[5]int{201}, [5]string{`{"id":"ch_1"}*`}, probe.Unknown, probe.ErrorsUnknown, "a fresh key's answer"},
		"a stored answer that is another": {[5]int{201, 201}, [5]string{`{"id":"ch_1"}`, `{"id":"ch_2"}*`}, probe.Unknown, probe.ErrorsUnknown,
			"not the first one"},
		"a changed one, too": {[5]int{201, 201, 201}, [5]string{`{"id":"ch_1"}`, `{"id":"ch_1"}*`, `{"id":"ch_2"}*`}, probe.Unknown, probe.ErrorsUnknown,
			"not the first one"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				body, marked := strings.CutSuffix(c.bodies[n], "*")
				if marked {
					w.Header().Set("Idempotent-Replayed", "true")
				}
				w.WriteHeader(c.statuses[n])
				_, _ = w.Write([]byte(body))
				n++
			}))
			defer server.Close()
			s := setup(t, server.URL, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
			s.Failing = []byte(`{"amount":-1,"currency":"eur"}`)
			r := run(t, s, &records{})
			if r.Verdict != c.verdict || r.Errors != c.errors || !strings.Contains(r.Means, c.says) {
				t.Errorf("got %s, errors %s (%s); want %s, %s (…%s…)", r.Verdict, r.Errors, r.Means, c.verdict, c.errors, c.says)
			}
		})
	}
}

// UN-08: another target than the contract's own, under the contract's own address ranges.
func TestProbeAgainstASandbox(t *testing.T) {
	own, sandbox := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey), newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
	target := sandbox.setup.Contract.Host
	target.Private = []string{"10.0.0.0/8"} // would not do
	own.setup.Against = &target
	r := own.run()
	if r.Verdict != probe.Agrees || r.Plan.Target != target.String() {
		t.Errorf("got %s at %s: %s", r.Verdict, r.Plan.Target, r.Means)
	}
	if mine, theirs := len(own.provider.Requests()), len(sandbox.provider.Requests()); mine != 0 || theirs != 3 {
		t.Errorf("the contract's own target saw %d requests and the sandbox %d, want 0 and 3", mine, theirs)
	}
}

// No record, no send. And what is recorded holds no argument.
func TestNothingIsSentWithoutARecord(t *testing.T) {
	s := newStage(t, contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
	s.setup.First = []byte(`{"amount":100,"currency":"canary"}`)
	p, err := probe.New(s.setup)
	if err != nil {
		t.Fatal(err)
	}
	executor := httpexec.New(httpexec.Options{})
	defer executor.Close()
	s.records.refuse = errors.New("the disk is full")
	if _, err := p.Run(t.Context(), executor, &s.records); !errors.Is(err, s.records.refuse) || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("got %v", err)
	}
	if _, err := p.Run(t.Context(), executor, &records{}); err == nil {
		t.Error("a probe ran twice")
	}
	if got := len(s.provider.Requests()); got != 0 {
		t.Errorf("the provider saw %d requests, want none", got)
	}
	s.records = records{}
	s.run()
	text, err := json.Marshal([]any{s.records.planned, s.records.observed})
	if err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("the record shows an argument: %s, %v", text, err)
	}
}

// What cannot be probed is refused before anything is planned.
func TestWhatCannotBeProbed(t *testing.T) {
	for says, change := range map[string]func(*probe.Setup){
		"the same request":      func(s *probe.Setup) { s.Changed = []byte(`{"currency":"eur","amount":100,"name":"good"}`) },
		"the arguments":         func(s *probe.Setup) { s.First = []byte(`{"amount":"x"}`) },
		"the changed arguments": func(s *probe.Setup) { s.Changed = nil },
		"the failing arguments": func(s *probe.Setup) { s.Failing = []byte(`[]`) },
		"JSON pointer":          func(s *probe.Setup) { s.Ignore = []string{"created"} },
		"sends no key":          func(s *probe.Setup) { s.Contract = withoutKey(t) },
	} {
		s := setup(t, "https://target.example", contract.ReturnsOriginalRefusesChanged, action.RepeatableWithKey)
		change(&s)
		if _, err := probe.New(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error with %q", err, says)
		}
	}
}

func withoutKey(t *testing.T) *contract.Contract {
	text := strings.NewReplacer("BASE", "https://target.example", "  key: {header: Idempotency-Key, repeat: REPEAT, kept_for: 24h}\n", "",
		"CLASS", string(action.BlockedAfterUnknown)).Replace(charge)
	all, err := contract.Parse("charge.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"https://Sandbox.Example": "https://sandbox.example:443", "https://sandbox.example:8443/": "https://sandbox.example:8443",
		"http://127.0.0.1:80": "http://127.0.0.1:80", "https://[::1]:9": "https://[::1]:9",
	} {
		if got, err := probe.ParseTarget(text); err != nil || got.String() != want {
			t.Errorf("%s: got %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "sandbox.example", "ftp://sandbox.example", "https://", "https://u:p@sandbox.example", "https://sandbox.example/v1",
		"https://sandbox.example?x", "https://sandbox.example:0", "https://sandbox.example:99999",
	} {
		if got, err := probe.ParseTarget(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
