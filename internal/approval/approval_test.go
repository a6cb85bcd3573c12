package approval

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
)

var statement = Statement{
	Approval: "apr_01m8qj51q0fv59wxbs8av8v5w5", Action: "act_01m8qj51qae75r636ze70w2bx4",
	Binding: strings.Repeat("ab", 32), Verdict: Approve, Approver: "ada",
	Expires: time.Date(2026, 12, 1, 10, 0, 0, 123456000, time.UTC), Nonce: "n0nce",
}

// changes are statements that differ from the one above in one field each.
func changes() map[string]Statement {
	all := map[string]Statement{}
	for name, change := range map[string]func(*Statement){
		"approval": func(s *Statement) { s.Approval += "x" }, "action": func(s *Statement) { s.Action += "x" },
		"binding": func(s *Statement) { s.Binding = strings.Repeat("ac", 32) }, "verdict": func(s *Statement) { s.Verdict = Deny },
		"approver": func(s *Statement) { s.Approver = "bob" }, "expires": func(s *Statement) { s.Expires = s.Expires.Add(time.Microsecond) },
		"nonce": func(s *Statement) { s.Nonce += "x" },
	} {
		s := statement
		change(&s)
		all[name] = s
	}
	return all
}

// What is signed is spelled out here once more, so that nobody changes it by accident: old signatures have to verify.
func TestTheDigestOfAStatement(t *testing.T) {
	const text = `{"action_id":"act_01m8qj51qae75r636ze70w2bx4","approval_id":"apr_01m8qj51q0fv59wxbs8av8v5w5","approver":"ada",` +
		`"binding_digest":"abababababababababababababababababababababababababababababababab","decision":"approve",` +
		`"expires_at":"2026-12-01T10:00:00.123456Z","nonce":"n0nce"}`
	want := sha256.Sum256([]byte("deed-approval/1\x00" + text))
	got, err := statement.Digest()
	if err != nil || got != want {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	seen := map[[32]byte]string{got: "itself"}
	for name, s := range changes() {
		d, err := s.Digest()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("a change of %s has the digest of %s", name, other)
		}
		seen[d] = name
	}
}

func TestAnIncompleteStatementIsNotSigned(t *testing.T) {
	signer, _ := keyFile(t)
	for name, change := range map[string]func(*Statement){
		"approval": func(s *Statement) { s.Approval = "" }, "action": func(s *Statement) { s.Action = "" },
		"binding": func(s *Statement) { s.Binding = "" }, "verdict": func(s *Statement) { s.Verdict = "yes" },
		"approver": func(s *Statement) { s.Approver = "" }, "nonce": func(s *Statement) { s.Nonce = "" },
		"expires": func(s *Statement) { s.Expires = time.Time{} }, "fine time": func(s *Statement) { s.Expires = s.Expires.Add(1) },
	} {
		s := statement
		change(&s)
		if _, err := signer.Sign(s); err == nil {
			t.Errorf("signed without %s", name)
		}
	}
}

