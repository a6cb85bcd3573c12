package vault

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

const goodFile = `
# where secrets are, and where they may go
credentials:
  - ref: stripe-test
    kind: bearer
    hosts: [api.stripe.com]
    env: STRIPE_KEY
  - ref: deploy
    kind: header
    header: X-Api-Key
    hosts:
      - deploy.example:8443
      - "[2001:db8::1]:443"
    file: deploy.key
  - {ref: local, kind: basic, hosts: ["127.0.0.1:8080", "localhost:80"], insecure_loopback: true, each_use: true, env: LOCAL}
  - {ref: map, kind: query, parameter: api_key, hosts: [maps.example], env: MAP}
`

func TestLoadReadsTheList(t *testing.T) {
	v, err := Parse([]byte(goodFile), "/etc/deed")
	if err != nil {
		t.Fatal(err)
	}
	c, ok := v.Find("deploy")
	if !ok || c.Kind != Header || c.Header != "X-Api-Key" || c.Source.File != "/etc/deed/deploy.key" || c.Line != 8 {
		t.Errorf("deploy is %+v", c)
	}
	if c, _ := v.Find("local"); !c.InsecureLoopback || !c.EachUse || c.Source.Env != "LOCAL" {
		t.Errorf("local is %+v", c)
	}
	if _, ok := v.Find("nobody"); ok {
		t.Error("a credential that is not there was found")
	}
}

