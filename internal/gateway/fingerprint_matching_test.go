package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// fingerprintTool takes any JSON for its data, so that forms of values can be compared.
const fingerprintTool = `
tool: put_data
description: An effect with data of any form.
input:
  type: object
  required: [name]
  properties:
    name: {type: string}
    data: {}
    region: {type: string, default: us-east-1}
DEFAULTS
http:
  method: PUT
  url: PROXY/v1/objects/{name}
  credential: provider
  private: [127.0.0.0/8]
  json: {data: "${args.?data}", region: "${args.?region}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 404, 422]}
timeout: TIMEOUT
keep_result: 30d
`

// fingerprintMoney takes an amount as text, with and without a spelling that all amounts are brought to.
const fingerprintMoney = `
tool: pay
description: A payment.
input:
  type: object
  required: [amount]
  properties:
    amount: {type: string}
NORMALIZE
http:
  method: PUT
  url: PROXY/v1/objects/pay
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 404, 422]}
timeout: TIMEOUT
keep_result: 30d
`

func fingerprintData(defaults string) string {
	return strings.Replace(fingerprintTool, "DEFAULTS\n", defaults, 1)
}

// fingerprintOf makes a call of its own in the usual run and gives the action's digests: equal calls before it are
// delivered, so that it is a new action.
func fingerprintOf(r *rig.Rig, call *rig.Call) action.Digests {
	r.T.Helper()
	a := call.Do()
	if a.Attached || a.Held || a.Action.State != action.Completed {
		r.T.Fatalf("the call is no action of its own: attached %v, held %v, %s (%s)", a.Attached, a.Held, a.Action.State, a.Action.Reason)
	}
	r.Gateway.Delivered(a.Action.ID, action.Delivered, "acknowledged")
	return r.Stored(a.Action.ID).Digests
}

// fingerprintShuffled writes a JSON object with its members in another order and other white space.
func fingerprintShuffled(random *rand.Rand, members []string) string {
	members = slices.Clone(members)
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	space := func() string { return strings.Repeat(" ", random.IntN(3)) + strings.Repeat("\n\t", random.IntN(2)) }
	var b strings.Builder
	b.WriteString(space() + "{")
	for i, m := range members {
		if i > 0 {
			b.WriteString(",")
		}
		name, value, _ := strings.Cut(m, ":")
		b.WriteString(space() + name + space() + ":" + space() + value + space())
	}
	return b.String() + "}" + space()
}

// FP-01: fifty spellings of one request are one action with one fingerprint.
func TestFiftySpellingsOfARequestAreOneAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	members := []string{`"amount":25000`, `"customer":"cus_42"`, `"currency":"usd"`, `"memo":"m"`}
	for i := range 50 {
		args := fingerprintShuffled(random, members)
		if a := r.Call("charge", args).Do(); a.Attached != (i > 0) {
			t.Errorf("spelling %d attached: %v: %s", i, a.Attached, args)
		}
	}
	if len(r.Actions()) != 1 || r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("actions %d, effects %d, requests %d, want one each", len(r.Actions()), r.Effects(), r.Requests())
	}
}

// FP-02, case 049: another message id, session, transport, trace context, call id and a volatile field do not change the
// fingerprint; nor does another attempt.
func TestFingerprintIsOfTheEffectAndNotOfItsDelivery(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	const args = `{"amount":9,"customer":"cus_1"}`
	want := fingerprintOf(r, r.Call("charge", args)).Fingerprint
	for name, call := range map[string]*rig.Call{
		"message id": r.Call("charge", args).ID("77", "no session"),
		"session":    r.Call("charge", args).ID("1", "session-b"),
		"trace": r.Call("charge", args).Trace(action.Upstream{
			Source: action.UpstreamVerified, Traceparent: "00-" + strings.Repeat("a", 32) + "-" + strings.Repeat("b", 16) + "-01",
		}),
		"volatile": r.Call("charge", `{"client_ts":"12:00","amount":9,"customer":"cus_1"}`),
	} {
		if got := fingerprintOf(r, call).Fingerprint; got != want {
			t.Errorf("another %s changes the fingerprint", name)
		}
	}
	r.Break(unknownTimes(provider.DropAfterRead, 1))
	if got := fingerprintOf(r, r.Call("charge", args)).Fingerprint; got != want {
		t.Error("another attempt changes the fingerprint")
	}
	for i, ts := range []string{"1", "2", "3"} { // undelivered now: a volatile field makes no second action
		a := r.Call("charge", `{"amount":10,"customer":"cus_1","client_ts":"`+ts+`"}`).Do()
		if a.Attached != (i > 0) {
			t.Errorf("volatile value %s attached: %v", ts, a.Attached)
		}
	}
}

