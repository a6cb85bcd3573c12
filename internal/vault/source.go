package vault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Source says where a value is. Exactly one field is set. The value itself never stands here.
type Source struct {
	Env  string // name of an environment variable
	File string // path of a file that only its owner may read
}

// Limits of a value, in bytes. A short one cannot be redacted: it would be found in every second text.
const (
	MinSecret = 8
	MaxSecret = 16 << 10
)

// Open reads the value from its place, now, for whoever sends it with no credential of the list: an object storage, say.
func (s Source) Open() (Secret, error) {
	value, err := s.read()
	if err != nil {
		return Secret{}, err
	}
	if err := checkValue(value); err != nil {
		return Secret{}, err
	}
	return NewSecret(value), nil
}

// read takes the value from its place, now. Errors name the variable, never a value and never a path.
func (s Source) read() (string, error) {
	if s.Env != "" {
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", s.Env)
		}
		return value, nil
	}
	return readPrivateFile(s.File)
}

func readPrivateFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", errors.New("its file does not exist")
		}
		return "", errors.New("its file cannot be opened")
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", errors.New("its file cannot be examined")
	case !info.Mode().IsRegular():
		return "", errors.New("its file is no regular file")
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("its file has mode %04o; others than its owner may have no access (chmod 600)", info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxSecret+3))
	if err != nil {
		return "", errors.New("its file cannot be read")
	}
	return trimNewline(string(raw)), nil
}

// trimNewline removes the one line end that editors and echo leave behind.
func trimNewline(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}
