package vault

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

func target(scheme, host string, port int) action.Target {
	return action.Target{Scheme: scheme, Host: host, Port: port}
}

func mustParse(t *testing.T, file, dir string) *Vault {
	t.Helper()
	v, err := Parse([]byte(file), dir)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// VA-13: a credential goes to the hosts that it names, at the port that it names, encrypted, and nowhere else.
func TestOpenOnlyForBoundTargets(t *testing.T) {
	t.Setenv("STRIPE_KEY", canary)
	t.Setenv("LOCAL", "user:"+canary)
	v := mustParse(t, goodFile, t.TempDir())
	cases := []struct {
		ref  string
		to   action.Target
		want error
	}{
		{"stripe-test", target("https", "api.stripe.com", 443), nil},
		{"stripe-test", target("https", "api.stripe.com", 8443), ErrNotBound},
		{"stripe-test", target("http", "api.stripe.com", 443), ErrNotBound},
		{"stripe-test", target("http", "api.stripe.com", 80), ErrNotBound},
		{"stripe-test", target("https", "evil.example", 443), ErrNotBound},
		{"stripe-test", target("https", "api.stripe.com.evil.example", 443), ErrNotBound},
		{"stripe-test", target("https", "xapi.stripe.com", 443), ErrNotBound},
		{"stripe-test", target("https", "API.stripe.com", 443), ErrNotBound},
		{"stripe-test", target("https", "api.stripe.com.", 443), ErrNotBound},
		{"stripe-test", target("ftp", "api.stripe.com", 443), ErrNotBound},
		{"stripe-test", action.Target{}, ErrNotBound},
		{"local", target("http", "127.0.0.1", 8080), nil},
		{"local", target("http", "localhost", 80), nil},
		{"local", target("https", "127.0.0.1", 8080), nil},
		{"local", target("http", "127.0.0.1", 8081), ErrNotBound},
		{"nobody", target("https", "api.stripe.com", 443), ErrUnknown},
		{"", target("https", "api.stripe.com", 443), ErrUnknown},
	}
	for _, c := range cases {
		o, err := v.Open(t.Context(), c.ref, c.to)
		if !errors.Is(err, c.want) || (err == nil) != (o != nil) {
			t.Errorf("%q for %s: error %v, want %v", c.ref, c.to, err, c.want)
		}
	}
}

// VA-03, VA-10: a locked vault refuses every use, from that moment on.
func TestLockedVaultRefusesEverything(t *testing.T) {
	t.Setenv("STRIPE_KEY", canary)
	v := mustParse(t, goodFile, t.TempDir())
	to := target("https", "api.stripe.com", 443)
	v.Lock()
	for _, ref := range []string{"stripe-test", "nobody"} {
		if _, err := v.Open(t.Context(), ref, to); !errors.Is(err, ErrLocked) {
			t.Errorf("open %s: %v, want %v", ref, err, ErrLocked)
		}
		if err := v.Refresh(t.Context(), ref); !errors.Is(err, ErrLocked) {
			t.Errorf("refresh %s: %v, want %v", ref, err, ErrLocked)
		}
	}
	v.Unlock()
	if _, err := v.Open(t.Context(), "stripe-test", to); err != nil {
		t.Errorf("after Unlock: %v", err)
	}
}

// VA-13: the value is read in the moment of use, so a rotated one counts at once.
func TestValueIsReadAtEachUse(t *testing.T) {
	dir := t.TempDir()
	v := mustParse(t, goodFile, dir)
	to, path := target("https", "deploy.example", 8443), filepath.Join(dir, "deploy.key")
	if _, err := v.Open(t.Context(), "deploy", to); !errors.Is(err, ErrSource) {
		t.Errorf("without the file: %v", err)
	}
	for _, value := range []string{"first-value", "second-value"} {
		for _, end := range []string{"", "\n", "\r\n"} {
			if err := os.WriteFile(path, []byte(value+end), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := applied(t, v, "deploy", to).Get("X-Api-Key"); got != value {
				t.Errorf("sent %q, want %q", got, value)
			}
			if err := v.Refresh(t.Context(), "deploy"); err != nil {
				t.Error(err)
			}
		}
	}
}

// VA-12, case 085: an unusable value is refused, and the error shows neither it nor a path.
func TestUnusableValuesAreRefused(t *testing.T) {
	dir := t.TempDir()
	v := mustParse(t, goodFile, dir)
	path := filepath.Join(dir, "deploy.key")
	write := func(value string, mode os.FileMode) {
		t.Helper()
		_ = os.Remove(path)
		if err := errors.Join(os.WriteFile(path, []byte(value), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name, value string
		mode        os.FileMode
		want        string
	}{
		{"others may read", canary, 0o644, "0644"},
		{"group may write", canary, 0o620, "0620"},
		{"empty", "", 0o600, "empty"},
		{"a newline only", "\n", 0o600, "empty"},
		{"short", "1234567", 0o600, "shorter than 8"},
		{"two lines", canary + "\nX-Evil: 1\n", 0o600, "control character"},
		{"carriage return", canary + "\rx", 0o600, "control character"},
		{"NUL", canary + "\x00", 0o600, "control character"},
		{"huge", strings.Repeat("x", MaxSecret+1), 0o600, "longer than"},
	}
	for _, c := range cases {
		write(c.value, c.mode)
		_, err := v.Open(t.Context(), "deploy", target("https", "deploy.example", 8443))
		if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), dir)) {
			t.Errorf("%s: the error tells too much: %v", c.name, err)
		}
	}
	t.Setenv("LOCAL", "userandnothing")
	if _, err := v.Open(t.Context(), "local", target("http", "localhost", 80)); !errors.Is(err, ErrSource) {
		t.Errorf("basic without colon: %v", err)
	}
	t.Setenv("LOCAL", "a-long-user-name:short")
	if _, err := v.Open(t.Context(), "local", target("http", "localhost", 80)); !errors.Is(err, ErrSource) {
		t.Errorf("basic with a short password: %v", err)
	}
}

func applied(t *testing.T, v *Vault, ref string, to action.Target) http.Header {
	t.Helper()
	o, err := v.Open(t.Context(), ref, to)
	if err != nil {
		t.Fatal(err)
	}
	req := &http.Request{URL: &url.URL{}, Header: http.Header{}}
	if err := o.Apply(req); err != nil {
		t.Fatal(err)
	}
	return req.Header
}

func TestApplyPutsEachKindInItsPlace(t *testing.T) {
	for kind, want := range map[Kind]string{
		Bearer: "Bearer user:p&ssword 1", Basic: "Basic dXNlcjpwJnNzd29yZCAx", Header: "user:p&ssword 1", Query: "",
	} {
		o := mustOpen(t, kind, "user:p&ssword 1")
		req := &http.Request{URL: &url.URL{RawQuery: "a=1"}, Header: http.Header{}}
		if err := o.Apply(req); err != nil {
			t.Fatal(err)
		}
		if kind == Query {
			if req.URL.RawQuery != "a=1&X-Api-Key=user%3Ap%26ssword+1" {
				t.Errorf("query is %s", req.URL.RawQuery)
			}
		} else if got := req.Header.Get("Authorization") + req.Header.Get("X-Api-Key"); got != want {
			t.Errorf("%s: sent %q, want %q", kind, got, want)
		}
		if err := o.Apply(req); err == nil {
			t.Errorf("%s: applied twice", kind)
		}
	}
}
