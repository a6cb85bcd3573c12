package vault

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"deed.dev/deed/internal/vault/agefile"
)

// RM-16, VA-14: a rotation ends when it is known which value is active, and only then. Until it does, the old value stays
// in use, the same rotation asked for again is the same one, and another one is refused, however long it takes.
func TestRotationEndsWithACheck(t *testing.T) {
	const before, after = "value-before-rotation", "value-after-rotation"
	for name, c := range map[string]struct {
		takes   []string // values that the target takes
		status  int      // what it answers to others
		over    bool
		active  string
		verdict Verdicts
	}{
		"the new one is active":   {[]string{after}, 401, true, after, Verdicts{Active, Refused}},
		"both are":                {[]string{before, after}, 401, true, after, Verdicts{Active, Active}},
		"the old one still is":    {[]string{before}, 401, true, before, Verdicts{Refused, Active}},
		"neither is":              {nil, 401, false, before, Verdicts{Refused, Refused}},
		"the target is down":      {nil, 503, false, before, Verdicts{NoEvidence, NoEvidence}},
		"a right is missing":      {nil, 403, false, before, Verdicts{NoEvidence, NoEvidence}},
		"a redirect proves none":  {nil, 302, false, before, Verdicts{NoEvidence, NoEvidence}},
		"old one and no evidence": {[]string{before}, 500, false, before, Verdicts{NoEvidence, Active}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/me" {
					t.Errorf("the check is %s %s", r.Method, r.URL)
				}
				if !slices.Contains(c.takes, r.Header.Get("X-Key")) {
					w.Header().Set("Location", "https://evil.example/")
					w.WriteHeader(c.status)
				}
			}))
			defer server.Close()
			host, to := hostOf(t, server.URL)
			v := mustParse(t, "credentials: [{ref: mail, kind: header, header: X-Key, hosts: ['"+host+"'], insecure_loopback: true, check: '"+server.URL+"/me', vault: true}]", t.TempDir())
			path := filepath.Join(t.TempDir(), "vault.age")
			if err := Create(path, passphrase(t, pass), agefile.LeastWork, nil); err != nil {
				t.Fatal(err)
			}
			v.UseFile(path, nil)
			set(t, v, path, "mail", before)
			cred, _ := v.Find("mail")
			edit := func(change func(*Editor) error) error { return Edit(path, passphrase(t, pass), change) }
			begin := func(value string) error {
				return edit(func(e *Editor) error { return e.Rotate(cred, []byte(value), time.Now().Add(-72*time.Hour)) })
			}
			if err := begin(before); err == nil {
				t.Error("the same value was rotated in")
			}
			if err := errors.Join(begin(after), begin(after)); err != nil {
				t.Fatal(err)
			}
			if err := begin("a third value"); !errors.Is(err, ErrRotating) {
				t.Errorf("a third value: %v", err)
			}
			if err := edit(func(e *Editor) error { return e.Set(cred, []byte("a third value"), time.Now()) }); !errors.Is(err, ErrRotating) {
				t.Errorf("set meanwhile: %v", err)
			}
			seen, err := v.Check(t.Context(), path, passphrase(t, pass), cred)
			over, isNew := seen.Over()
			if err != nil || seen != c.verdict || over != c.over || over && isNew != (c.active == after) {
				t.Errorf("the check says %v, %v: over %v", seen, err, over)
			}
			if over {
				if err := edit(func(e *Editor) error { return e.Settle("mail", isNew, ByCheck, time.Now()) }); err != nil {
					t.Fatal(err)
				}
			}
			if err := v.UnlockWith(passphrase(t, pass)); err != nil {
				t.Fatal(err)
			}
			if got := applied(t, v, "mail", to).Get("X-Key"); got != c.active {
				t.Errorf("%q is used, want %q", got, c.active)
			}
			entries, err := v.Entries()
			if err != nil || len(entries) != 1 || entries[0].Rotating.IsZero() != c.over || (entries[0].VerifiedBy == ByCheck) != c.over {
				t.Errorf("listed is %+v, %v", entries, err)
			}
			if _, err := v.Check(t.Context(), path, passphrase(t, pass), cred); errors.Is(err, ErrNoEntry) != c.over {
				t.Errorf("checked again: %v", err)
			}
		})
	}
}