// FP-03, FP-07, FP-14: another actor, run, tool, target or argument is another effect, and no call of another actor ever
// attaches, however equal it is.
func TestEachPartOfTheEffectChangesTheFingerprint(t *testing.T) {
	t.Parallel()
	text := fingerprintData("")
	r := rig.New(t, rig.Options{Contracts: text + "---" + strings.Replace(text, "put_data", "put_again", 1) +
		"---" + strings.NewReplacer("put_data", "put_there", "/v1/objects/{name}", "/v1/objects/x-{name}").Replace(text) +
		"---" + strings.NewReplacer("put_data", "patch_data", "method: PUT", "method: PATCH").Replace(text)})
	const args = `{"name":"a","data":{"x":1,"y":[1,2]}}`
	seen := map[string]string{}
	for name, call := range map[string]*rig.Call{
		"as it is":       r.Call("put_data", args),
		"actor":          r.From(rig.Agent("other", 4711), "put_data", args),
		"run":            r.Call("put_data", args).Run("another"),
		"process":        r.From(rig.Agent("agent", 4712), "put_data", args),
		"tool":           r.Call("put_again", args),
		"target":         r.Call("put_there", args),
		"method":         r.Call("patch_data", args),
		"argument":       r.Call("put_data", `{"name":"b","data":{"x":1,"y":[1,2]}}`),
		"inner argument": r.Call("put_data", `{"name":"a","data":{"x":2,"y":[1,2]}}`),
		"order of items": r.Call("put_data", `{"name":"a","data":{"x":1,"y":[2,1]}}`),
		"default":        r.Call("put_data", `{"name":"a","data":{"x":1,"y":[1,2]},"region":"eu"}`),
	} {
		d := fingerprintOf(r, call)
		if before, ok := seen[d.Fingerprint]; ok {
			t.Errorf("%s and %s have one fingerprint", name, before)
		}
		seen[d.Fingerprint] = name
	}
	if len(seen) != r.Effects() {
		t.Errorf("%d fingerprints for %d effects", len(seen), r.Effects())
	}
}

// FP-03, FP-08, FP-21: the fingerprint is over what a name resolves to: another credential or another place behind the
// same tool is another effect, and the old place again is the old one.
func TestFingerprintFollowsTheResolvedTarget(t *testing.T) {
	t.Parallel()
	text := fingerprintData("")
	r := rig.New(t, rig.Options{Contracts: text})
	const args = `{"name":"a"}`
	call := func() string { return fingerprintOf(r, r.Call("put_data", args)).Fingerprint }
	first := call()
	r.Restart(strings.ReplaceAll(text, "PROXY", "PROVIDER"))
	moved := call()
	r.Restart(strings.Replace(text, "  credential: provider\n", "", 1))
	bare := call()
	r.Restart(text)
	back := call()
	if first == moved || first == bare || moved == bare {
		t.Errorf("fingerprints %s, elsewhere %s, without credential %s: want three", first, moved, bare)
	}
	if back != first {
		t.Errorf("the same place again has fingerprint %s, want %s", back, first)
	}
}

