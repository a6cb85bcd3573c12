package vault

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"deed.dev/deed/internal/action"
)

func pemOf(t *testing.T) (certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "deed"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func sshOf(t *testing.T) (key, certificate string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	c := &ssh.Certificate{Key: shown, CertType: ssh.UserCert, KeyId: "deed", ValidPrincipals: []string{"deploy"}, ValidBefore: ssh.CertTimeInfinity}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(c))
}

// VA-12, VA-13: each kind takes values of its own form only, says what is wrong without quoting, and goes only where its
// kind belongs.
func TestValuesOfEachKind(t *testing.T) {
	certificate, key := pemOf(t)
	_, otherKey := pemOf(t)
	sshKey, sshCertificate := sshOf(t)
	_, otherSSH := sshOf(t)
	hosts := []string{"db.example", "db2.example:6432"}
	for name, c := range map[string]struct {
		kind  Kind
		value string
		good  bool
	}{
		"certificate and key":        {TLSClient, certificate + key, true},
		"key and certificate":        {TLSClient, key + certificate, true},
		"certificate alone":          {TLSClient, certificate, false},
		"key alone":                  {TLSClient, key, false},
		"another's key":              {TLSClient, certificate + otherKey, false},
		"no PEM":                     {TLSClient, "canary-no-pem", false},
		"SSH key":                    {SSHKey, sshKey, true},
		"SSH key and more":           {SSHKey, sshKey + sshCertificate, false},
		"SSH certificate":            {SSHCertificate, sshKey + sshCertificate, true},
		"SSH certificate of another": {SSHCertificate, sshKey + otherSSH, false},
		"SSH key without one":        {SSHCertificate, sshKey, false},
		"no SSH key":                 {SSHKey, "canary-no-key", false},
		"database":                   {Database, "postgres://deed:canary-password@db.example/app?sslmode=verify-full", true},
		"database, another port":     {Database, "postgresql://deed:canary-password@db2.example:6432/app", true},
		"database, unnamed port":     {Database, "postgres://deed:canary-password@db.example:6432/app", false},
		"database elsewhere":         {Database, "postgres://deed:canary-password@evil.example/app", false},
		"database, host as option":   {Database, "postgres://deed:canary-password@db.example/app?host=evil.example", false},
		"no database":                {Database, "mysql://deed:canary-password@db.example/app", false},
		"words":                      {Database, "host=db.example password=canary", false},
		"bearer with a line end":     {Bearer, "canary-bearer\nX", false},
		"basic without a colon":      {Basic, "canary-basic", false},
	} {
		cred := Credential{Ref: "r", Kind: c.kind, Hosts: hosts}
		o, err := open(cred, c.value)
		if (err == nil) != c.good || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		_, isCertificate := o.Certificate()
		_, isSigner := o.Signer()
		url, isDatabase := o.DatabaseURL()
		if isCertificate != (c.kind == TLSClient) || isSigner != (c.kind == SSHKey || c.kind == SSHCertificate) || isDatabase != (c.kind == Database) {
			t.Errorf("%s: certificate %v, signer %v, database %v", name, isCertificate, isSigner, isDatabase)
		}
		if isDatabase && url.Reveal() != c.value {
			t.Errorf("%s: another URL", name)
		}
	}
	for kind, want := range map[Kind]string{
		Bearer: "https:443", TLSClient: "https:443", SSHKey: "ssh:22", SSHCertificate: "ssh:22", Database: "postgres:5432", "": "",
	} {
		for _, scheme := range []string{"https", "http", "ssh", "postgres", ""} {
			for port, p := range map[string]int{"443": 443, "22": 22, "5432": 5432} {
				c := Credential{Kind: kind, Hosts: []string{"a.example"}}
				if got := c.Bound(action.Target{Scheme: scheme, Host: "a.example", Port: p}); got != (scheme+":"+port == want) {
					t.Errorf("%s to %s:%s is %v", kind, scheme, port, got)
				}
			}
		}
	}
	redacting, err := open(Credential{Ref: "r", Kind: Database, Hosts: hosts}, "postgres://deed:canary-password@db.example/app")
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := redacting.RedactString("password canary-password is wrong"); strings.Contains(out, "canary") {
		t.Errorf("an answer keeps the password: %s", out)
	}
}
