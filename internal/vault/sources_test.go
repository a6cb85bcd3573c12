package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

// hostOf is host:port of a test server, and the target that it is.
func hostOf(t *testing.T, base string) (string, action.Target) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host, action.Target{Scheme: u.Scheme, Host: u.Hostname(), Port: port}
}

// A program gives a value without a shell, with nothing but PATH around it, and within bounds.
func TestValueFromACommand(t *testing.T) {
	t.Setenv("CANARY_ENV", canary)
	to := target("https", "a.example", 443)
	for _, c := range []struct{ argv, want, problem string }{
		{"['/bin/echo', 'a value; echo $HOME']", "a value; echo $HOME", ""},
		{"['/usr/bin/env']", "", "control character|PATH="},
		{"['/bin/sh', '-c', 'echo ${CANARY_ENV-nothing-here}']", "nothing-here", ""},
		{"['/bin/sh', '-c', 'echo canary-on-stderr >&2; exit 3']", "", "its program failed"},
		{"['/bin/sh', '-c', 'head -c 100000 /dev/zero']", "", "prints too much"},
		{"['/nonexistent/program']", "", "its program failed"},
		{"['/bin/true']", "", "it is empty"},
		{"['/bin/echo', 'short']", "", "shorter than 8"},
	} {
		v := mustParse(t, "credentials: [{ref: a, kind: bearer, hosts: [a.example], command: "+c.argv+"}]", t.TempDir())
		o, err := v.Open(t.Context(), "a", to)
		switch {
		case c.argv == "['/usr/bin/env']": // one line where the environment is PATH alone
			if err == nil && !strings.HasPrefix(o.value.Reveal(), "PATH=") || err != nil {
				t.Errorf("the environment is more than PATH: %v", err)
			}
		case c.problem == "" && (err != nil || o.value.Reveal() != c.want):
			t.Errorf("%s: %v", c.argv, err)
		case c.problem != "" && (!errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%s: %v, want %q", c.argv, err, c.problem)
		}
	}
	v := mustParse(t, "credentials: [{ref: a, kind: bearer, hosts: [a.example], command: ['/bin/cat']}]", t.TempDir())
	if _, err := v.Open(t.Context(), "a", to); !errors.Is(err, ErrSource) {
		t.Errorf("a program that reads its input gets none, and ends: %v", err)
	}
}

// tokenServer is an OAuth 2.0 token endpoint.
type tokenServer struct {
	*httptest.Server
	fetched atomic.Int64
	answer  func(n int64, w http.ResponseWriter)
	mu      sync.Mutex
	seen    []string // Authorization and form of each request
}

func newTokenServer(t *testing.T) *tokenServer {
	s := &tokenServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		user, password, _ := r.BasicAuth()
		s.mu.Lock()
		s.seen = append(s.seen, user+"|"+password+"|"+r.PostForm.Encode())
		s.mu.Unlock()
		n := s.fetched.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if s.answer != nil {
			s.answer(n, w)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"Bearer","expires_in":600}`, n)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) vault(t *testing.T, more string) *Vault {
	t.Setenv("OAUTH_SECRET", canary)
	return mustParse(t, "credentials: [{ref: crm, kind: oauth, hosts: [api.crm.example], env: OAUTH_SECRET, insecure_loopback: true, oauth: {token_url: '"+
		s.URL+"/token', client_id: deed"+more+"}}]", t.TempDir())
}

// VA-13: the client secret goes to the token server and the token to the target, each nowhere else. One token serves until
// shortly before it ends.
func TestClientSecretIsExchangedForAToken(t *testing.T) {
	s := newTokenServer(t)
	v := s.vault(t, ", scopes: [read, write], audience: 'https://api.crm.example'")
	now := time.Now()
	v.now = func() time.Time { return now }
	to := target("https", "api.crm.example", 443)
	send := func(want string) {
		t.Helper()
		if got := applied(t, v, "crm", to).Get("Authorization"); got != "Bearer "+want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	send("token-number-1")
	send("token-number-1")
	now = now.Add(565 * time.Second)
	send("token-number-1")
	now = now.Add(10 * time.Second)
	send("token-number-2")
	if _, err := v.Open(t.Context(), "crm", target("https", "evil.example", 443)); !errors.Is(err, ErrNotBound) {
		t.Errorf("another host: %v", err)
	}
	want := "deed|" + url.QueryEscape(canary) + "|audience=https%3A%2F%2Fapi.crm.example&grant_type=client_credentials&scope=read+write"
	if s.seen[0] != want {
		t.Errorf("the token server saw %q, want %q", s.seen[0], want)
	}
	o, err := v.Open(t.Context(), "crm", to)
	if err != nil {
		t.Fatal(err)
	}
	if out, found := o.RedactString("echo token-number-2"); !found || out != "echo [secret]" {
		t.Errorf("a token that the target sends back is kept: %s", out)
	}
}

// However many ask at once, one request fetches the token; and of many that are refused at once, one fetches the next.
func TestOneFetchForMany(t *testing.T) {
	s := newTokenServer(t)
	v := s.vault(t, "")
	now := time.Now()
	v.now = func() time.Time { return now }
	to := target("https", "api.crm.example", 443)
	all := func(do func() error) {
		t.Helper()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	all(func() error { _, err := v.Open(t.Context(), "crm", to); return err })
	if n := s.fetched.Load(); n != 1 {
		t.Errorf("%d fetches for 50 uses, want 1", n)
	}
	all(func() error { return v.Refresh(t.Context(), "crm") })
	if n := s.fetched.Load(); n != 2 {
		t.Errorf("%d fetches after 50 refusals, want 2", n)
	}
	now = now.Add(2 * time.Second)
	all(func() error { return v.Refresh(t.Context(), "crm") })
	if n := s.fetched.Load(); n != 3 {
		t.Errorf("%d fetches after 50 later refusals, want 3", n)
	}
}

// VA-10: a token that was asked for before a lock is not used after it.
func TestALockDropsTokens(t *testing.T) {
	s := newTokenServer(t)
	v := s.vault(t, "")
	to := target("https", "api.crm.example", 443)
	s.answer = func(n int64, w http.ResponseWriter) {
		if n == 1 {
			v.Lock()
		}
		fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"bearer"}`, n)
	}
	if _, err := v.Open(t.Context(), "crm", to); !errors.Is(err, ErrLocked) {
		t.Errorf("locked during the fetch: %v", err)
	}
	v.Unlock()
	if got := applied(t, v, "crm", to).Get("Authorization"); got != "Bearer token-number-2" {
		t.Errorf("sent %q", got)
	}
	v.Lock()
	if !v.Locked() {
		t.Error("it is not locked")
	}
	v.Unlock()
	if got := applied(t, v, "crm", to).Get("Authorization"); got != "Bearer token-number-3" {
		t.Errorf("after a lock sent %q", got)
	}
}