// FP-05: two spellings of one amount are one effect under the tool's normalizer, and two without it.
func TestEquivalentAmountsAreOneEffectUnderTheNormalizer(t *testing.T) {
	t.Parallel()
	normalize := "normalize:\n  amount: '${args.amount.endsWith(\" dollars\") ? string(int(args.amount.split(\" \")[0]) * 100) + \" usd\" : args.amount}'\n"
	for text, effects := range map[string]int{
		strings.Replace(fingerprintMoney, "NORMALIZE\n", normalize, 1): 1,
		strings.Replace(fingerprintMoney, "NORMALIZE\n", "", 1):        2,
	} {
		r := rig.New(t, rig.Options{Contracts: text})
		a := r.Call("pay", `{"amount":"250 dollars"}`).Do()
		b := r.Call("pay", `{"amount":"25000 usd"}`).Do()
		if equal := a.Action.Digests.Fingerprint == b.Action.Digests.Fingerprint; equal != (effects == 1) || r.Effects() != effects {
			t.Errorf("fingerprints equal: %v, effects %d, want %d", equal, r.Effects(), effects)
		}
		if c := r.Call("pay", `{"amount":"25001 usd"}`).Do(); c.Attached || r.Effects() != effects+1 {
			t.Errorf("another amount attached: %v, effects %d", c.Attached, r.Effects())
		}
	}
}

// FP-06, case 047: a default is always written or always left out, as the contract says; so a call with it and a call
// without it are one effect, and send the same. null is not absent.
func TestDefaultAndItsAbsenceAreOneEffect(t *testing.T) {
	t.Parallel()
	for defaults, sent := range map[string]string{
		"": `{"region":"us-east-1"}`, "defaults: written\n": `{"region":"us-east-1"}`, "defaults: omitted\n": `{}`, "defaults: {region: omitted}\n": `{}`,
	} {
		r := rig.New(t, rig.Options{Contracts: fingerprintData(defaults)})
		a := fingerprintOf(r, r.Call("put_data", `{"name":"a"}`))
		b := fingerprintOf(r, r.Call("put_data", `{"name":"a","region":"us-east-1"}`))
		c := fingerprintOf(r, r.Call("put_data", `{"name":"a","region":"eu-west-1"}`))
		if a.Fingerprint != b.Fingerprint || a.Fingerprint == c.Fingerprint || a.Args != b.Args {
			t.Errorf("%q: equal %v, other region equal %v", defaults, a.Fingerprint == b.Fingerprint, a.Fingerprint == c.Fingerprint)
		}
		for _, q := range r.Provider.Requests()[:2] {
			if q.Body != sent {
				t.Errorf("%q: sent %s, want %s", defaults, q.Body, sent)
			}
		}
		null := fingerprintOf(r, r.Call("put_data", `{"name":"a","data":null}`))
		if null.Fingerprint == a.Fingerprint || null.Args == a.Args {
			t.Errorf("%q: null and absent are one", defaults)
		}
	}
	for _, mixed := range []string{"defaults: sometimes\n", "defaults: {region: both}\n", "defaults: [written, omitted]\n", "defaults: {nothing: written}\n"} {
		text := strings.NewReplacer("PROXY", "https://api.example", "TIMEOUT", "5s", "private: [127.0.0.0/8]\n", "\n").Replace(fingerprintData(mixed))
		if _, err := contract.Parse("test.yaml", []byte(text)); err == nil {
			t.Errorf("a contract with %q loads", mixed)
		}
	}
}

