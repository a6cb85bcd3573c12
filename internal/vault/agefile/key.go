package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/plugin"
)

// Key opens a file. The zero value opens none.
type Key struct{ identities []age.Identity }

// Format prints no key.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[key]") }

// Recipients are those who can open a file that is written. The zero value is nobody, and nothing is written for nobody.
type Recipients struct{ recipients []age.Recipient }

// Format prints no recipient: one of them may be a passphrase.
func (r Recipients) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[recipients]") }

// Work factors of a passphrase: 2^n rounds of scrypt. The usual one takes about a second.
const (
	LeastWork = 10
	UsualWork = 18
	MostWork  = 22
)

// MinPassphrase is the least length of a passphrase, in bytes: whoever has the file can try as many as there is time for.
const MinPassphrase = 12

// Passphrase is the key that a passphrase is.
func Passphrase(secret []byte) (Key, error) {
	id, err := age.NewScryptIdentity(string(secret))
	if err != nil {
		return Key{}, ErrKey
	}
	id.SetMaxWorkFactor(MostWork)
	return Key{[]age.Identity{id}}, nil
}

// ToPassphrase writes for whoever knows a passphrase.
func ToPassphrase(secret []byte, work int) (Recipients, error) {
	if len(secret) < MinPassphrase {
		return Recipients{}, fmt.Errorf("the passphrase is shorter than %d bytes", MinPassphrase)
	}
	if work < LeastWork || work > MostWork {
		return Recipients{}, fmt.Errorf("the work factor is from %d to %d", LeastWork, MostWork)
	}
	r, err := age.NewScryptRecipient(string(secret))
	if err != nil {
		return Recipients{}, errors.New("the passphrase cannot be used")
	}
	r.SetWorkFactor(work)
	return Recipients{[]age.Recipient{r}}, nil
}

// Identities reads the text of an identity file: age's own keys, post-quantum ones included, those of plugins, one a line
// with # for comments; or one SSH private key without a passphrase. Errors quote nothing of it.
func Identities(text []byte) (Key, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
		id, err := agessh.ParseIdentity(text)
		if err != nil {
			return Key{}, errors.New("the identity is no SSH key that deed can use: Ed25519 or RSA, without a passphrase")
		}
		return Key{[]age.Identity{id}}, nil
	}
	var k Key
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, err := identity(line)
		if err != nil {
			return Key{}, fmt.Errorf("line %d of the identity file is no identity", n+1)
		}
		k.identities = append(k.identities, id)
	}
	if len(k.identities) == 0 {
		return Key{}, errors.New("the identity file holds no identity")
	}
	return k, nil
}

func identity(line string) (age.Identity, error) {
	if strings.HasPrefix(line, "AGE-PLUGIN-") {
		return plugin.NewIdentity(line, nobody())
	}
	ids, err := age.ParseIdentities(strings.NewReader(line))
	if err != nil {
		return nil, err
	}
	return ids[0], nil
}

// ToRecipients writes for whoever has one of the keys that are named: age1…, age1pq1…, of a plugin, or ssh-ed25519 and
// ssh-rsa.
func ToRecipients(names []string) (Recipients, error) {
	var to Recipients
	for _, name := range names {
		r, err := recipient(strings.TrimSpace(name))
		if err != nil { // not quoted: it may be a secret key in the wrong place
			return Recipients{}, errors.New("this is no recipient: one begins with age1, ssh-ed25519 or ssh-rsa")
		}
		to.recipients = append(to.recipients, r)
	}
	return to, nil
}

func recipient(name string) (age.Recipient, error) {
	if strings.HasPrefix(name, "ssh-") {
		return agessh.ParseRecipient(name)
	}
	if r, err := age.ParseRecipients(strings.NewReader(name)); err == nil {
		return r[0], nil
	}
	return plugin.NewRecipient(name, nobody())
}

// nobody answers a plugin that asks: deed may run without a terminal. A plugin that needs a touch and no answer works.
func nobody() *plugin.ClientUI {
	refuse := errors.New("nobody is there to answer")
	return &plugin.ClientUI{
		DisplayMessage: func(string, string) error { return nil },
		RequestValue:   func(string, string, bool) (string, error) { return "", refuse },
		Confirm:        func(string, string, string, string) (bool, error) { return false, refuse },
	}
}
