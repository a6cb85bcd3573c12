package vault

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// plainValue refuses what could not be redacted, or would leave its place in the request.
func plainValue(_ Credential, value string) error {
	if err := sized(value, MaxSecret); err != nil {
		return err
	}
	return oneLine(value)
}

func sized(value string, most int) error {
	switch {
	case value == "":
		return errors.New("it is empty")
	case len(value) < MinSecret:
		return fmt.Errorf("it is shorter than %d bytes", MinSecret)
	case len(value) > most:
		return fmt.Errorf("it is longer than %d bytes", most)
	}
	return nil
}

func oneLine(value string) error {
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return errors.New("it holds a control character")
		}
	}
	return nil
}

func basicValue(c Credential, value string) error {
	if err := plainValue(c, value); err != nil {
		return err
	}
	if !strings.Contains(value, ":") {
		return errors.New("a basic credential is user:password")
	}
	if len(secretPart(value)) < MinSecret {
		return fmt.Errorf("its secret part is shorter than %d bytes", MinSecret)
	}
	return nil
}

// secretPart is the password, or the user where an API key stands in the user's place.
func secretPart(value string) string {
	user, password, _ := strings.Cut(value, ":")
	if password == "" {
		return user
	}
	return password
}

func certificateValue(_ Credential, value string) error {
	if err := sized(value, MaxSecret); err != nil {
		return err
	}
	_, err := keyPair(value)
	return err
}

// keyPair reads certificates and their key out of one text, in any order.
func keyPair(value string) (tls.Certificate, error) {
	var certificates, key []byte
	for rest := []byte(value); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
	defer clear(key)
	pair, err := tls.X509KeyPair(certificates, key)
	if err != nil { // not quoted: the package may name what it found
		return tls.Certificate{}, errors.New("it is no certificate in PEM with the unencrypted key that belongs to it")
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return tls.Certificate{}, errors.New("its certificate cannot be read")
		}
	}
	return pair, nil
}

func sshValue(c Credential, value string) error {
	if err := sized(value, MaxSecret); err != nil {
		return err
	}
	_, err := signer(c.Kind, value)
	return err
}

// signer reads a private key, and the certificate below it where the kind says that there is one.
func signer(kind Kind, value string) (ssh.Signer, error) {
	block, rest := pem.Decode([]byte(value))
	if block == nil {
		return nil, errors.New("it is no private key in PEM")
	}
	text := pem.EncodeToMemory(block)
	defer clear(text)
	defer clear(block.Bytes)
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, errors.New("it is no private key that SSH can use, without a passphrase of its own")
	}
	after := strings.TrimSpace(string(rest))
	if kind == SSHKey {
		if after != "" {
			return nil, errors.New("something stands below the key; a key with its certificate is of kind ssh_certificate")
		}
		return key, nil
	}
	public, _, _, more, err := ssh.ParseAuthorizedKey([]byte(after))
	certificate, ok := public.(*ssh.Certificate)
	if err != nil || !ok || len(more) > 0 {
		return nil, errors.New("below the key there is to be the one line of its certificate")
	}
	if certificate.CertType != ssh.UserCert {
		return nil, errors.New("its certificate is not one of a user")
	}
	both, err := ssh.NewCertSigner(certificate, key)
	if err != nil {
		return nil, errors.New("its certificate belongs to another key")
	}
	return both, nil
}

// databaseValue accepts the URL of a database at one of the credential's hosts: a driver dials what stands in it.
func databaseValue(c Credential, value string) error {
	if err := plainValue(c, value); err != nil {
		return err
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Host == "" {
		return errors.New("it is no URL of a database (postgres://user:password@host:port/name)")
	}
	if q := u.Query(); q.Has("host") || q.Has("hostaddr") || q.Has("port") || q.Has("service") || q.Has("servicefile") {
		return errors.New("its parameters name another host; the host stands in its place in the URL only")
	}
	port := databasePort
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return errors.New("its port is no number")
		}
	}
	for _, h := range c.Hosts {
		if host, at, err := splitHost(h, databasePort); err == nil && host == u.Hostname() && at == port {
			return nil
		}
	}
	return errors.New("its host is not among the credential's hosts")
}

// passwordOf is the password in the URL of a database, if it is long enough to be looked for.
func passwordOf(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return ""
	}
	if p, _ := u.User.Password(); len(p) >= MinSecret {
		return p
	}
	return ""
}

// Certificate gives the certificate that a TLS handshake shows, and whether the credential is one.
func (o *Opened) Certificate() (tls.Certificate, bool) {
	if o.credential.Kind != TLSClient {
		return tls.Certificate{}, false
	}
	pair, err := keyPair(o.value.Reveal())
	return pair, err == nil
}

// Signer gives what proves an SSH user, and whether the credential is one.
func (o *Opened) Signer() (ssh.Signer, bool) {
	if o.credential.Kind != SSHKey && o.credential.Kind != SSHCertificate {
		return nil, false
	}
	s, err := signer(o.credential.Kind, o.value.Reveal())
	return s, err == nil
}

// DatabaseURL gives the URL that a driver connects with, and whether the credential is one.
func (o *Opened) DatabaseURL() (Secret, bool) {
	if o.credential.Kind != Database {
		return Secret{}, false
	}
	return o.value, true
}
