package httpexec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/lab/provider"
)

// canary is the secret that must be found nowhere. It has characters that every encoding changes.
const canary = `canary/7f+Kd9&"q\Z<s =1`

// loopbackOnly allows this machine, as a contract for an internal target would.
var loopbackOnly = []string{"127.0.0.0/8", "::1/128"}

// authority signs the certificate of test servers.
var authority = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost", "target.example"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
})

// rig is an executor with a vault, and a provider to send to.
type rig struct {
	*testing.T
	provider *provider.Server
	base     string // URL of the provider
	executor *Executor
}

func newRig(t *testing.T, scheme string) *rig {
	t.Helper()
	server, err := provider.Open(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	base, err := server.Listen("127.0.0.1:0")
	if scheme == "https" {
		certificate, _ := authority()
		base, err = server.ListenTLS("127.0.0.1:0", certificate)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, server, base, newExecutor(t, Options{Vault: newVault(t, base)})}
}

func newExecutor(t testing.TB, o Options) *Executor {
	_, o.RootCAs = authority()
	e := New(o)
	t.Cleanup(e.Close)
	return e
}

// newVault has the credentials "bearer", "header", "basic" and "query", all with the canary, for the hosts of the URLs.
func newVault(t testing.TB, urls ...string) *vault.Vault {
	t.Helper()
	dir := t.TempDir()
	var hosts []string
	for _, u := range urls {
		hosts = append(hosts, strconv.Quote(strings.SplitAfter(u, "://")[1]))
	}
	var file strings.Builder
	file.WriteString("credentials:\n")
	for kind, extra := range map[string]string{"bearer": "", "header": "header: X-Api-Key,", "basic": "", "query": "parameter: api_key,"} {
		value := canary
		if kind == "basic" {
			value = "user:" + canary
		}
		if err := os.WriteFile(filepath.Join(dir, kind), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&file, "- {ref: %s, kind: %s, %s hosts: [%s], insecure_loopback: true, file: %s}\n",
			kind, kind, extra, strings.Join(hosts, ", "), kind)
	}
	v, err := vault.Parse([]byte(file.String()), dir)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// dispatchTo makes a dispatch that is complete and allowed: a charge, unless it is changed.
func dispatchTo(t testing.TB, base string) action.Dispatch {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return action.Dispatch{
		Action: "act_00000000000000000000000001", Attempt: "att_00000000000000000000000001", Number: 1,
		Token: "act_00000000000000000000000001", Allowed: "binding", Binding: "binding",
		Trace: action.Trace{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7"},
		Judge: judge,
		Operation: action.Operation{
			Channel: "http", Method: "POST", Path: "/v1/charges", Body: []byte(`{"amount":100,"currency":"eur"}`),
			Target:    action.Target{Scheme: u.Scheme, Host: u.Hostname(), Port: port, Private: loopbackOnly},
			MediaType: "application/json", Key: action.KeyPlace{Header: "Idempotency-Key"}, Credential: "bearer",
			Timeout: 10_000, MaxResult: 1 << 20,
		},
	}
}

func (r *rig) dispatch() action.Dispatch { return dispatchTo(r.T, r.base) }

// judge is a usual contract: 200 and 201 prove the effect, 400, 403, 404 and 422 prove that there was none, and 429 and
// 401 are promised to come before any.
func judge(r action.Response) action.Verdict {
	switch r.Status {
	case 200, 201:
		return action.Verdict{Certainty: action.EffectProven, Rule: "done_when"}
	case 400, 403, 404, 413, 422:
		return action.Verdict{Certainty: action.NoEffectProven, Rule: "no_effect_when"}
	case 401, 429:
		return action.Verdict{Certainty: action.NoEffectProven, Retry: true, Rule: "retry_when"}
	}
	return action.Verdict{}
}

// fault makes the provider misbehave from now on.
func (r *rig) fault(f provider.Fault) {
	r.Helper()
	if err := r.provider.Set(provider.Switches{Keys: provider.IgnoreKey, Faults: []provider.Fault{f}}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) perform(d action.Dispatch) action.Outcome {
	r.Helper()
	return r.executor.Perform(r.Context(), d)
}

// want compares an outcome.
func want(t testing.TB, out action.Outcome, state action.AttemptState, certainty action.Certainty, reason string) {
	t.Helper()
	if out.State != state || out.Certainty != certainty || out.Reason != reason {
		t.Errorf("got %s, %s, reason %q (status %d, %d bytes); want %s, %s, reason %q",
			out.State, out.Certainty, out.Reason, out.Status, out.BytesSent, state, certainty, reason)
	}
}

// wantRequests compares what the provider itself saw and did.
func (r *rig) wantRequests(requests, effects int) {
	r.Helper()
	if got := r.provider.Requests(); len(got) != requests {
		r.Errorf("the provider saw %d requests, want %d", len(got), requests)
	}
	if got := r.provider.Effects(); len(got) != effects {
		r.Errorf("the provider had %d effects, want %d", len(got), effects)
	}
}
