// Package logkey keeps the Ed25519 key with which a journal's log signs its checkpoints, in a directory of its own:
//
//	log.key         the private key, readable by its owner alone
//	log.pub         the public key as a C2SP vkey: what auditors are given
//	old.pub         earlier public keys, newest first, one a line
//	log.checkpoint  the newest checkpoint that was signed: the journal must never be shorter
//	log.key.next    the key that takes over, while a rotation is under way
//	handover-N.checkpoint  the checkpoint of size N with which a key handed over to the next: both have signed it
//
// It stands apart from the state database, so that a copy of that signs nothing, and so that a database that was put back to
// an earlier state is noticed. The package refuses to know what is signed: it reads and writes files.
package logkey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/journal"
)

// ErrMissing means that there is no key in the directory.
var ErrMissing = errors.New("there is no log key")

const maxFile = 256 << 10

// Dir is a directory with the key of a log.
type Dir struct {
	path   string
	signer *journal.Signer
	old    []journal.Key
}

// Open reads the key in a directory. It is ErrMissing when there is none.
func Open(path string) (*Dir, error) {
	d := &Dir{path: path}
	signer, err := d.private("log.key")
	if err != nil {
		return nil, err
	}
	d.signer = signer
	if d.old, err = readKeys(d.file("old.pub")); err != nil {
		return nil, err
	}
	// A process that died in a rotation may have listed the key as an old one already.
	d.old = slices.DeleteFunc(d.old, func(k journal.Key) bool { return k == signer.Key() })
	return d, nil
}

// Create makes the key of a log with that origin, once: where there is one already, it is an error. The directory is made too.
func Create(path, origin string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the log key: %w", err)
	}
	d := &Dir{path: path}
	if _, err := os.Lstat(d.file("log.key")); err == nil {
		return nil, fmt.Errorf("there is a log key in %s already", path)
	}
	if _, err := d.make("log.key", origin); err != nil {
		return nil, err
	}
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	return d, d.publish()
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// Path is where the key lies.
func (d *Dir) Path() string { return d.path }

// Signer signs with the key.
func (d *Dir) Signer() *journal.Signer { return d.signer }

// Keys are the public keys, the one in use first, then earlier ones, newest first.
func (d *Dir) Keys() []journal.Key { return append([]journal.Key{d.signer.Key()}, d.old...) }

// ReadPublic reads the public keys in a directory, and no private one: the one in use first. None is no error.
func ReadPublic(path string) ([]journal.Key, error) {
	keys, err := readKeys(filepath.Join(path, "log.pub"))
	if err != nil {
		return nil, err
	}
	old, err := readKeys(filepath.Join(path, "old.pub"))
	return append(keys, old...), err
}

// make writes a new private key.
func (d *Dir) make(name, origin string) (*journal.Signer, error) {
	private, _, err := journal.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, fmt.Errorf("make a log key: %w", err)
	}
	if err := atomicfile.Write(d.file(name), []byte(private+"\n")); err != nil {
		return nil, fmt.Errorf("write the log key: %w", err)
	}
	return journal.NewSigner(private)
}

func (d *Dir) private(name string) (*journal.Signer, error) {
	text, err := readFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrMissing, d.path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the log key: %w", err)
	}
	signer, err := journal.NewSigner(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore the file from its backup", d.file(name), err)
	}
	return signer, nil
}

// publish makes log.pub say what log.key is.
func (d *Dir) publish() error {
	want := d.signer.Key().String() + "\n"
	if have, err := readFile(d.file("log.pub")); err == nil && string(have) == want {
		return nil
	}
	if err := atomicfile.Write(d.file("log.pub"), []byte(want)); err != nil {
		return fmt.Errorf("write the public key of the log: %w", err)
	}
	return nil
}

func readKeys(path string) (keys []journal.Key, err error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		key, err := journal.ParseKey(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return os.ReadFile(path)
}
