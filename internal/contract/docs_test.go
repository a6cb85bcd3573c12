package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

func TestReadyContractsLoad(t *testing.T) {
	set, err := contract.Load("../../contracts")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range set.Tools() {
		names = append(names, c.Tool)
		for _, a := range contract.Check(c) {
			if !a.Pass {
				t.Errorf("%s: %s", c.Tool, a)
			}
		}
	}
	if want := []string{"charge", "deploy_release", "get_charge", "refund"}; !slices.Equal(names, want) {
		t.Errorf("got tools %v, want %v", names, want)
	}
}

func TestReadyChargeSendsWhatItSays(t *testing.T) {
	set, err := contract.Load("../../contracts")
	if err != nil {
		t.Fatal(err)
	}
	charge, _ := set.Tool("charge")
	op := operation(t, resolve(t, charge, `{"customer":"cus_1","amount":250,"unit":"dollars"}`))
	if got, want := string(op.Body), "amount=25000&currency=usd&customer=cus_1&metadata%5Bidem_key%5D=6f1c"; got != want {
		t.Errorf("got body %s, want %s", got, want)
	}
	for answer, want := range map[string]action.Certainty{
		`{"error":{"type":"invalid_request_error"}}`: action.NoEffectProven,
		`{"error":{"type":"idempotency_error"}}`:     action.Indeterminate,
		`bad gateway`:                                action.Indeterminate,
	} {
		if got := charge.Judge(action.Response{Status: 400, Body: []byte(answer)}); got.Certainty != want {
			t.Errorf("400 with %s: got %s, want %s", answer, got.Certainty, want)
		}
	}
	for _, status := range []int{409, 500, 502, 503, 504} {
		if got := charge.Judge(action.Response{Status: status, Body: []byte(`{}`)}); got.Certainty != action.Indeterminate {
			t.Errorf("%d: got %s", status, got.Certainty)
		}
	}
	refund, _ := set.Tool("refund")
	if got, want := resolve(t, refund, `{"charge":"ch_1"}`).Impact, "Refunds all of ch_1."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// case 019: the charge that is found carries its key, and a declined one is no charge.
func TestReadyChargeIsLookedUp(t *testing.T) {
	set, err := contract.Load("../../contracts")
	if err != nil {
		t.Fatal(err)
	}
	charge, _ := set.Tool("charge")
	op, err := charge.LookupOperation([]byte(`{"amount":25000,"customer":"cus_1"}`), who)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := url.Parse(op.URL())
	if err != nil || sent.Host != "api.stripe.com:443" || sent.Path != "/v1/charges/search" || op.Credential != "stripe" ||
		sent.Query().Get("query") != "metadata['idem_key']:'6f1c0a77d2b94e55'" {
		t.Errorf("got %+v, %v", op, err)
	}
	const list = `{"object":"search_result","url":"/v1/charges/search","has_more":false,"data":[%s]}`
	const one = `{"id":"ch_1","object":"charge","metadata":{"idem_key":%q},"status":%q}`
	for _, test := range []struct {
		status int
		body   string
		want   action.Finding
	}{
		{200, fmt.Sprintf(list, fmt.Sprintf(one, "6f1c0a77d2b94e55", "succeeded")), action.Found},
		{200, fmt.Sprintf(list, fmt.Sprintf(one, "6f1c0a77d2b94e55", "pending")), action.Found},
		{200, fmt.Sprintf(list, fmt.Sprintf(one, "6f1c0a77d2b94e55", "failed")), action.Inconclusive},
		{200, fmt.Sprintf(list, fmt.Sprintf(one, "another", "succeeded")), action.Inconclusive},
		{200, fmt.Sprintf(list, ""), action.Absent},
		{400, `{"error":{"type":"invalid_request_error"}}`, action.Inconclusive},
		{401, `{"error":{"type":"invalid_request_error"}}`, action.Inconclusive},
		{429, `{"error":{"type":"rate_limit_error"}}`, action.Inconclusive},
	} {
		if got := charge.Lookup.Find(answer(test.status, test.body), who); got != test.want {
			t.Errorf("%d %s: got %q, want %q", test.status, test.body, got, test.want)
		}
	}
	if charge.Lookup.Authoritative {
		t.Error("a search that lags is called authoritative")
	}
	args, err := charge.UndoArguments([]byte(`{"amount":25000,"customer":"cus_1"}`), []byte(`{"id":"ch_1"}`))
	if err != nil || string(args) != `{"charge":"ch_1"}` {
		t.Fatalf("got %s, %v", args, err)
	}
	refund, _ := set.Tool(charge.Undo.Tool)
	resolve(t, refund, string(args))
}

// documented gives the examples of the page, in their order.
func documented(t *testing.T) []*contract.Contract {
	t.Helper()
	var list []*contract.Contract
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		list = append(list, load(t, block[1]))
	}
	return list
}

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// DOC-06: one complete example per class.
func TestThePageHasAnExampleForEachClass(t *testing.T) {
	var classes []action.Class
	for _, c := range documented(t) {
		classes = append(classes, c.Class)
	}
	if !slices.Equal(classes, action.Classes) {
		t.Errorf("got %v, want %v", classes, action.Classes)
	}
}

func TestThePageExplainsEveryField(t *testing.T) {
	text := page(t)
	for path := range schemaFields(t) {
		name := path[strings.LastIndexByte(path, '.')+1:]
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is not explained", path)
		}
	}
}

// IK-03: the request on the page is the one that is made.
func TestThePageShowsTheRequestThatIsMade(t *testing.T) {
	for _, c := range documented(t) {
		if c.Tool != "deploy_release" {
			continue
		}
		op := operation(t, resolve(t, c, `{"service": "billing", "version": "1.4.2"}`))
		var b strings.Builder
		b.WriteString("```http\n" + op.Method + " " + op.Path + "\nContent-Type: " + op.MediaType + "\n")
		b.WriteString(op.Key.Header + ": act_0123456789abcdefghjkmnpqrs\n")
		for _, h := range op.Headers {
			b.WriteString(h.Name + ": " + h.Value + "\n")
		}
		b.WriteString("\n" + string(op.Body) + "\n```\n")
		if !strings.Contains(page(t), b.String()) {
			t.Errorf("the page lacks\n%s", b.String())
		}
	}
}

func TestThePublishedSchemaIsTheOneThatIsChecked(t *testing.T) {
	published, err := os.ReadFile("../../docs/contract.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../../docs/contract.schema.json", contract.FileSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(published, contract.FileSchema()) {
		t.Error("docs/contract.schema.json differs from contract.schema.json; run the tests with -update")
	}
}

// schemaFields lists the fields of the schema by their path, with their descriptions.
func schemaFields(t *testing.T) map[string]string {
	t.Helper()
	type schema struct {
		Description string
		Properties  map[string]json.RawMessage
	}
	fields := map[string]string{}
	var walk func(prefix string, raw json.RawMessage)
	walk = func(prefix string, raw json.RawMessage) {
		var s schema
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		if prefix != "" {
			fields[prefix] = s.Description
		}
		if prefix == "input" {
			return // a schema of its own
		}
		for name, sub := range s.Properties {
			walk(strings.TrimPrefix(prefix+"."+name, "."), sub)
		}
	}
	walk("", contract.FileSchema())
	return fields
}

func TestEveryFieldOfTheSchemaIsDescribed(t *testing.T) {
	for path, description := range schemaFields(t) {
		if description == "" {
			t.Errorf("%s has no description", path)
		}
	}
}
