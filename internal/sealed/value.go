package sealed

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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

	domain     = "deed-sealed/1\x00"
	lockDomain = "deed-sealed-lock/1\x00"
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
	Lock       []byte // see NewLock
}

// NewLock makes a lock: 32 random bytes that go into the key of every value which is sealed with it. Whoever destroys a lock
// makes these values unreadable for good, wherever copies of them are left. The place of a lock has to be one that can be
// overwritten.
func NewLock() []byte {
	lock := make([]byte, LockBytes)
	rand.Read(lock)
	return lock
}

// LockBytes is the size of a lock.
const LockBytes = 32

// cipher is the one for values of this place. Without its lock, the key does not open them.
func (k *Key) cipher(p Place) (cipher.AEAD, error) {
	if len(p.Lock) != LockBytes {
		return nil, ErrDamaged
	}
	h := hmac.New(sha256.New, k.secret())
	h.Write([]byte(lockDomain))
	h.Write(p.Lock)
	return chacha20poly1305.NewX(h.Sum(nil))
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

// Seal encrypts content for a place, with the newest key. Its error is a lock that is none.
func (k *Keys) Seal(p Place, content []byte) ([]byte, error) {
	key := k.Current()
	aead, err := key.cipher(p)
	if err != nil {
		return nil, err
	}
	value := make([]byte, header, header+len(content)+chacha20poly1305.Overhead)
	value[0] = version
	copy(value[1:], key.id[:])
	head, nonce := value[:1+idBytes], value[1+idBytes:header]
	rand.Read(nonce) // it never fails: Go ends the program rather than go on without randomness
	return aead.Seal(value, nonce, content, p.bound(head)), nil
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
	aead, err := key.cipher(p)
	if err != nil {
		return nil, err
	}
	content, err := aead.Open([]byte{}, nonce, value[header:], p.bound(head))
	if err != nil {
		return nil, ErrDamaged
	}
	return content, nil
}
