// Package agefile keeps one small text in a file encrypted with age: read as a whole, replaced as a whole, by one writer
// at a time.
//
// It refuses to know what is in the text, and it keeps no key: whoever reads or writes brings one.
package agefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"filippo.io/age"

	"deed.dev/deed/internal/atomicfile"
)

// What stands in the way of a file. None of them holds a key or a part of the text.
var (
	ErrAbsent  = errors.New("the vault's file does not exist")
	ErrKey     = errors.New("this key does not open the vault's file")
	ErrDamaged = errors.New("the vault's file is damaged, or is no age file")
	ErrBusy    = errors.New("another process writes the vault's file")
)

// maxFile bounds the encrypted file, in bytes.
const maxFile = 16 << 20

// Read decrypts the file. The caller wipes what it gets.
func Read(path string, k Key) ([]byte, error) {
	raw, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if len(k.identities) == 0 {
		return nil, ErrKey
	}
	r, err := age.Decrypt(bytes.NewReader(raw), k.identities...)
	if err != nil {
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return nil, ErrKey
		}
		return nil, ErrDamaged // what a plugin or a parser says is left out: it may quote the key
	}
	text := bytes.NewBuffer(make([]byte, 0, len(raw))) // never grows, so no copy is left behind
	if _, err := io.Copy(text, r); err != nil {
		clear(text.Bytes())
		return nil, ErrDamaged
	}
	return text.Bytes(), nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrAbsent
		}
		return nil, fmt.Errorf("open the vault's file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("examine the vault's file: %w", err)
	case !info.Mode().IsRegular():
		return nil, errors.New("the vault's file is no regular file")
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("the vault's file has mode %04o; others than its owner may not write it (chmod 600)", info.Mode().Perm())
	case info.Size() > maxFile:
		return nil, fmt.Errorf("the vault's file is larger than %d bytes", maxFile)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the vault's file: %w", err)
	}
	return raw, nil
}

// Write encrypts the text and puts it in the place of what the file held, durably and readable by its owner alone. The
// caller holds the lock.
func Write(path string, to Recipients, text []byte) error {
	if len(to.recipients) == 0 {
		return errors.New("nobody is named who could open the vault's file")
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to.recipients...)
	if err != nil {
		return errors.New("the vault's file could not be encrypted to its recipients; a plugin that is missing or refuses may be why")
	}
	if _, err := w.Write(text); err != nil {
		return errors.New("the vault's file could not be encrypted")
	}
	if err := w.Close(); err != nil {
		return errors.New("the vault's file could not be encrypted")
	}
	if sealed.Len() > maxFile {
		return fmt.Errorf("the vault's file would be larger than %d bytes", maxFile)
	}
	return atomicfile.Write(path, sealed.Bytes())
}

// Exists reports whether there is a file.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// NeedsPassphrase reports whether the file is encrypted to a passphrase, and not to the key of somebody.
func NeedsPassphrase(path string) (bool, error) {
	raw, err := readFile(path)
	if err != nil {
		return false, err
	}
	header, err := age.ExtractHeader(bytes.NewReader(raw))
	if err != nil {
		return false, ErrDamaged
	}
	return bytes.Contains(header, []byte("\n-> scrypt ")), nil
}
