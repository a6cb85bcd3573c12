package digest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
	"deed.dev/deed/internal/digest"
)

var update = flag.Bool("update", false, "write the vectors anew; read the difference before it is kept")

// identityVectors are what other languages compute as well.
type identityVectors struct {
	Format  string `json:"format"`
	IdemKey []struct {
		Run        string `json:"run"`
		Step       int64  `json:"step"`
		ToolCallID string `json:"tool_call_id"`
		IdemKey    string `json:"idem_key"`
	} `json:"idem_key"`
	Records []struct {
		Name        string          `json:"name"`
		Record      json.RawMessage `json:"record"`
		Canonical   string          `json:"canonical"`
		Key         string          `json:"key_hex"`
		Fingerprint string          `json:"fingerprint"`
		Effect      string          `json:"effect_fingerprint"`
		Args        string          `json:"args_fingerprint"`
	} `json:"records"`
}

var vectorsFile = filepath.Join("..", "..", "docs", "vectors", "identity.json")

func readVectors(t *testing.T) identityVectors {
	t.Helper()
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v identityVectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// keyOf opens a key file with one given key.
func keyOf(t *testing.T, secret []byte) digest.Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	line := "fk_000000000001 " + base64.StdEncoding.EncodeToString(secret) + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := digest.OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys.Current()
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	v, err := canonical.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// recordOf reads a record as its vector shows it.
func recordOf(t *testing.T, text []byte) digest.Record {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	str := func(name string) (s string) {
		if err := json.Unmarshal(m[name], &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return s
	}
	return digest.Record{
		Actor: str("actor"), Tool: str("tool"), Channel: str("channel"), Target: str("target"), CredentialRef: str("credential_ref"),
		Method: str("method"), IntentScope: str("intent_scope"), Arguments: parsed(t, string(m["arguments"])),
	}
}

// IK-08: the operation key is SHA-256 of run, step and tool-call id, joined by colons. Each vector is also computed here,
// from the rule alone.
func TestOperationKeyVectors(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.IdemKey) < 5 {
		t.Fatalf("only %d vectors", len(v.IdemKey))
	}
	seen := map[string]bool{}
	for _, c := range v.IdemKey {
		step, _ := json.Marshal(c.Step)
		sum := sha256.Sum256([]byte(c.Run + ":" + string(step) + ":" + c.ToolCallID))
		if want := hex.EncodeToString(sum[:]); c.IdemKey != want {
			t.Errorf("the vector of %s:%d:%s says %s, the rule gives %s", c.Run, c.Step, c.ToolCallID, c.IdemKey, want)
		}
		if got := digest.IdemKey(action.RunID(c.Run), c.Step, c.ToolCallID); got != c.IdemKey {
			t.Errorf("%s:%d:%s gives %s, want %s", c.Run, c.Step, c.ToolCallID, got, c.IdemKey)
		}
		if seen[c.IdemKey] {
			t.Errorf("two vectors have the key %s", c.IdemKey)
		}
		seen[c.IdemKey] = true
	}
}

// FP-01, FP-04, FP-13: the canonical record of the seed's example has exactly its eight members, and its digests are
// keyed, named and the same in every language.
func TestCanonicalRecordVectors(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.Records) == 0 || v.Records[0].Name != "deploy_release" {
		t.Fatalf("the first vector is not the example: %+v", v.Records)
	}
	for _, c := range v.Records {
		r := recordOf(t, c.Record)
		text, err := r.Canonical()
		if err != nil || string(text) != c.Canonical {
			t.Errorf("%s: got %s, %v, want %s", c.Name, text, err, c.Canonical)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		names := make([]string, 0, len(members))
		for name := range members {
			names = append(names, name)
		}
		slices.Sort(names)
		want := []string{"actor", "arguments", "channel", "credential_ref", "intent_scope", "method", "target", "tool"}
		if !slices.Equal(names, want) {
			t.Errorf("%s has the members %v, want %v", c.Name, names, want)
		}
		secret, err := hex.DecodeString(c.Key)
		if err != nil {
			t.Fatal(err)
		}
		args, err := canonical.Marshal(r.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		d, err := keyOf(t, secret).Of(r, args, "")
		if err != nil {
			t.Fatal(err)
		}
		scopeless := strings.Replace(c.Canonical, `"intent_scope":"`+r.IntentScope+`"`, `"intent_scope":"any"`, 1)
		for _, x := range []struct{ name, got, want, domain, text string }{
			{"fingerprint", d.Fingerprint, c.Fingerprint, "deed-fingerprint/1\x00", c.Canonical},
			{"effect", d.Effect, c.Effect, "deed-effect/1\x00", scopeless},
			{"arguments", d.Args, c.Args, "deed-arguments/1\x00", string(args)},
		} {
			h := hmac.New(sha256.New, secret)
			h.Write([]byte(x.domain + x.text))
			if rule := "hmac-sha256:" + hex.EncodeToString(h.Sum(nil)); x.want != rule {
				t.Errorf("%s: the vector's %s is %s, the rule gives %s", c.Name, x.name, x.want, rule)
			}
			if x.got != x.want {
				t.Errorf("%s: %s is %s, want %s", c.Name, x.name, x.got, x.want)
			}
		}
	}
}

// FP-03, FP-07, FP-08, FP-14: each part of the record, changed alone, gives another fingerprint; all but the scope give
// another effect; the arguments' own digest knows the arguments alone.
func TestEachPartOfTheRecordCounts(t *testing.T) {
	t.Parallel()
	key := keyOf(t, []byte(strings.Repeat("k", 32)))
	base := func() digest.Record { return recordOf(t, readVectors(t).Records[0].Record) }
	of := func(r digest.Record) action.Digests {
		args, err := canonical.Marshal(r.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		d, err := key.Of(r, args, "service/catalog")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	whole := of(base())
	if again := of(base()); again != whole {
		t.Errorf("the same record gives %+v and %+v", whole, again)
	}
	seen := map[string]string{whole.Fingerprint: "nothing"}
	for name, change := range map[string]func(*digest.Record){
		"actor":      func(r *digest.Record) { r.Actor += "2" },
		"tool":       func(r *digest.Record) { r.Tool += "2" },
		"channel":    func(r *digest.Record) { r.Channel = "ssh" },
		"target":     func(r *digest.Record) { r.Target += "2" },
		"credential": func(r *digest.Record) { r.CredentialRef += "2" },
		"method":     func(r *digest.Record) { r.Method = "PUT" },
		"scope":      func(r *digest.Record) { r.IntentScope += "2" },
		"service": func(r *digest.Record) {
			r.Arguments = parsed(t, `{"service":"x","version":"2026.07.22","region":"us-east-1"}`)
		},
		"version": func(r *digest.Record) {
			r.Arguments = parsed(t, `{"service":"catalog","version":"x","region":"us-east-1"}`)
		},
		"region": func(r *digest.Record) {
			r.Arguments = parsed(t, `{"service":"catalog","version":"2026.07.22","region":"x"}`)
		},
		"an argument's end": func(r *digest.Record) { r.Arguments = parsed(t, `{"service":"catalog","version":"2026.07.22"}`) },
	} {
		r := base()
		change(&r)
		d := of(r)
		if before, ok := seen[d.Fingerprint]; ok {
			t.Errorf("changing %s and changing %s give one fingerprint", name, before)
		}
		seen[d.Fingerprint] = name
		if (d.Effect == whole.Effect) != (name == "scope") {
			t.Errorf("changing %s leaves the effect: %v", name, d.Effect == whole.Effect)
		}
		arguments := name == "service" || name == "version" || name == "region" || name == "an argument's end"
		if (d.Args != whole.Args) != arguments {
			t.Errorf("changing %s changes the arguments' digest: %v", name, d.Args != whole.Args)
		}
		if (d.Resource != whole.Resource) != (name == "actor") {
			t.Errorf("changing %s changes the resource's digest: %v", name, d.Resource != whole.Resource)
		}
	}
	other, err := keyOf(t, []byte(strings.Repeat("j", 32))).Of(base(), nil, "")
	if err != nil || other.Fingerprint == whole.Fingerprint {
		t.Error("another key gives the same fingerprint")
	}
	if d, _ := key.Of(base(), nil, ""); d.Resource != "" {
		t.Errorf("no resource has the digest %q", d.Resource)
	}
}

// FP-01: parts cannot run together: moving a character from one part to its neighbour is another record.
func TestPartsOfTheRecordDoNotRunTogether(t *testing.T) {
	t.Parallel()
	a, err := digest.Record{Actor: "ab", Tool: "c", Arguments: map[string]any{}}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	b, err := digest.Record{Actor: "a", Tool: "bc", Arguments: map[string]any{}}.Canonical()
	if err != nil || string(a) == string(b) {
		t.Errorf("%s and %s, %v", a, b, err)
	}
	quote, err := digest.Record{Actor: `a","tool":"x`, Arguments: map[string]any{}}.Canonical()
	if err != nil || strings.Contains(string(quote), `"tool":"x"`) {
		t.Errorf("an actor's text became a member: %s, %v", quote, err)
	}
}

// FP-20, HT-19: what a decision is bound to changes with the action, the way there, the host, the port, the protocol, the
// method, the shape of the path, the headers, the credential and the exact bytes; and with nothing that is not sent.
func TestBindingChangesWithEverythingThatIsSent(t *testing.T) {
	t.Parallel()
	base := func() action.Operation {
		return action.Operation{
			Channel: "http", Target: action.Target{Scheme: "https", Host: "api.example", Port: 443}, Method: "POST", Template: "/v1/releases",
			Headers: []action.Header{{Name: "X-Region", Value: "us"}}, Credential: "deploy-service",
		}
	}
	bind := func(id action.ID, op action.Operation, c action.Commitment) string {
		b, err := digest.Binding(id, op, c)
		if err != nil || !strings.HasPrefix(b, "sha256:") {
			t.Fatalf("binding %q, %v", b, err)
		}
		return b
	}
	whole := bind("act_1", base(), "c1")
	if again := bind("act_1", base(), "c1"); again != whole {
		t.Error("the same operation has two bindings")
	}
	seen := map[string]string{whole: "nothing", bind("act_2", base(), "c1"): "action", bind("act_1", base(), "c2"): "bytes"}
	if len(seen) != 3 {
		t.Error("another action or other bytes leave the binding")
	}
	for name, change := range map[string]func(*action.Operation){
		"channel":         func(o *action.Operation) { o.Channel = "ssh" },
		"protocol":        func(o *action.Operation) { o.Target.Scheme = "http" },
		"host":            func(o *action.Operation) { o.Target.Host = "api2.example" },
		"port":            func(o *action.Operation) { o.Target.Port = 444 },
		"method":          func(o *action.Operation) { o.Method = "PUT" },
		"path template":   func(o *action.Operation) { o.Template = "/v1/other" },
		"credential":      func(o *action.Operation) { o.Credential = "admin" },
		"header's name":   func(o *action.Operation) { o.Headers[0].Name = "X-Zone" },
		"one more header": func(o *action.Operation) { o.Headers = append(o.Headers, action.Header{Name: "X-Two"}) },
	} {
		op := base()
		change(&op)
		b := bind("act_1", op, "c1")
		if before, ok := seen[b]; ok {
			t.Errorf("changing the %s and changing the %s give one binding", name, before)
		}
		seen[b] = name
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	if *update {
		writeVectors()
	}
	os.Exit(m.Run())
}

// writeVectors computes the file anew, with nothing of the package under test.
func writeVectors() {
	idem := []map[string]any{}
	for _, c := range []struct {
		run  string
		step int64
		id   string
	}{
		{"run_01m8pkjzmre9fb10gyht1avdah", 3, "toolu_1"}, {"run_01m8pkjzmre9fb10gyht1avdah", 4, "toolu_1"}, {"run_01m8pkjzmre9fb10gyht1avdah", 3, "toolu_2"},
		{"run_01m8pkjzmre9fb10gyht1avdag", 3, "toolu_1"}, {"run_01m8pkjzmre9fb10gyht1avdah", 0, ""}, {"run_01m8pkjzmre9fb10gyht1avdah", 9223372036854775807, "a:b:c"},
		{"run_01m8pkjzmre9fb10gyht1avdah", 1, "ünï 😀"},
	} {
		step, _ := json.Marshal(c.step)
		sum := sha256.Sum256([]byte(c.run + ":" + string(step) + ":" + c.id))
		idem = append(idem, map[string]any{"run": c.run, "step": c.step, "tool_call_id": c.id, "idem_key": hex.EncodeToString(sum[:])})
	}
	key := strings.Repeat("0b", 32)
	records := []map[string]any{}
	for _, c := range []struct{ name, record, canonical, args string }{
		{"deploy_release", `{"actor":"signed-process:com.example.agent","tool":"deploy_release","channel":"http","target":"deploy-api.internal.example/releases","credential_ref":"deploy-service","method":"POST","arguments":{"service":"catalog","version":"2026.07.22","region":"us-east-1"},"intent_scope":"run:5f8097"}`,
			`{"actor":"signed-process:com.example.agent","arguments":{"region":"us-east-1","service":"catalog","version":"2026.07.22"},"channel":"http","credential_ref":"deploy-service","intent_scope":"run:5f8097","method":"POST","target":"deploy-api.internal.example/releases","tool":"deploy_release"}`,
			`{"region":"us-east-1","service":"catalog","version":"2026.07.22"}`},
		{"integers keep all their digits, null is not absent, text is not normalised", `{"actor":"token:ci","tool":"pay","channel":"http","target":"https://api.example:443/v1/pay","credential_ref":"","method":"POST","arguments":{"order":9007199254740993,"note":null,"name":"e\u0301"},"intent_scope":"actor"}`,
			"{\"actor\":\"token:ci\",\"arguments\":{\"name\":\"e\u0301\",\"note\":null,\"order\":9007199254740993},\"channel\":\"http\",\"credential_ref\":\"\",\"intent_scope\":\"actor\",\"method\":\"POST\",\"target\":\"https://api.example:443/v1/pay\",\"tool\":\"pay\"}",
			"{\"name\":\"e\u0301\",\"note\":null,\"order\":9007199254740993}"},
	} {
		mac := func(domain, text string) string {
			secret, _ := hex.DecodeString(key)
			h := hmac.New(sha256.New, secret)
			h.Write([]byte(domain + text))
			return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
		}
		var scope struct {
			IntentScope string `json:"intent_scope"`
		}
		_ = json.Unmarshal([]byte(c.record), &scope)
		effect := strings.Replace(c.canonical, `"intent_scope":"`+scope.IntentScope+`"`, `"intent_scope":"any"`, 1)
		records = append(records, map[string]any{
			"name": c.name, "record": json.RawMessage(c.record), "canonical": c.canonical, "key_hex": key,
			"fingerprint": mac("deed-fingerprint/1\x00", c.canonical), "effect_fingerprint": mac("deed-effect/1\x00", effect), "args_fingerprint": mac("deed-arguments/1\x00", c.args),
		})
	}
	data, err := json.MarshalIndent(map[string]any{"format": "deed-identity/1", "idem_key": idem, "records": records}, "", "  ")
	if err == nil {
		err = os.WriteFile(vectorsFile, append(data, '\n'), 0o644)
	}
	if err != nil {
		panic(err)
	}
}