// HT-07, VA-08: what goes wrong at a token server is told in words of the standard, and quotes nothing that it said.
func TestWhatATokenServerSaysIsNotQuoted(t *testing.T) {
	to := target("https", "api.crm.example", 443)
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"refused":           {401, `{"error":"invalid_client","error_description":"CANARY"}`, "answered 401 invalid_client"},
		"an unknown word":   {400, `{"error":"CANARY"}`, "answered 400"},
		"a page":            {500, "CANARY", "answered 500"},
		"a redirect":        {307, "CANARY", "answered 307"},
		"no token":          {200, `{"token_type":"bearer","x":"CANARY"}`, "no usable answer"},
		"another type":      {200, `{"access_token":"CANARY-CANARY","token_type":"mac"}`, "no bearer token"},
		"a token of two":    {200, `{"access_token":"CANARY\r\nX: y","token_type":"bearer"}`, "control character"},
		"a very short one":  {200, `{"access_token":"CANARY","token_type":"bearer"}`, "shorter than 8"},
		"no JSON, in parts": {200, `{"access_token":"CANARY`, "no usable answer"},
	} {
		s := newTokenServer(t)
		v := s.vault(t, ", client_auth: body")
		s.answer = func(_ int64, w http.ResponseWriter) {
			w.Header().Set("Location", "https://evil.example/")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}
		_, err := v.Open(t.Context(), "crm", to)
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else {
			mustHide(t, name, err.Error())
		}
		if s.fetched.Load() != 1 {
			t.Errorf("%s: %d requests", name, s.fetched.Load())
		}
	}
}

