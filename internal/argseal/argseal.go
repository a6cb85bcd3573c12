// Package argseal seals secret arguments, so that the record of an operation can hold them and a copy of the record alone
// gives nothing. Each is bound to its action and its name.
//
// It refuses to know what an argument is for, where it is recorded, and whoever sends it.
package argseal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/atomicfile"
)

// Sealer has the key. It prints as nothing but its name.
type Sealer struct{ aead cipher.AEAD }

// Format prints no key.
func (s *Sealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[sealer]") }

const keyBytes = 32

// OpenKey reads the key file, and makes one if there is none. It stands beside the database, not in it.
func OpenKey(path string) (*Sealer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, keyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		defer clear(key)
		if err := atomicfile.Write(path, append(base64.StdEncoding.AppendEncode(nil, key), '\n')); err != nil {
			return nil, fmt.Errorf("write the key of secret arguments: %w", err)
		}
		return newSealer(key)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of secret arguments: %w", err)
	}
	defer clear(text)
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, errors.New("the key of secret arguments is to be 32 bytes in base64; restore the file from its backup, since open actions may need it")
	}
	defer clear(key)
	return newSealer(key)
}

func newSealer(key []byte) (*Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Sealer{aead}, err
}

// Seal encrypts the value of one argument of one action.
func (s *Sealer) Seal(id action.ID, name, value string) ([]byte, error) {
	return s.aead.Seal(nil, nil, []byte(value), bound(id, name)), nil //nolint:gosec // this AEAD draws its own nonce
}

// Open gives the value back. The error holds nothing of it.
func (s *Sealer) Open(id action.ID, name string, sealed []byte) (string, error) {
	value, err := s.aead.Open(nil, nil, sealed, bound(id, name))
	if err != nil {
		return "", errors.New("a secret argument cannot be opened: its key is another one, or the record was changed")
	}
	defer clear(value)
	return string(value), nil
}

func bound(id action.ID, name string) []byte {
	return []byte("deed-argument/1\x00" + string(id) + "\x00" + name)
}
