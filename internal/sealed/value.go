package sealed

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	version = 1
	header  = 1 + idBytes + chacha20poly1305.NonceSizeX

	// Overhead is how many bytes a sealed value is longer than its content.
	Overhead = header + chacha20poly1305.Overhead

	domain = "deed-sealed/1\x00"
)

// Errors that callers tell apart.
var (
	// ErrNoKey means that the value was sealed with a key that the key file does not hold.
	ErrNoKey = errors.New("its key is not in the key file")
	// ErrDamaged means that a value was changed, cut or moved from another place, or is no sealed value.
	ErrDamaged = errors.New("the sealed value was changed, damaged or moved")
)

// Place is where a value belongs. A value that was sealed for one place opens in no other.
type Place struct {
	Kind       string
	Owner      string
	Commitment string
}

// bound is the additional data: the header and the place, each part with its length, so that no two places are spelled
// alike.
func (p Place) bound(head []byte) []byte {
	b := make([]byte, 0, len(domain)+len(head)+3*4+len(p.Kind)+len(p.Owner)+len(p.Commitment))
	b = append(append(b, domain...), head...)
	for _, part := range []string{p.Kind, p.Owner, p.Commitment} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// Seal encrypts content for a place, with the newest key.
func (k *Keys) Seal(p Place, content []byte) []byte {
	key := k.Current()
	value := make([]byte, header, header+len(content)+chacha20poly1305.Overhead)
	value[0] = version
	copy(value[1:], key.id[:])
	head, nonce := value[:1+idBytes], value[1+idBytes:header]
	rand.Read(nonce) // it never fails: Go ends the program rather than go on without randomness
	return key.aead.Seal(value, nonce, content, p.bound(head))
}

// Open gives the content of a value that was sealed for this place. It is ErrNoKey or ErrDamaged otherwise, and gives
// nothing of a value that is not whole.
func (k *Keys) Open(p Place, value []byte) ([]byte, error) {
	if len(value) < Overhead || value[0] != version {
		return nil, ErrDamaged
	}
	head, nonce := value[:1+idBytes], value[1+idBytes:header]
	key, ok := k.find(keyID(head[1:]))
	if !ok {
		return nil, fmt.Errorf("%w: it is %s", ErrNoKey, keyID(head[1:]))
	}
	content, err := key.aead.Open([]byte{}, nonce, value[header:], p.bound(head))
	if err != nil {
		return nil, ErrDamaged
	}
	return content, nil
}