// A key-value store, version 2, as the documentation of OpenBao and of HashiCorp Vault describes its HTTP interface.
func TestValueFromOpenBao(t *testing.T) {
	const token = "token-for-the-store"
	status := 200
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Vault-Token")+" "+r.Header.Get("X-Vault-Namespace"))
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"request_id": "1", "data": map[string]any{
			"data": map[string]any{"key": canary, "number": 12345678}, "metadata": map[string]any{"version": 3},
		}})
	}))
	defer server.Close()
	host, _ := hostOf(t, server.URL)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	to := target("https", "api.example", 443)
	list := `credentials:
- {ref: store, kind: header, header: X-Vault-Token, hosts: ['` + host + `'], insecure_loopback: true, file: token}
- {ref: pay, kind: bearer, hosts: [api.example], openbao: {url: '` + server.URL + `', mount: kv/team, path: billing/pay, field: FIELD, namespace: ops, auth: store}}
`
	v := mustParse(t, strings.Replace(list, "FIELD", "key", 1), dir)
	if got := applied(t, v, "pay", to).Get("Authorization"); got != "Bearer "+canary {
		t.Errorf("sent %q", got)
	}
	if len(asked) != 1 || asked[0] != "GET /v1/kv/team/data/billing/pay "+token+" ops" {
		t.Errorf("asked %q", asked)
	}
	for _, field := range []string{"number", "nothing"} {
		if _, err := mustParse(t, strings.Replace(list, "FIELD", field, 1), dir).Open(t.Context(), "pay", to); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "no such field") {
			t.Errorf("field %s: %v", field, err)
		}
	}
	for code, want := range map[int]string{403: "may not read", 404: "no such secret", 503: "sealed", 500: "500", 307: "307"} {
		status = code
		_, err := v.Open(t.Context(), "pay", to)
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", code, err)
		}
		mustHide(t, "error", err.Error())
	}
	before := len(asked)
	v.Lock()
	if _, err := v.Open(t.Context(), "pay", to); !errors.Is(err, ErrLocked) || len(asked) != before {
		t.Errorf("locked: %v, %d more requests", err, len(asked)-before)
	}
	v.Unlock()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Open(t.Context(), "pay", to); !errors.Is(err, ErrSource) || len(asked) != before {
		t.Errorf("without a token that is one: %v, %d more requests", err, len(asked)-before)
	}
}

// The vault's own requests go to no address where machines get their metadata, whatever name led there.
func TestTheVaultAsksNoMetadataAddress(t *testing.T) {
	for address, allowed := range map[string]bool{
		"169.254.169.254:443": false, "[::ffff:169.254.169.254]:443": false, "[fe80::1]:443": false, "0.0.0.0:443": false, "[::]:443": false,
		"224.0.0.1:443": false, "[fd00:ec2::254]:443": false, "no address": false,
		"10.0.0.7:8200": true, "127.0.0.1:8200": true, "[fd00::1]:8200": true, "203.0.113.9:443": true,
	} {
		if err := refuseLinkLocal("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
	t.Setenv("OAUTH_SECRET", canary)
	v := mustParse(t, "credentials: [{ref: a, kind: oauth, hosts: [a.example], env: OAUTH_SECRET, oauth: {token_url: 'https://169.254.169.254/token', client_id: x}}]", t.TempDir())
	if _, err := v.Open(t.Context(), "a", target("https", "a.example", 443)); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "no usable answer") {
		t.Errorf("asked: %v", err)
	}
}
