package agefile_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"deed.dev/deed/internal/vault/agefile"
)

const text = `{"canary":"canary-of-the-file"}`

func passphrase(t *testing.T, p string) (agefile.Key, agefile.Recipients) {
	t.Helper()
	k, err := agefile.Passphrase([]byte(p))
	if err != nil {
		t.Fatal(err)
	}
	to, err := agefile.ToPassphrase([]byte(p), agefile.LeastWork)
	if err != nil {
		t.Fatal(err)
	}
	return k, to
}

// VA-12: what is written is nothing but ciphertext, for its owner alone, and it opens with its key and no other.
func TestAPassphraseOpensItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.age")
	k, to := passphrase(t, "correct horse battery")
	other, _ := passphrase(t, "wrong horse battery")
	if _, err := agefile.Read(path, k); !errors.Is(err, agefile.ErrAbsent) {
		t.Errorf("an absent file: %v", err)
	}
	if err := agefile.Write(path, to, []byte(text)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || bytes.Contains(raw, []byte("canary")) {
		t.Errorf("the file shows its text (%v)", err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
	if got, err := agefile.Read(path, k); err != nil || string(got) != text {
		t.Errorf("read %q, %v", got, err)
	}
	for name, wrong := range map[string]agefile.Key{"another": other, "none": {}} {
		if _, err := agefile.Read(path, wrong); !errors.Is(err, agefile.ErrKey) {
			t.Errorf("%s: %v, want %v", name, err, agefile.ErrKey)
		}
	}
	if needs, err := agefile.NeedsPassphrase(path); !needs || err != nil {
		t.Errorf("needs a passphrase: %v, %v", needs, err)
	}
}

// VA-12: no byte of the file can be changed, cut off or added without notice.
func TestEveryChangeOfTheFileIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.age")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	k, err := agefile.Identities([]byte(id.String()))
	if err != nil {
		t.Fatal(err)
	}
	to, err := agefile.ToRecipients([]string{id.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := agefile.Write(path, to, []byte(text)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, raw []byte) {
		t.Helper()
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agefile.Read(path, k); !errors.Is(err, agefile.ErrDamaged) && !errors.Is(err, agefile.ErrKey) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		refused(fmt.Sprintf("byte %d", i), bad)
	}
	for i := range good {
		refused(fmt.Sprintf("cut after %d", i), good[:i])
	}
	refused("one byte more", append(bytes.Clone(good), 0))
}

// The keys that age has: X25519, post-quantum, and SSH.
func TestIdentitiesOpenWhatWasWrittenToThem(t *testing.T) {
	x, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	pq, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sshPublic, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][2]string{
		"x25519": {"# of the gateway\n\n" + x.String() + "\n", x.Recipient().String()},
		"pq":     {pq.String(), pq.Recipient().String()},
		"ssh":    {string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(sshPublic))},
	}
	for name, k := range keys {
		path := filepath.Join(t.TempDir(), "vault.age")
		recipients := []string{k[1]}
		if name == "x25519" { // several may open one file
			recipients = append(recipients, keys["ssh"][1])
		}
		to, err := agefile.ToRecipients(recipients)
		if err != nil {
			t.Fatal(err)
		}
		if err := agefile.Write(path, to, []byte(text)); err != nil {
			t.Fatal(err)
		}
		for other, o := range keys {
			key, err := agefile.Identities([]byte(o[0]))
			if err != nil {
				t.Fatal(err)
			}
			got, err := agefile.Read(path, key)
			if opens := other == name || name == "x25519" && other == "ssh"; opens != (err == nil && string(got) == text) {
				t.Errorf("%s opens what was written to %s: %q, %v", other, name, got, err)
			}
		}
		if needs, err := agefile.NeedsPassphrase(path); needs || err != nil {
			t.Errorf("%s: needs a passphrase: %v, %v", name, needs, err)
		}
	}
}

// A key in the wrong place is refused, and not repeated.
func TestWhatIsNoKeyIsRefusedAndNotQuoted(t *testing.T) {
	x, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, err = agefile.ToRecipients([]string{x.String()})
	if err == nil || strings.Contains(err.Error(), "AGE-SECRET") {
		t.Errorf("a secret key as recipient: %v", err)
	}
	for _, bad := range []string{"", "# nothing", "canary", x.String() + "x", x.Recipient().String(), "AGE-PLUGIN-", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary"} {
		if _, err := agefile.Identities([]byte(bad)); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "AGE-S") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := agefile.ToRecipients([]string{"age1nobody"}); err == nil {
		t.Error("a broken recipient was taken")
	}
	if err := agefile.Write(filepath.Join(t.TempDir(), "x"), agefile.Recipients{}, nil); err == nil {
		t.Error("something was written for nobody")
	}
	if _, err := agefile.ToPassphrase([]byte("short"), agefile.UsualWork); err == nil {
		t.Error("a short passphrase was taken")
	}
	k, to := passphrase(t, "canary of a passphrase")
	if got := fmt.Sprintf("%v %+v %#v %s %x", k, k, to, to, k); strings.Contains(got, "canary") || strings.Contains(got, "63616e617279") {
		t.Errorf("a key prints as %s", got)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.age")
	release, err := agefile.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agefile.Lock(path); !errors.Is(err, agefile.ErrBusy) {
		t.Errorf("a second writer: %v, want %v", err, agefile.ErrBusy)
	}
	release()
	again, err := agefile.Lock(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	again()
}

func TestAFileThatOthersMayWriteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.age")
	k, to := passphrase(t, "correct horse battery")
	if err := agefile.Write(path, to, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := agefile.Read(path, k); err == nil || !strings.Contains(err.Error(), "0620") {
		t.Errorf("read: %v", err)
	}
}