func keyFile(t *testing.T) (*Signer, string) {
	t.Helper()
	file, public, err := NewKeyFile([]byte("correct horse"), "ada")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := OpenKeyFile(file, []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

func policy(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AP-09, AP-11, FP-12: a signature counts for its own statement only, and only under the key of the approver it names.
func TestAKeyFileSignsOneStatement(t *testing.T) {
	signer, public := keyFile(t)
	_, other := keyFile(t)
	p := policy(t, fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n  - name: bob\n    keys: [%q]\n", public, other))
	signed, err := signer.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	if strength, err := p.Check(statement, signed); err != nil || strength != ByKeyFile {
		t.Errorf("got %q, %v", strength, err)
	}
	for name, s := range changes() {
		if strength, err := p.Check(s, signed); err == nil || strength != "" {
			t.Errorf("after a change of %s it counts as %s", name, strength)
		}
	}
	for name, check := range map[string]func() error{
		"nobody's policy":  func() error { _, err := policy(t, "approvers: []").Check(statement, signed); return err },
		"no policy at all": func() error { _, err := (*Policy)(nil).Check(statement, signed); return err },
		"bob's name":       func() error { s := statement; s.Approver = "bob"; _, err := p.Check(s, signed); return err },
		"a flipped bit": func() error {
			s := signed
			s.Signature = bytes.Clone(s.Signature)
			s.Signature[7] ^= 1
			_, err := p.Check(statement, s)
			return err
		},
		"no signature": func() error { _, err := p.Check(statement, Signed{Key: signed.Key}); return err },
		"nothing":      func() error { _, err := p.Check(statement, Signed{}); return err },
		"more than a signature": func() error {
			s := signed
			s.ClientData = []byte(`{}`)
			_, err := p.Check(statement, s)
			return err
		},
	} {
		if err := check(); err == nil {
			t.Errorf("%s: it counts", name)
		}
	}
}

// AP-10: a decision counts until its time, and not in that instant.
func TestADecisionExpires(t *testing.T) {
	signer, public := keyFile(t)
	p := policy(t, fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n", public))
	signed, err := signer.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.InTime(statement, signed, statement.Expires.Add(-time.Microsecond)); err != nil {
		t.Errorf("in time: %v", err)
	}
	if _, err := p.InTime(statement, signed, statement.Expires); !errors.Is(err, ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
}

// The key file is one that ssh-keygen makes and reads: its own, and ours.
func TestTheKeyFileIsOpenSSHs(t *testing.T) {
	theirs := filepath.Join(t.TempDir(), "theirs")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "correct horse", "-C", "ada", "-f", theirs).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyFile(file, []byte("wrong")); !errors.Is(err, ErrPassphrase) {
		t.Errorf("with a wrong passphrase: %v", err)
	}
	signer, err := OpenKeyFile(file, []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(theirs + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n", strings.TrimSpace(string(public))))
	signed, err := signer.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(statement, signed); err != nil {
		t.Error(err)
	}

	ours := filepath.Join(t.TempDir(), "ours")
	file, line, err := NewKeyFile([]byte("correct horse"), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ours, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ssh-keygen", "-y", "-P", "correct horse", "-f", ours).Output()
	if err != nil || strings.TrimSpace(string(out)) != line {
		t.Errorf("ssh-keygen reads %q, %v; want %q", out, err, line)
	}
}

func TestAKeyWithoutAPassphraseIsNoApprovers(t *testing.T) {
	if _, _, err := NewKeyFile(nil, "ada"); err == nil {
		t.Error("a key was made that anybody could use")
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", plain).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"no passphrase": file, "no key": []byte("hello"), "empty": nil} {
		if _, err := OpenKeyFile(text, []byte("x")); err == nil || strings.Contains(err.Error(), string(file[40:60])) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// authenticator does what a passkey does. The real one, in a real browser, has a test of its own.
type authenticator struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	id  []byte
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	return &authenticator{t, key, id}
}

func (a *authenticator) policy() *Policy {
	a.t.Helper()
	point, err := a.key.PublicKey.Bytes()
	if err != nil {
		a.t.Fatal(err)
	}
	public, err := webauthncbor.Marshal(webauthncose.EC2PublicKeyData{
		PublicKeyData: webauthncose.PublicKeyData{KeyType: int64(webauthncose.EllipticKey), Algorithm: int64(webauthncose.AlgES256)},
		Curve:         int64(webauthncose.P256), XCoord: point[1:33], YCoord: point[33:],
	})
	if err != nil {
		a.t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return policy(a.t, fmt.Sprintf("approvers:\n  - name: ada\n    passkeys:\n      - {id: %s, public_key: %s, rp: localhost, origins: [\"http://localhost:7433\"]}\n",
		b64(a.id), b64(public)))
}

type answer struct {
	typ, origin, site, challenge string
	cross                        bool
	flags                        byte
}

const (
	present  = 1
	verified = 4
)

func (a *authenticator) answer(s Statement) answer {
	digest, err := s.Digest()
	if err != nil {
		a.t.Fatal(err)
	}
	return answer{"webauthn.get", "http://localhost:7433", "localhost", base64.RawURLEncoding.EncodeToString(digest[:]), false, present | verified}
}

func (a *authenticator) sign(w answer) Signed {
	a.t.Helper()
	client, err := json.Marshal(map[string]any{"type": w.typ, "challenge": w.challenge, "origin": w.origin, "crossOrigin": w.cross})
	if err != nil {
		a.t.Fatal(err)
	}
	site, hash := sha256.Sum256([]byte(w.site)), sha256.Sum256(client)
	data := append(site[:], w.flags, 0, 0, 0, 0)
	sum := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, sum[:])
	if err != nil {
		a.t.Fatal(err)
	}
	return Signed{Key: a.id, Signature: signature, AuthenticatorData: data, ClientData: client}
}

// FP-12, API-14: a passkey's answer counts for its own statement, page and site, with its user there and checked.
func TestAPasskeySignsOneStatementOnItsOwnPage(t *testing.T) {
	a := newAuthenticator(t)
	p := a.policy()
	if strength, err := p.Check(statement, a.sign(a.answer(statement))); err != nil || strength != ByPasskey {
		t.Fatalf("got %q, %v", strength, err)
	}
	for name, s := range changes() {
		if strength, err := p.Check(s, a.sign(a.answer(statement))); err == nil {
			t.Errorf("after a change of %s it counts as %s", name, strength)
		}
	}
	for name, change := range map[string]func(*answer){
		"registration":      func(w *answer) { w.typ = "webauthn.create" },
		"another page":      func(w *answer) { w.origin = "http://localhost:7434" },
		"https for http":    func(w *answer) { w.origin = "https://localhost:7433" },
		"another site":      func(w *answer) { w.site = "evil.example" },
		"inside a frame":    func(w *answer) { w.cross = true },
		"nobody there":      func(w *answer) { w.flags = verified },
		"nobody checked":    func(w *answer) { w.flags = present },
		"another challenge": func(w *answer) { w.challenge = hex.EncodeToString(make([]byte, 32)) },
		"padded challenge":  func(w *answer) { w.challenge += "=" },
	} {
		w := a.answer(statement)
		change(&w)
		if _, err := p.Check(statement, a.sign(w)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := a.sign(a.answer(statement))
	for name, change := range map[string]func(*Signed){
		"client data":   func(s *Signed) { s.ClientData = append(bytes.Clone(s.ClientData), ' ') },
		"no JSON":       func(s *Signed) { s.ClientData = []byte("x") },
		"data":          func(s *Signed) { s.AuthenticatorData = append(bytes.Clone(s.AuthenticatorData[:36]), 1) },
		"short data":    func(s *Signed) { s.AuthenticatorData = s.AuthenticatorData[:10] },
		"signature":     func(s *Signed) { s.Signature = nil },
		"another's key": func(s *Signed) { s.Signature = newAuthenticator(t).sign(a.answer(statement)).Signature },
	} {
		s := good
		change(&s)
		if _, err := p.Check(statement, s); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	_, public := keyFile(t)
	const passkey = "approvers:\n  - name: ada\n    passkeys:\n      - {id: %s, public_key: %s, rp: %s, origins: [%q]}\n"
	for name, text := range map[string]string{
		"unknown field":  "approvers: []\nadmins: []\n",
		"no name":        fmt.Sprintf("approvers:\n  - keys: [%q]\n", public),
		"odd name":       fmt.Sprintf("approvers:\n  - name: \"ada\\n\"\n    keys: [%q]\n", public),
		"no key":         "approvers:\n  - name: ada\n",
		"no such key":    "approvers:\n  - name: ada\n    keys: [\"ssh-ed25519 AAAA\"]\n",
		"options":        fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n", "no-pty "+public),
		"the same name":  fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n  - name: ada\n    keys: [%[1]q]\n", public),
		"one key of two": fmt.Sprintf("approvers:\n  - name: ada\n    keys: [%q]\n  - name: bob\n    keys: [%[1]q]\n", public),
		"no public key":  fmt.Sprintf(passkey, "AA", "AA", "localhost", "http://localhost"),
		"padded id":      fmt.Sprintf(passkey, "AA==", "AA", "localhost", "http://localhost"),
		"not YAML":       "approvers: [",
		"an RSA key":     "approvers:\n  - name: ada\n    keys: [\"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ\"]\n",
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for origin, fits := range map[string]bool{
		"http://localhost:7433": true, "https://localhost": true, "https://deed.localhost": true,
		"http://deed.localhost": false, "http://evil.example": false, "https://notlocalhost": false, "localhost": false, "https://localhost/": false,
	} {
		k := newAuthenticator(t).policy().Approvers[0].Keys[0].Passkey
		k.Origins = []string{origin}
		if err := k.check(); (err == nil) != fits {
			t.Errorf("origin %s: %v", origin, err)
		}
	}
}