// FP-16, FP-19, cases 043, 046 and 047: numbers, texts and nesting have one form by the written rules: what says the same
// is one effect, what does not is two, and what has no one form is refused.
func TestEqualValuesAreOneEffectAndOthersAreNot(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: fingerprintData("")})
	data := func(v string) action.Digests {
		return fingerprintOf(r, r.Call("put_data", `{"name":"a","data":`+v+`}`))
	}
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{`1`, `1.0`, true}, {`100`, `1e2`, true}, {`0`, `-0`, true}, {`{"a":{"c":1,"b":2}}`, `{"a":{"b":2,"c":1}}`, true}, {`"\u00e9"`, `"é"`, true},
		{`1`, `"1"`, false}, {`[1,2]`, `[2,1]`, false}, {`"é"`, `"e\u0301"`, false}, {`{"a":null}`, `{}`, false}, {`{"to":1}`, `{"TO":1}`, false},
		{`9007199254740992`, `9007199254740993`, false}, {`18446744073709551615`, `18446744073709551614`, false},
	} {
		a, b := data(c.a), data(c.b)
		if (a.Fingerprint == b.Fingerprint) != c.equal || (a.Args == b.Args) != c.equal {
			t.Errorf("%s and %s are one: %v, want %v", c.a, c.b, a.Fingerprint == b.Fingerprint, c.equal)
		}
	}
	bodies := ""
	for _, q := range r.Provider.Requests() {
		bodies += q.Body
	}
	for _, digits := range []string{"9007199254740992", "9007199254740993", "18446744073709551615"} {
		if !strings.Contains(bodies, digits) {
			t.Errorf("%s was not sent digit for digit", digits)
		}
	}
	effects := r.Effects()
	for _, args := range []string{
		`{"name":"a","data":18446744073709551616}`, `{"name":"a","name":"b"}`, `{"name":"a","data":{"x":1,"x":1}}`, `{"name":"a","NAME":"b"}`,
		`{"name":"a","\u212Aind":"b"}`, `{"name":"a","data":"\ud800"}`, `{"name":"a","data":1e400}`,
	} {
		_, err := r.Call("put_data", args).Try()
		if known, ok := err.(*action.Error); !ok || known.Code != action.CodeInvalidArguments {
			t.Errorf("%s: got %v, want %s", args, err, action.CodeInvalidArguments)
		}
	}
	if r.Effects() != effects {
		t.Errorf("refused calls had %d effects", r.Effects()-effects)
	}
}

