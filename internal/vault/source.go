package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Limits of a value, in bytes. A short one cannot be redacted: it would be found in every second text.
const (
	MinSecret = 8
	MaxSecret = 16 << 10
)

// Open reads the value from its variable or file, now, for whoever sends it with no credential of the list: an object
// storage, say.
func (s Source) Open() (Secret, error) {
	var value string
	var err error
	switch {
	case s.Env != "":
		value, err = fromEnvironment(s.Env)
	case s.File != "":
		value, err = readPrivateFile(s.File)
	default:
		err = errors.New("nothing says where it is: env or file")
	}
	if err != nil {
		return Secret{}, err
	}
	if err := plainValue(Credential{}, value); err != nil {
		return Secret{}, err
	}
	return NewSecret(value), nil
}

func fromEnvironment(name string) (string, error) {
	value, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("environment variable %s is not set", name)
	}
	return value, nil
}

// value takes the value of a credential from its place, now. Errors name the variable, never a value and never a path.
func (v *Vault) value(ctx context.Context, c Credential) (string, error) {
	switch s := c.Source; {
	case s.Vault:
		return v.sealedValue(c)
	case s.Env != "":
		return fromEnvironment(s.Env)
	case s.File != "":
		return readPrivateFile(s.File)
	case len(s.Command) > 0:
		return runCommand(ctx, s.Command)
	case s.OpenBao != nil:
		return v.fromOpenBao(ctx, *s.OpenBao)
	}
	return "", errors.New("nothing says where it is")
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
