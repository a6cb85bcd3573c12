package httpexec

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// shown is a TLS server that notes the certificate of each request's connection.
type shown struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // common name, or "" without one
}

func newShown(t *testing.T, h2 bool) *shown {
	t.Helper()
	certificate, pool := authority()
	s := &shown{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := ""
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		s.mu.Lock()
		s.seen = append(s.seen, name)
		s.mu.Unlock()
		w.WriteHeader(201)
	}))
	s.EnableHTTP2 = h2
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// certificateFile writes the test's own certificate and key as one PEM text.
func certificateFile(t *testing.T, path string) {
	t.Helper()
	pair, _ := authority()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// VA-13: a client certificate is shown to the host that it is for, on connections of its own. A session that another
// credential takes up, or a request without one, does not carry it.
func TestClientCertificateIsShownForItsCredentialOnly(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		s := newShown(t, h2)
		dir := t.TempDir()
		certificateFile(t, filepath.Join(dir, "pair.pem"))
		if err := os.WriteFile(filepath.Join(dir, "bearer"), []byte(canary), 0o600); err != nil {
			t.Fatal(err)
		}
		host := strings.TrimPrefix(s.URL, "https://")
		v, err := vault.Parse([]byte("credentials:\n- {ref: pair, kind: tls_client, hosts: ['"+host+"'], file: pair.pem}\n- {ref: bearer, kind: bearer, hosts: ['"+host+"'], file: bearer}\n"), dir)
		if err != nil {
			t.Fatal(err)
		}
		executor := newExecutor(t, Options{Vault: v})
		for _, credential := range []string{"bearer", "pair", "", "pair", "bearer", ""} {
			d := dispatchTo(t, s.URL)
			d.Operation.Credential = credential
			want(t, executor.Perform(t.Context(), d), action.AttemptCompleted, action.EffectProven, "")
		}
		if got := strings.Join(s.seen, ","); got != ",test,,test,," {
			t.Errorf("HTTP/2 %v: the server saw %q", h2, got)
		}
		other := newShown(t, h2)
		d := dispatchTo(t, other.URL)
		d.Operation.Credential = "pair"
		want(t, executor.Perform(t.Context(), d), action.AttemptNotSent, action.NoEffectProven, ReasonCredentialNotBound)
		if len(other.seen) != 0 {
			t.Error("another host was asked")
		}
	}
}

// VA-10: the vault is locked when everything is ready and nothing is written. Nothing is.
func TestVaultLockedBeforeTheFirstByte(t *testing.T) {
	r := newRig(t, "http")
	v := newVault(t, r.base)
	r.executor = newExecutor(t, Options{Vault: v})
	for _, relock := range []bool{false, true} {
		r.executor.testOnlyBeforeSend = func(*link) {
			v.Lock()
			if relock {
				v.Unlock()
			}
		}
		want(t, r.perform(r.dispatch()), action.AttemptNotSent, action.NoEffectProven, ReasonVaultLocked)
		v.Unlock()
	}
	r.executor.testOnlyBeforeSend = nil
	r.wantRequests(0, 0)
	want(t, r.perform(r.dispatch()), action.AttemptCompleted, action.EffectProven, "")
}

// HT-04: one attempt is one request at the target, also where its token comes from a server that has to be asked.
func TestATokenIsFetchedBeforeTheOneRequest(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"token-of-the-server","token_type":"Bearer","expires_in":3600}`))
	}))
	defer tokens.Close()
	r := newRig(t, "http")
	t.Setenv("HTTPEXEC_OAUTH", canary)
	v, err := vault.Parse([]byte("credentials: [{ref: bearer, kind: oauth, hosts: ['"+strings.TrimPrefix(r.base, "http://")+
		"'], insecure_loopback: true, env: HTTPEXEC_OAUTH, oauth: {token_url: '"+tokens.URL+"', client_id: deed}}]"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.executor = newExecutor(t, Options{Vault: v})
	want(t, r.perform(r.dispatch()), action.AttemptCompleted, action.EffectProven, "")
	r.wantRequests(1, 1)
	if got := r.provider.Requests()[0].Values("Authorization"); len(got) != 1 || got[0] != "Bearer token-of-the-server" {
		t.Errorf("sent %q", got)
	}
	tokens.Close()
	v.Lock() // drops the token
	if !v.Locked() {
		t.Error("it is not locked")
	}
	v.Unlock()
	out := r.perform(r.dispatch())
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonCredentialUnusable)
	if bytes.Contains([]byte(out.Reason), []byte(canary)) {
		t.Error("the reason holds the secret")
	}
}
