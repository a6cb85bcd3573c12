package digest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"deed.dev/deed/internal/atomicfile"
)

// Key is one HMAC key. It prints as its identifier, with every verb and inside everything that holds it.
type Key struct {
	ID     string
	secret func() []byte // fmt looks into a slice that nobody exported, and not into a function
}

func (k Key) String() string { return k.ID }

// Format prints the identifier.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.ID) }

// Keys are the fingerprint keys, newest first. A call is matched under each of them, so that an action which was opened
// under an older key is still recognised.
type Keys struct {
	path string
	all  []Key
}

// keyLine is one line of the key file: identifier, a space, 32 bytes in base64.
const keyBytes = 32

// OpenKeys reads the key file, and makes one with a first key if there is none. It stands beside the database, not in it:
// a copy of the database alone gives nothing to guess arguments with.
func OpenKeys(path string) (*Keys, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		k := &Keys{path: path}
		return k, k.Rotate()
	}
	if err != nil {
		return nil, fmt.Errorf("read the fingerprint keys: %w", err)
	}
	k := &Keys{path: path}
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		id, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		secret, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(secret) != keyBytes || !strings.HasPrefix(id, "fk_") {
			return nil, fmt.Errorf("fingerprint keys, line %d: want an identifier and %d bytes in base64; "+
				"restore the file from its backup, since open actions are matched with it", n+1, keyBytes)
		}
		k.all = append(k.all, Key{ID: id, secret: func() []byte { return secret }})
	}
	return k, nil
}

// Current is the key that new actions are made with.
func (k *Keys) Current() Key { return k.all[0] }

// All lists the keys, newest first.
func (k *Keys) All() []Key { return k.all }

// Rotate makes a new current key. Older ones stay, so that open actions are still matched.
func (k *Keys) Rotate() error {
	fresh, err := newKey()
	if err != nil {
		return err
	}
	return k.write(append([]Key{fresh}, k.all...))
}

// Retire drops the older keys that no open action uses. The current one stays.
func (k *Keys) Retire(inUse []string) error {
	keep := k.all[:1:1]
	for _, old := range k.all[1:] {
		for _, id := range inUse {
			if id == old.ID {
				keep = append(keep, old)
				break
			}
		}
	}
	if len(keep) == len(k.all) {
		return nil
	}
	return k.write(keep)
}

func newKey() (Key, error) {
	secret := make([]byte, keyBytes)
	if _, err := rand.Read(secret); err != nil {
		return Key{}, err
	}
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return Key{}, err
	}
	return Key{ID: "fk_" + hex.EncodeToString(id), secret: func() []byte { return secret }}, nil
}

// write replaces the file durably: a key that made a durable fingerprint must not be lost to a power cut.
func (k *Keys) write(all []Key) error {
	var b strings.Builder
	for _, key := range all {
		fmt.Fprintf(&b, "%s %s\n", key.ID, base64.StdEncoding.EncodeToString(key.secret()))
	}
	if err := atomicfile.Write(k.path, []byte(b.String())); err != nil {
		return fmt.Errorf("write the fingerprint keys: %w", err)
	}
	k.all = all
	return nil
}
