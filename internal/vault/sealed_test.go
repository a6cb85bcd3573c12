package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault/agefile"
)

const sealedList = `credentials:
  - {ref: pay, kind: bearer, hosts: [api.pay.example, "api2.pay.example:8443"], vault: true}
  - {ref: mail, kind: header, header: X-Key, hosts: [mail.example], vault: true}
  - {ref: env, kind: bearer, hosts: [env.example], env: SEALED_TEST}
`

const pass = "a passphrase for tests"

func passphrase(t *testing.T, text string) Unlocker {
	t.Helper()
	u, err := WithPassphrase([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// sealedVault is a vault with a file that holds the canary for "pay", still locked.
func sealedVault(t *testing.T, list string) (v *Vault, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "vault.age")
	v = mustParse(t, list, t.TempDir())
	if err := Create(path, passphrase(t, pass), agefile.LeastWork, nil); err != nil {
		t.Fatal(err)
	}
	set(t, v, path, "pay", canary)
	v.UseFile(path, nil)
	return v, path
}

func set(t *testing.T, v *Vault, path, ref, value string) {
	t.Helper()
	c, ok := v.Find(ref)
	if !ok {
		t.Fatalf("no credential %s", ref)
	}
	if err := Edit(path, passphrase(t, pass), func(e *Editor) error { return e.Set(c, []byte(value), time.Now()) }); err != nil {
		t.Fatal(err)
	}
}

var pay = action.Target{Scheme: "https", Host: "api.pay.example", Port: 443}

// VA-03, VA-12: a vault with a file begins locked, and then nothing is used, whatever its source. Its key opens it, and
// another key does not.
func TestAVaultWithAFileBeginsLocked(t *testing.T) {
	t.Setenv("SEALED_TEST", canary)
	v, path := sealedVault(t, sealedList)
	env := action.Target{Scheme: "https", Host: "env.example", Port: 443}
	locked := func(when string) {
		t.Helper()
		for ref, to := range map[string]action.Target{"pay": pay, "env": env} {
			if _, err := v.Open(t.Context(), ref, to); !errors.Is(err, ErrLocked) || !v.Locked() {
				t.Errorf("%s: %s opens with %v", when, ref, err)
			}
		}
	}
	locked("at the start")
	if err := v.UnlockWith(passphrase(t, "another passphrase")); !errors.Is(err, agefile.ErrKey) {
		t.Errorf("another passphrase: %v", err)
	}
	locked("after a wrong passphrase")
	v.Unlock()
	locked("after an unlock without a key")
	if err := v.Reload(passphrase(t, pass)); !errors.Is(err, ErrLocked) {
		t.Errorf("reload: %v", err)
	}
	locked("after a reload")
	if err := v.UnlockWith(passphrase(t, pass)); err != nil {
		t.Fatal(err)
	}
	if got := applied(t, v, "pay", pay).Get("Authorization"); got != "Bearer "+canary {
		t.Errorf("sent %q", got)
	}
	v.Lock()
	locked("after a lock")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustHide(t, "the file", string(raw))
}

// VA-10: what was opened before a lock may not be sent after it, not even when the vault is open again by then.
func TestWhatWasOpenedBeforeALockIsWorthNothing(t *testing.T) {
	v, _ := sealedVault(t, sealedList)
	unlock := func() {
		t.Helper()
		if err := v.UnlockWith(passphrase(t, pass)); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	o, err := v.Open(t.Context(), "pay", pay)
	if err != nil || o.Still() != nil {
		t.Fatalf("open: %v, %v", err, o.Still())
	}
	sealed := v.sealed.entries["pay"].value.bytes()
	v.Lock()
	if !errors.Is(o.Still(), ErrLocked) {
		t.Error("it may still be sent while the vault is locked")
	}
	if !bytes.Equal(sealed, make([]byte, len(canary))) {
		t.Error("the value was not wiped")
	}
	unlock()
	if !errors.Is(o.Still(), ErrLocked) {
		t.Error("it may still be sent when the vault is open again")
	}
}

// VA-10: many who open, lock and unlock at once: after the last lock nothing opens and nothing may be sent.
func TestLockBesideUnlocksAndUses(t *testing.T) {
	v, _ := sealedVault(t, sealedList)
	for range 20 {
		var wg sync.WaitGroup
		opened := make(chan *Opened, 100)
		for range 5 {
			wg.Go(func() { _ = v.UnlockWith(passphrase(t, pass)) })
			wg.Go(func() {
				for range 20 {
					if o, err := v.Open(t.Context(), "pay", pay); err == nil {
						opened <- o
					}
				}
			})
			wg.Go(v.Lock)
		}
		wg.Wait()
		v.Lock()
		close(opened)
		for o := range opened {
			if o.Still() == nil {
				t.Fatal("something that was opened before the lock may still be sent")
			}
		}
		if _, err := v.Open(t.Context(), "pay", pay); !errors.Is(err, ErrLocked) || v.sealed != nil {
			t.Fatalf("after the lock: %v", err)
		}
	}
}

// VA-09, VA-13: whoever can change the list of credentials cannot send a sealed value to another place.
func TestASealedValueGoesNowhereElse(t *testing.T) {
	_, path := sealedVault(t, sealedList)
	for name, c := range map[string]struct {
		entry string
		to    action.Target
		opens bool
	}{
		"as it was":        {"{ref: pay, kind: bearer, hosts: [api.pay.example, 'api2.pay.example:8443'], vault: true}", pay, true},
		"one host fewer":   {"{ref: pay, kind: bearer, hosts: [api.pay.example], vault: true}", pay, true},
		"another host":     {"{ref: pay, kind: bearer, hosts: [evil.example], vault: true}", action.Target{Scheme: "https", Host: "evil.example", Port: 443}, false},
		"one host more":    {"{ref: pay, kind: bearer, hosts: [api.pay.example, evil.example], vault: true}", pay, false},
		"another port":     {"{ref: pay, kind: bearer, hosts: ['api.pay.example:444'], vault: true}", action.Target{Scheme: "https", Host: "api.pay.example", Port: 444}, false},
		"another kind":     {"{ref: pay, kind: query, parameter: q, hosts: [api.pay.example], vault: true}", pay, false},
		"in the clear":     {"{ref: pay, kind: bearer, hosts: [api.pay.example], insecure_loopback: true, vault: true}", pay, false},
		"to a token URL":   {"{ref: pay, kind: oauth, hosts: [api.pay.example], oauth: {token_url: 'https://evil.example/', client_id: x}, vault: true}", pay, false},
		"another ref":      {"{ref: mail, kind: bearer, hosts: [api.pay.example], vault: true}", pay, false},
		"with a new check": {"{ref: pay, kind: bearer, hosts: [api.pay.example], check: 'https://api.pay.example/me', vault: true}", pay, false},
	} {
		v := mustParse(t, "credentials: ["+c.entry+"]", t.TempDir())
		v.UseFile(path, nil)
		if err := v.UnlockWith(passphrase(t, pass)); err != nil {
			t.Fatal(err)
		}
		ref := "pay"
		if name == "another ref" {
			ref = "mail"
		}
		_, err := v.Open(t.Context(), ref, c.to)
		if (err == nil) != c.opens || err != nil && (!errors.Is(err, ErrSource) || !strings.Contains(err.Error(), "deed vault set")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// VA-12: what is listed, printed or answered is never a value, its length or a digest of it.
func TestNothingGivesAValueBack(t *testing.T) {
	v, path := sealedVault(t, sealedList)
	set(t, v, path, "mail", "another-secret-value")
	if err := v.UnlockWith(passphrase(t, pass)); err != nil {
		t.Fatal(err)
	}
	entries, err := v.Entries()
	if err != nil {
		t.Fatal(err)
	}
	offline, err := View(path, passphrase(t, pass))
	if err != nil || fmt.Sprint(offline) != fmt.Sprint(entries) {
		t.Errorf("offline it is %v, %v", offline, err)
	}
	if len(entries) != 2 || entries[0].Ref != "mail" || entries[1].Kind != Bearer || !slices.Contains(entries[1].Hosts, "api.pay.example") || time.Since(entries[1].Set) > time.Minute {
		t.Errorf("listed is %+v", entries)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, x := range []any{v, *v.sealed, v.sealed.entries["pay"], v.sealed, entries, passphrase(t, canary), &Editor{v.sealed}} {
			mustHide(t, verb, fmt.Sprintf(verb, x))
		}
	}
}

// VA-12: a file that is not exactly of the format is refused, and nothing of it is repeated.
func TestTheFormatIsStrict(t *testing.T) {
	good := `{"format":"deed-vault/1","work_factor":10,"entries":[{"ref":"a","purpose":{"kind":"bearer","hosts":["a.example"]},"value":"Y2FuYXJ5LWNhbmFyeQ==","set":"2026-11-30T10:00:00Z"}]}`
	if _, err := decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a newer format":    {"deed-vault/1", "deed-vault/2"},
		"another format":    {"deed-vault/1", "x"},
		"no format":         {`"format":"deed-vault/1",`, ""},
		"an unknown member": {`"work_factor":10`, `"work_factor":10,"canary":1`},
		"a member twice":    {`"work_factor":10`, `"work_factor":10,"work_factor":11`},
		"no value":          {"Y2FuYXJ5LWNhbmFyeQ==", ""},
		"no base64":         {"Y2FuYXJ5", "canary~"},
		"unknown kind":      {`"kind":"bearer"`, `"kind":"canary"`},
		"bad reference":     {`"ref":"a"`, `"ref":"canary/"`},
		"half a rotation":   {`"set":`, `"next":"Y2FuYXJ5","set":`},
		"something after":   {`}]}`, `}]}{}`},
		"entry twice":       {`"entries":[`, `"entries":[{"ref":"a","purpose":{"kind":"bearer","hosts":["a.example"]},"value":"Y2FuYXJ5LWNhbmFyeQ==","set":"2026-11-30T10:00:00Z"},`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		text := []byte(bad)
		if _, err := decode(text); bad == good || err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(string(text), "deed") {
			t.Errorf("%s: the text was not wiped", name)
		}
	}
}

// Two writers at once: one waits outside, and no change is lost. Recipients stay who they are.
func TestWritersAndRecipients(t *testing.T) {
	id, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	u, err := WithIdentities([]byte(id.String()))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "vault.age")
	if err := Create(path, u, agefile.UsualWork, []string{id.Recipient().String()}); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, u, agefile.UsualWork, nil); !errors.Is(err, ErrExists) {
		t.Errorf("created again: %v", err)
	}
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			c := Credential{Ref: fmt.Sprintf("c%d", n), Kind: Bearer, Hosts: []string{"a.example"}}
			for {
				err := Edit(path, u, func(e *Editor) error { return e.Set(c, []byte("value-of-this"), time.Now()) })
				if !errors.Is(err, agefile.ErrBusy) {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	if all, err := View(path, u); len(all) != 20 || err != nil {
		t.Errorf("%d entries, %v", len(all), err)
	}
	err = Edit(path, u, func(e *Editor) error { return errors.Join(e.Remove("c3"), e.Remove("c4")) })
	if all, _ := View(path, u); len(all) != 18 || err != nil {
		t.Errorf("%d entries, %v", len(all), err)
	}
	if err = Edit(path, u, func(e *Editor) error { return e.Remove("c3") }); !errors.Is(err, ErrNoEntry) {
		t.Errorf("removed twice: %v", err)
	}
}
