package httpexec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// VA-03, VA-10, VA-13, HT-13: no value, no connection.
func TestCredentialThatMayNotBeUsed(t *testing.T) {
	r, other := newRig(t, "http"), newRig(t, "http")
	v := newVault(t, r.base)
	r.executor = newExecutor(t, Options{Vault: v})
	refused := func(d action.Dispatch, reason string) {
		t.Helper()
		out := r.perform(d)
		want(t, out, action.AttemptNotSent, action.NoEffectProven, reason)
		if out.Remote != "" {
			t.Errorf("%s: %s was dialled", reason, out.Remote)
		}
	}
	refused(other.dispatch(), ReasonCredentialNotBound)
	d := r.dispatch()
	d.Operation.Credential = "nobody"
	refused(d, ReasonCredentialUnknown)
	v.Lock()
	refused(r.dispatch(), ReasonVaultLocked)
	v.Unlock()
	d = r.dispatch()
	d.Operation.Credential = "header"
	d.Operation.Headers = []action.Header{{Name: "X-Api-Key", Value: "mine"}}
	out := r.perform(d)
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonRequestRefused)
	d = r.dispatch()
	d.Operation.Credential, d.Operation.Query = "query", "a=b&api_key=mine"
	want(t, r.perform(d), action.AttemptNotSent, action.NoEffectProven, ReasonRequestRefused)

	r.executor = newExecutor(t, Options{})
	refused(r.dispatch(), ReasonCredentialUnknown)
	empty, err := vault.Parse([]byte("credentials:\n- {ref: bearer, kind: bearer, hosts: ['"+
		strings.TrimPrefix(r.base, "http://")+"'], insecure_loopback: true, file: absent}\n"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.executor = newExecutor(t, Options{Vault: empty})
	refused(r.dispatch(), ReasonCredentialUnusable)
	r.wantRequests(0, 0)
	other.wantRequests(0, 0)
}

// VA-10: the vault is locked while the connection is made. That is after the first look into it and before the send.
func TestVaultLockedWhileDialling(t *testing.T) {
	r := newRig(t, "https")
	v := newVault(t, r.base)
	r.executor = newExecutor(t, Options{Vault: lockAfter{v}})
	want(t, r.perform(r.dispatch()), action.AttemptNotSent, action.NoEffectProven, ReasonVaultLocked)
	r.wantRequests(0, 0)
}

// lockAfter locks the vault after each use.
type lockAfter struct{ *vault.Vault }

func (v lockAfter) Open(ctx context.Context, ref string, to action.Target) (*vault.Opened, error) {
	defer v.Lock()
	return v.Vault.Open(ctx, ref, to)
}

// VA-13: a rotated credential counts from the next attempt on, also on a kept connection.
func TestRotatedCredential(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "http")
	v, err := vault.Parse([]byte("credentials:\n- {ref: bearer, kind: bearer, hosts: ['"+
		strings.TrimPrefix(r.base, "http://")+"'], insecure_loopback: true, file: key}\n"), dir)
	if err != nil {
		t.Fatal(err)
	}
	r.executor = newExecutor(t, Options{Vault: v})
	for i, value := range []string{"first-value", "second-value"} {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, r.perform(r.dispatch()), action.AttemptCompleted, action.EffectProven, "")
		req := r.provider.Requests()[i]
		if got := req.Values("Authorization"); len(got) != 1 || got[0] != "Bearer "+value || req.Connection != 1 {
			t.Errorf("attempt %d sent %v on connection %d", i+1, got, req.Connection)
		}
	}
}
