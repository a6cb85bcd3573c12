package journal

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// The kinds of keys, as numbered by C2SP signed-note. A log signs the checkpoint
// itself; a witness signs that it saw it at a time.
const (
	kindLog     = 1
	kindWitness = 4
)

// Key is the public key of a log or of a witness. It is a note.Verifier.
type Key struct {
	name   string
	id     uint32
	kind   byte
	public [ed25519.PublicKeySize]byte
}

var errKey = errors.New("not a verifier key of the form: name, +, 8 hex digits, +, base64 of an Ed25519 key")

// ParseKey reads a verifier key (vkey) of C2SP signed-note, in its one spelling:
// Ed25519, of a log (kind 1) or of a witness (kind 4). The file of a public log key
// is this text and a line feed, which the caller takes off.
func ParseKey(vkey string) (Key, error) {
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 || !isOrigin(parts[0]) {
		return Key{}, errKey
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(decoded) == 0 {
		return Key{}, errKey
	}
	if decoded[0] != kindLog && decoded[0] != kindWitness {
		return Key{}, fmt.Errorf("a key of kind %d, and only Ed25519 keys of logs (%d) and of witnesses (%d) are known", decoded[0], kindLog, kindWitness)
	}
	if len(decoded) != 1+ed25519.PublicKeySize {
		return Key{}, errKey
	}
	k := newKey(parts[0], decoded[0], decoded[1:])
	if k.String() != vkey {
		return Key{}, errors.New("the 8 hex digits of the key do not belong to its name and bytes")
	}
	return k, nil
}

func newKey(name string, kind byte, public []byte) Key {
	k := Key{name: name, kind: kind, public: [ed25519.PublicKeySize]byte(public)}
	digest := sha256.New()
	digest.Write([]byte(name + "\n"))
	digest.Write(k.material())
	k.id = binary.BigEndian.Uint32(digest.Sum(nil))
	return k
}

func (k Key) material() []byte { return append([]byte{k.kind}, k.public[:]...) }

// String returns the verifier key as ParseKey reads it.
func (k Key) String() string {
	return fmt.Sprintf("%s+%08x+%s", k.name, k.id, base64.StdEncoding.EncodeToString(k.material()))
}

// Name returns who signs with the key. For a log it is the origin of its checkpoints.
func (k Key) Name() string { return k.name }

// KeyHash returns the number that goes with the name in signature lines.
func (k Key) KeyHash() uint32 { return k.id }

// IsWitness says whether the key makes cosignatures.
func (k Key) IsWitness() bool { return k.kind == kindWitness }

// Verify says whether sig is the key's signature of the text of a checkpoint.
func (k Key) Verify(text, sig []byte) bool {
	if k.kind == kindWitness {
		at, signature, ok := cutCosignature(sig)
		return ok && ed25519.Verify(k.public[:], cosigned(at, text), signature)
	}
	return len(sig) == ed25519.SignatureSize && ed25519.Verify(k.public[:], text, sig)
}

// cutCosignature takes apart what C2SP tlog-cosignature puts into a signature line.
func cutCosignature(sig []byte) (at uint64, signature []byte, ok bool) {
	if len(sig) != 8+ed25519.SignatureSize {
		return 0, nil, false
	}
	at = binary.BigEndian.Uint64(sig)
	return at, sig[8:], at < 1<<63
}

// cosigned is what a witness signs.
func cosigned(at uint64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...)
}

// Signer signs the checkpoints of one log.
type Signer struct {
	key    Key
	signer note.Signer
}

// GenerateKey makes the key of a log with that origin. private is what NewSigner
// reads and has to be kept secret.
func GenerateKey(random io.Reader, origin string) (private string, public Key, err error) {
	if !isOrigin(origin) {
		return "", Key{}, errOrigin
	}
	private, vkey, err := note.GenerateKey(random, origin)
	if err != nil {
		return "", Key{}, fmt.Errorf("generate a log key: %w", err)
	}
	public, err = ParseKey(vkey)
	return private, public, err
}

// errPrivateKey says nothing of what was read, which may be most of a key.
var errPrivateKey = errors.New("not a private key of the form that signed notes have: PRIVATE+KEY+…")

// NewSigner reads a private key (skey) of signed notes. The file of a log key is this
// text and a line feed, which the caller takes off.
func NewSigner(private string) (*Signer, error) {
	signer, err := note.NewSigner(private)
	if err != nil || !isOrigin(signer.Name()) {
		return nil, errPrivateKey
	}
	secret, err := privateKey(private)
	if err != nil {
		return nil, err
	}
	return &Signer{newKey(signer.Name(), kindLog, secret.Public().(ed25519.PublicKey)), signer}, nil
}

// privateKey returns the key in text that note.NewSigner accepted.
func privateKey(private string) (ed25519.PrivateKey, error) {
	parts := strings.SplitN(private, "+", 5)
	if len(parts) != 5 {
		return nil, errPrivateKey
	}
	decoded, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(decoded) != 1+ed25519.SeedSize {
		return nil, errPrivateKey
	}
	return ed25519.NewKeyFromSeed(decoded[1:]), nil
}

// Origin returns the name of the log.
func (s *Signer) Origin() string { return s.key.name }

// Key returns the public key.
func (s *Signer) Key() Key { return s.key }

// Cosigner signs, as a witness, that it has seen checkpoints.
type Cosigner struct {
	key    Key
	secret ed25519.PrivateKey
}

// NewCosigner reads a private key as NewSigner does, for a witness of that name. A
// key must not be that of a log and of a witness at once.
func NewCosigner(private string) (*Cosigner, error) {
	signer, err := NewSigner(private)
	if err != nil {
		return nil, err
	}
	secret, err := privateKey(private)
	if err != nil {
		return nil, err
	}
	return &Cosigner{newKey(signer.Origin(), kindWitness, signer.key.public[:]), secret}, nil
}

// Key returns the public key.
func (c *Cosigner) Key() Key { return c.key }

// Cosign returns one signature line for a signed checkpoint, as of that time in whole
// seconds. Whether the checkpoint may be signed (whether the log signed it, and whether
// it continues what was seen before) is for the caller to find out first.
func (c *Cosigner) Cosign(signed []byte, at time.Time) (line []byte, err error) {
	n, err := readNote(signed)
	if err != nil {
		return nil, err
	}
	if at.Unix() < 0 {
		return nil, errors.New("a cosignature has no time before 1970")
	}
	seconds := uint64(at.Unix())
	sig := binary.BigEndian.AppendUint32(nil, c.key.id)
	sig = binary.BigEndian.AppendUint64(sig, seconds)
	sig = append(sig, ed25519.Sign(c.secret, cosigned(seconds, n.text))...)
	return fmt.Appendf(nil, "— %s %s\n", c.key.name, base64.StdEncoding.EncodeToString(sig)), nil
}
