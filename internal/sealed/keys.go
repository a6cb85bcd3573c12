package sealed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"deed.dev/deed/internal/atomicfile"
	"golang.org/x/crypto/chacha20poly1305"
)

const (
	idBytes  = 8
	keyBytes = chacha20poly1305.KeySize
	idPrefix = "ck_"
)

// Key is one key. It prints as its identifier, with every verb and inside everything that holds it.
type Key struct {
	id     keyID
	secret func() []byte // fmt looks into a slice that nobody exported, and not into a function
}

// keyID is made from the key, so that a file whose key was changed is noticed before anything is sealed with it.
type keyID [idBytes]byte

func (id keyID) String() string { return idPrefix + hex.EncodeToString(id[:]) }

// ID names the key in every value that it sealed, and in messages.
func (k Key) ID() string { return k.id.String() }

func (k Key) String() string { return k.ID() }

// Format prints the identifier.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.ID()) }

// Keys are the content keys of one key file, newest first. It is for use by many goroutines.
type Keys struct {
	path string
	all  atomic.Pointer[[]*Key]
}

// Read reads a key file. A file that is not there is fs.ErrNotExist.
//
// The file has one key a line: identifier, a space, 32 bytes in base64. It is refused when others than its owner may read
// it.
func Read(path string) (*Keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the content keys: %w", err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("the content keys in %s may be read by others (mode %04o), so nothing was opened with them; "+
			"make the file its owner's alone with `chmod 600`", path, mode)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the content keys: %w", err)
	}
	k := &Keys{path: path}
	var all []*Key
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		key, err := parseKey(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("content keys in %s, line %d: %w. Nothing was opened. Restore the file from its backup: without "+
				"the key that sealed it, content cannot be read", path, n+1, err)
		}
		all = append(all, key)
	}
	k.all.Store(&all)
	return k, nil
}

// Make writes a key file with a first key, durably and for its owner alone. A file that is there stays, and is an error.
func Make(path string) (*Keys, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("make the content keys: %w", errors.Join(fs.ErrExist, err))
	}
	k := &Keys{path: path}
	k.all.Store(new([]*Key))
	if err := k.Rotate(); err != nil {
		return nil, err
	}
	return k, nil
}

// Path is where the keys stand.
func (k *Keys) Path() string { return k.path }

// Current is the key that seals.
func (k *Keys) Current() *Key { return (*k.all.Load())[0] }

// IDs lists the identifiers of the keys, newest first.
func (k *Keys) IDs() (ids []string) {
	for _, key := range *k.all.Load() {
		ids = append(ids, key.ID())
	}
	return ids
}

// Rotate makes a new key that seals from now on. The older ones stay, for what they sealed.
func (k *Keys) Rotate() error {
	secret := make([]byte, keyBytes)
	rand.Read(secret)
	return k.write(slices.Insert(slices.Clone(*k.all.Load()), 0, newKey(secret)))
}

// Retire drops the older keys that nothing needs any more. The one that seals stays.
func (k *Keys) Retire(needed []string) error {
	before := *k.all.Load()
	keep := before[:1:1]
	for _, key := range before[1:] {
		if slices.Contains(needed, key.ID()) {
			keep = append(keep, key)
		}
	}
	if len(keep) == len(before) {
		return nil
	}
	return k.write(keep)
}

func (k *Keys) find(id keyID) (*Key, bool) {
	for _, key := range *k.all.Load() {
		if key.id == id {
			return key, true
		}
	}
	return nil, false
}

// write replaces the file. A key that is not on the disk seals nothing: content would be lost with the process.
func (k *Keys) write(all []*Key) error {
	var b strings.Builder
	for _, key := range all {
		fmt.Fprintf(&b, "%s %s\n", key.ID(), base64.StdEncoding.EncodeToString(key.secret()))
	}
	if err := atomicfile.Write(k.path, []byte(b.String())); err != nil {
		return fmt.Errorf("write the content keys to %s: %w", filepath.Dir(k.path), err)
	}
	k.all.Store(&all)
	return nil
}

func parseKey(line string) (*Key, error) {
	id, value, _ := strings.Cut(line, " ")
	secret, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(secret) != keyBytes || !strings.HasPrefix(id, idPrefix) {
		return nil, fmt.Errorf("want an identifier and %d bytes in base64", keyBytes)
	}
	key := newKey(secret)
	if key.ID() != id {
		return nil, errors.New("the key is not the one that its identifier was made from")
	}
	return key, nil
}

func newKey(secret []byte) *Key {
	sum := sha256.Sum256(append([]byte("deed-content-key/1\x00"), secret...))
	return &Key{id: keyID(sum[:idBytes]), secret: func() []byte { return secret }}
}