// VA-08, case 085: a bad file is refused with the line, and whatever stood there is not repeated.
func TestLoadRefusesWithLineAndWithoutContent(t *testing.T) {
	const head = "credentials:\n  - ref: a\n    kind: bearer\n    hosts: [api.example]\n"
	cases := []struct{ name, file, want string }{
		{"literal value", head + "    value: " + canary[:12] + "\n", "line 5: a credential's value does not belong"},
		{"literal token", head + "    token: " + canary[:12] + "\n", "line 5: a credential's value does not belong"},
		{"secret as name", head + "    " + canary[:8] + ": x\n", "line 5: this field is not known"},
		{"secret as env", head + "    env: " + canary[:8] + "\n", "line 2: env is the name"},
		{"secret as kind", "credentials:\n- ref: a\n  kind: " + canary[:8] + "\n  hosts: [a.example]\n  env: A\n", "line 2: kind is"},
		{"secret as ref", "credentials:\n- ref: \"" + canary[:8] + "/?\"\n  kind: bearer\n  hosts: [a.example]\n  env: A\n", "line 2: ref is required"},
		{"secret as host", head[:len(head)-14] + "[" + canary[:8] + "/x]\n    env: A\n", "line 4: this is no host"},
		{"neither env nor file", head, "line 2: exactly one of vault, env, file, command and openbao"},
		{"both env and file", head + "    env: A\n    file: b\n", "line 2: exactly one of vault, env, file, command and openbao"},
		{"no hosts", "credentials:\n- ref: a\n  kind: bearer\n  env: A\n", "line 2: hosts is required"},
		{"empty hosts", "credentials:\n- ref: a\n  kind: bearer\n  hosts: []\n  env: A\n", "line 4: hosts is a list"},
		{"host with scheme", "credentials:\n- ref: a\n  hosts: [\"https://a.example\"]\n", "line 3: this is no host"},
		{"pattern", "credentials:\n- ref: a\n  hosts: [\"*.example\"]\n", "line 3: this is no host"},
		{"upper case host", "credentials:\n- ref: a\n  hosts: [API.example]\n", "line 3: this is no host"},
		{"bad port", "credentials:\n- ref: a\n  hosts: [\"a.example:99999\"]\n", "line 3: this is no host"},
		{"header for bearer", head + "    header: X\n    env: A\n", "line 2: a bearer credential has its own place"},
		{"header that frames", "credentials:\n- ref: a\n  kind: header\n  header: Content-Length\n  hosts: [a.example]\n  env: A\n", "line 2: header is the name"},
		{"header with line break", "credentials:\n- ref: a\n  kind: header\n  header: \"X\\r\\nY\"\n  hosts: [a.example]\n  env: A\n", "line 2: header is the name"},
		{"query without name", "credentials:\n- ref: a\n  kind: query\n  hosts: [a.example]\n  env: A\n", "line 2: parameter is the name"},
		{"name twice", head + "    env: A\n    env: B\n", "line 6"},
		{"reference twice", head + "    env: A\n  - ref: a\n    kind: bearer\n    hosts: [b.example]\n    env: B\n", "line 6: the reference of line 2"},
		{"another top field", "vault: {}\n", "line 1: the file has one entry"},
		{"not a list", "credentials: {}\n", "line 1: credentials is a list"},
		{"entry is a text", "credentials:\n- " + canary[:8] + "\n", "line 2: names and values"},
		{"number as ref", "credentials:\n- ref: 12345678\n", "line 2: ref is a text"},
		{"each_use is text", "credentials:\n- each_use: always\n", "line 2: each_use is true or false"},
		{"insecure_loopback is text", "credentials:\n- insecure_loopback: sure\n", "line 2: insecure_loopback is true or false"},
		{"alias", "credentials:\n- ref: &x abc\n", "line 2: ref is a text"},
		{"vault is text", head + "    vault: " + canary[:8] + "\n", "line 5: vault is true"},
		{"vault and env", head + "    vault: true\n    env: A\n", "line 2: exactly one of"},
		{"relative command", head + "    command: [pass, show]\n", "line 5: command begins with the whole path"},
		{"command as text", head + "    command: pass show\n", "line 5: command is a list"},
		{"oauth for bearer", head + "    env: A\n    oauth: {token_url: https://a.example, client_id: x}\n", "line 2: oauth says how"},
		{"oauth without oauth", "credentials:\n- ref: a\n  kind: oauth\n  hosts: [a.example]\n  env: A\n", "line 2: oauth says how"},
		{"oauth in the clear", "credentials:\n- ref: a\n  kind: oauth\n  hosts: [a.example]\n  env: A\n  oauth: {token_url: http://a.example, client_id: x}\n", "line 2: oauth needs token_url"},
		{"oauth with a secret", "credentials:\n- ref: a\n  kind: oauth\n  hosts: [a.example]\n  env: A\n  oauth: {client_secret: " + canary[:8] + "}\n", "line 6: a credential's value"},
		{"user in token_url", "credentials:\n- ref: a\n  kind: oauth\n  hosts: [a.example]\n  env: A\n  oauth: {token_url: \"https://" + canary[:8] + "@a.example\", client_id: x}\n", "line 2: oauth needs token_url"},
		{"check elsewhere", head + "    env: A\n    check: https://evil.example/\n", "line 2: check is the https URL"},
		{"check in the clear", head + "    env: A\n    check: http://api.example/\n", "line 2: check is the https URL"},
		{"openbao without auth", head + "    openbao: {url: https://bao.example, path: a, field: b}\n", "line 5: openbao needs"},
		{"openbao path", head + "    openbao: {url: https://bao.example, path: a/../b, field: b, auth: c}\n", "line 5: openbao needs"},
		{"openbao with unknown auth", head + "    openbao: {url: https://bao.example, path: a, field: b, auth: c}\n", "line 2: openbao's auth names"},
		{"openbao for its own token", head + "    openbao: {url: https://api.example, path: a, field: b, auth: a}\n", "line 2: openbao's auth names"},
		{"openbao with another host's token", head + "    openbao: {url: https://bao.example, path: a, field: b, auth: c}\n  - {ref: c, kind: header, header: X-Vault-Token, hosts: [other.example], env: A}\n", "line 2: openbao's auth names"},
		{"empty", "", "one document"},
		{"two documents", "credentials: []\n---\ncredentials: []\n", "one document"},
		{"no YAML", "credentials: [\n  \"" + canary[:8] + "\n", "no YAML"},
		{"tab", "credentials:\n\t- " + canary[:8] + "\n", ""},
	}
	for _, c := range cases {
		_, err := Parse([]byte(c.file), ".")
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %q, want %q in it", c.name, err, c.want)
		}
		if strings.Contains(err.Error(), canary[:8]) {
			t.Errorf("%s: the error repeats the file: %q", c.name, err)
		}
		if at := (*LoadError)(nil); !errors.As(err, &at) {
			t.Errorf("%s: error is a %T", c.name, err)
		}
	}
}

func TestLoadChecksTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.yaml")
	if _, err := Load(path); err == nil {
		t.Error("an absent file was loaded")
	}
	if err := os.WriteFile(path, []byte(goodFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o606); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil {
		t.Error("a file that everybody may write was loaded")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("credentials:\n- ? {}\n: - &a *a\n- !!binary x\n- <<: [*a]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if v, err := Parse(raw, "."); err == nil {
			for ref, c := range v.credentials {
				if len(c.Source.Command) > 0 || c.Source.OpenBao != nil || c.OAuth != nil {
					continue // whatever the fuzzer makes up is not to be run or asked
				}
				_, _ = v.Open(t.Context(), ref, action.Target{Scheme: "https", Host: "a", Port: 443})
			}
		}
	})
}
