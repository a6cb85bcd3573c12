package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

const secretContract = `tool: set_password
description: Set a password.
input:
  type: object
  required: [user, password]
  properties:
    user: {type: string}
    password: {type: string, secret: true}
http:
  method: POST
  url: https://id.example/v1/users/{user}
  headers: {X-User: "${args.user}"}
  json: {user: "${args.user}", password: "${args.password}"}
resource: user/${args.user}
impact: Sets the password of ${args.user}.
on_lost_response: {class: blocked_after_unknown, attach_for: 15m, scope: run}
done_when: ${status == 200}
no_effect_when: ${status == 400}
keep_result: 1d
`

const secretCanary = "canary-of-an-argument"

// VA-11: from the moment of resolution a reference stands for the secret, everywhere.
func TestASecretArgumentBecomesAReference(t *testing.T) {
	t.Parallel()
	all, err := contract.Parse("t.yaml", []byte(secretContract))
	if err != nil {
		t.Fatal(err)
	}
	c := all[0]
	r, err := c.Resolve([]byte(`{"user":"ann","password":"` + secretCanary + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	op, err := r.Operation("act_00000000000000000000000001", "k")
	if err != nil {
		t.Fatal(err)
	}
	if string(op.Body) != `{"password":"deed-secret:password","user":"ann"}` || len(op.Secrets) != 1 || op.Secrets[0].Name != "password" || op.Secrets[0].Sealed != nil {
		t.Errorf("the operation is %s, %+v", op.Body, op.Secrets)
	}
	asJSON, err := json.Marshal(op)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"operation": string(asJSON), "requested": string(r.Requested), "canonical": string(r.Canonical), "meaningful": string(r.Meaningful),
		"resolved": fmt.Sprintf("%+v %#v %v", r.Secrets, r.Secrets, r.Args), "resource": r.Resource, "impact": r.Impact, "steps": fmt.Sprint(r.Steps),
	} {
		if strings.Contains(text, secretCanary) {
			t.Errorf("the %s holds the secret: %s", what, text)
		}
	}
	if r.Secrets[0].Value() != secretCanary {
		t.Error("the value is lost")
	}
	under, err := r.MeaningfulUnder(func(name, value string) string { return name + "=" + strings.ToUpper(value) })
	if err != nil || string(under) != `{"password":"password=CANARY-OF-AN-ARGUMENT","user":"ann"}` {
		t.Errorf("under a digest it is %s, %v", under, err)
	}
	if _, err := c.Resolve(r.Requested); err == nil || !strings.Contains(err.Error(), action.SecretMark) {
		t.Errorf("what is recorded was taken for a call: %v", err)
	}
}

// VA-11: a secret argument goes into the body as a value of its own; a contract that puts it elsewhere does not load.
func TestAPlaceThatIsNoneForASecretIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"in the URL":           {"/users/{user}", "/users/{password}"},
		"in the query":         {"/users/{user}", "/users/{user}{?password}"},
		"in a header":          {`X-User: "${args.user}"`, `X-User: "${args.password}"`},
		"in the resource":      {"user/${args.user}", "user/${args.password}"},
		"in the impact":        {"password of ${args.user}", "password of ${args.password}"},
		"within text":          {`password: "${args.password}"`, `password: "x${args.password}"`},
		"computed with":        {`password: "${args.password}"`, `password: "${args.password + 'x'}"`},
		"measured":             {`password: "${args.password}"`, `password: "${args.password}", n: "${size(args.password)}"`},
		"by another way":       {`password: "${args.password}"`, `password: "${args.password}", n: "${args['password']}"`},
		"all arguments":        {`password: "${args.password}"`, `password: "${args.password}", n: "${args}"`},
		"nowhere":              {`, password: "${args.password}"`, ``},
		"normalized":           {"resource:", "normalize: {password: \"${args.password}\"}\nresource:"},
		"without meaning":      {"resource:", "volatile: [password]\nresource:"},
		"a number":             {"{type: string, secret: true}", "{type: integer, secret: true}"},
		"no type":              {"{type: string, secret: true}", "{secret: true}"},
		"with a rule":          {"{type: string, secret: true}", "{type: string, secret: true, pattern: '^x'}"},
		"with a default":       {"{type: string, secret: true}", "{type: string, secret: true, default: x}"},
		"inside another":       {"user: {type: string}", "user: {type: string}\n    o: {type: object, properties: {s: {type: string, secret: true}}}"},
		"secret: maybe":        {"secret: true", "secret: maybe"},
		"the mark in a text":   {`user: "${args.user}", password`, `user: "deed-secret:password", password`},
		"a name for no place":  {"password: {type: string", "pass-word: {type: string, secret: true}\n    password: {type: string"},
		"in a look-up":         {"resource:", "metadata: {json: /k}\nlookup: {request: {method: GET, url: 'https://id.example/{password}'}, found: \"${body.k == deed.idem_key}\"}\nresource:"},
		"in arguments of undo": {"resource:", "undo: {tool: other, arguments: {p: \"${args.password}\"}}\nresource:"},
	} {
		text := strings.Replace(secretContract, change[0], change[1], 1)
		if text == secretContract {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := contract.Parse("t.yaml", []byte(text)); err == nil {
			t.Errorf("%s: it loads", name)
		} else if !strings.Contains(err.Error(), "t.yaml:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
