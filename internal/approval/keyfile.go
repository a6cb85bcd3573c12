package approval

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A Signer is an approver's own key, opened.
type Signer struct {
	private ed25519.PrivateKey
}

// NewKeyFile makes a key and its file in the format of OpenSSH, which only the passphrase opens. comment is for people.
func NewKeyFile(passphrase []byte, comment string) (file []byte, public string, err error) {
	if len(passphrase) == 0 {
		return nil, "", errors.New("the key of an approver has a passphrase: without one, whoever reads the file could approve")
	}
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, comment, passphrase)
	if err != nil {
		return nil, "", err
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, "", err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if comment != "" {
		line += " " + comment
	}
	return pem.EncodeToMemory(block), line, nil
}

// ErrPassphrase says that the passphrase does not open the key.
var ErrPassphrase = errors.New("the passphrase does not open the key")

// OpenKeyFile opens the file of an Ed25519 key in OpenSSH's format. A file that has no passphrase is refused: its
// signature would show no more than that somebody could read it.
func OpenKeyFile(file, passphrase []byte) (*Signer, error) {
	var locked *ssh.PassphraseMissingError
	if _, err := ssh.ParseRawPrivateKey(file); err == nil {
		return nil, errors.New("the key has no passphrase; give it one with ssh-keygen -p")
	} else if !errors.As(err, &locked) {
		return nil, fmt.Errorf("this is no private key in OpenSSH's format")
	}
	raw, err := ssh.ParseRawPrivateKeyWithPassphrase(file, passphrase)
	if err != nil {
		return nil, ErrPassphrase
	}
	switch key := raw.(type) {
	case *ed25519.PrivateKey:
		return &Signer{*key}, nil
	case ed25519.PrivateKey:
		return &Signer{key}, nil
	}
	return nil, errors.New("the key is no Ed25519 key")
}

// Public is the key by which the policy knows the signer.
func (s *Signer) Public() ed25519.PublicKey { return s.private.Public().(ed25519.PublicKey) }

// Sign signs a statement.
func (s *Signer) Sign(st Statement) (Signed, error) {
	digest, err := st.Digest()
	if err != nil {
		return Signed{}, err
	}
	return Signed{Key: s.Public(), Signature: ed25519.Sign(s.private, digest[:])}, nil
}