// FP-10: another value of the credential leaves the fingerprint as it is: it goes out with the request and into no digest.
func TestNewValueOfTheCredentialLeavesTheFingerprint(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Secret: "first-canary-value"})
	first := fingerprintOf(r, r.Call("charge", keysCharge))
	if err := os.WriteFile(r.SecretFile, []byte("second-canary-value"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := fingerprintOf(r, r.Call("charge", keysCharge))
	if first != second {
		t.Errorf("digests %+v, and with another value %+v", first, second)
	}
	for i, want := range []string{"Bearer first-canary-value", "Bearer second-canary-value"} {
		if got := r.Provider.Requests()[i].Values("Authorization"); !slices.Equal(got, []string{want}) {
			t.Errorf("request %d carried %v, want %s", i+1, got, want)
		}
	}
}

// FP-13: a fingerprint is recorded with its algorithm and the name of its key, and the key stands beside the database.
func TestFingerprintNamesItsAlgorithmAndKey(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Call("charge", keysCharge).Do()
	found := false
	for _, e := range r.Events() {
		if e.Kind() != "action.accepted" {
			continue
		}
		found = true
		for _, name := range []string{"fingerprint", "effect_fingerprint", "args_fingerprint", "resource_fingerprint"} {
			if got := e.Text("digests." + name); !strings.HasPrefix(got, "hmac-sha256:") || len(got) != len("hmac-sha256:")+64 {
				t.Errorf("%s is %q", name, got)
			}
		}
		if got := e.Text("digests.key_id"); got != r.Keys.Current().ID {
			t.Errorf("key id %q, want %q", got, r.Keys.Current().ID)
		}
	}
	if !found {
		t.Fatal("no accepted event")
	}
	line, err := os.ReadFile(filepath.Join(r.Dir, "fingerprint.keys"))
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if files := httpFiles(r); strings.Count(files, secret) != 1 {
		t.Error("the key stands in more places than its own file")
	}
}

// FP-13: after the key was changed, an open action is still recognised, by key and by fingerprint, and again after a
// restart; new actions use the new key; and once the old key is retired with nothing open under it, it is gone.
func TestOpenActionsAreMatchedAfterTheKeyWasChanged(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(unknownTimes(provider.CommitThenDrop, 1))
	open := r.Call("send_email", unknownMail).Key("run", 1, "a").Do()
	if open.Action.State != action.Unknown {
		t.Fatalf("state %s", open.Action.State)
	}
	old := r.Keys.Current().ID
	if err := r.Keys.Rotate(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		inUse, err := r.Store.OpenKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Keys.Retire(inUse); err != nil {
			t.Fatal(err)
		}
		byKey := r.Call("send_email", unknownMail).Key("run", 1, "a").Do()
		byEffect := r.Call("send_email", unknownMail).Run("run").Do()
		other := r.From(rig.Agent("agent", 5), "send_email", unknownMail).Do()
		if byKey.Match != action.MatchKey || byEffect.Match != action.MatchFingerprint || !other.Held {
			t.Errorf("matches %q and %q, another run is held: %v", byKey.Match, byEffect.Match, other.Held)
		}
		if byKey.Action.ID != open.Action.ID || byEffect.Action.ID != open.Action.ID || other.Action.ID != open.Action.ID || r.Effects() != 1 {
			t.Errorf("actions %s, %s, %s; want %s; effects %d", byKey.Action.ID, byEffect.Action.ID, other.Action.ID, open.Action.ID, r.Effects())
		}
		r.Restart("")
	}
	if _, err := r.Call("send_email", `{"to":"else"}`).Key("run", 1, "a").Try(); err == nil {
		t.Error("other arguments under the key of an older action were taken")
	}
	fresh := r.Call("charge", keysCharge).Do()
	if fresh.Action.Digests.KeyID == old || fresh.Action.Digests.KeyID != r.Keys.Current().ID {
		t.Errorf("a new action uses the key %s", fresh.Action.Digests.KeyID)
	}
}

// FP-13: a caller's key finds its finished action also when the fingerprint key that it was made with is gone; it is never
// told that it sent other arguments.
func TestKeyMatchOutlivesTheFingerprintKey(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	first := r.Call("charge", keysCharge).Key("run", 1, "a").Do()
	if err := r.Keys.Rotate(); err != nil {
		t.Fatal(err)
	}
	inUse, err := r.Store.OpenKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Keys.Retire(inUse); err != nil {
		t.Fatal(err)
	}
	again, err := r.Call("charge", keysCharge).Key("run", 1, "a").Try()
	if err != nil || again.Action.ID != first.Action.ID {
		t.Errorf("the same call again: %v, action %s; want %s", err, again.Action.ID, first.Action.ID)
	}
	if r.Effects() != 1 {
		t.Errorf("effects %d, want 1", r.Effects())
	}
}

// FP-22, FP-04: what the contract says of its fingerprint is what is computed: each argument that it lists changes it, and
// each that it excludes does not.
func TestContractSaysWhatItsFingerprintContains(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	c, ok := r.Contracts.Tool("charge")
	if !ok {
		t.Fatal("no such tool")
	}
	said := c.Fingerprint()
	base := map[string]any{"amount": 5, "customer": "cus_1", "currency": "usd", "memo": "m", "client_ts": "t"}
	call := func(args map[string]any) string {
		text, _ := json.Marshal(args)
		return fingerprintOf(r, r.Call("charge", string(text))).Fingerprint
	}
	want := call(base)
	for name, value := range base {
		changed := map[string]any{}
		for k, v := range base {
			changed[k] = v
		}
		changed[name] = fmt.Sprint(value) + "2"
		if name == "amount" {
			changed[name] = 6
		}
		changes := call(changed) != want
		names := func(list []string) bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, name) })
		}
		if changes != names(said.Included) || !changes != names(said.Excluded) {
			t.Errorf("%s changes the fingerprint: %v; the contract includes %v and excludes %v", name, changes, said.Included, said.Excluded)
		}
	}
	for _, part := range []string{"actor", "tool", "channel", "target", "credential_ref", "method"} {
		if !slices.ContainsFunc(said.Included, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("the contract does not say that %s is in the fingerprint: %v", part, said.Included)
		}
	}
}
