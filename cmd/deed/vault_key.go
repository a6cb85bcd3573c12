package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/internal/vault/agefile"
)

// errNoVaultKey means that nothing was given that could open the vault.
var errNoVaultKey = errors.New("the vault is locked, and nothing was given that opens it: type its passphrase at a terminal, or name a file with " +
	"--vault-passphrase-file or --vault-identity")

func (a *app) vaultKeyFlags(f *pflag.FlagSet) {
	f.StringVar(&a.flags.VaultPassphraseFile, "vault-passphrase-file", "", "file that holds the vault's passphrase, for its owner alone")
	f.StringVar(&a.flags.VaultIdentity, "vault-identity", "", "file that holds the age identity or SSH key that opens the vault")
}

// The systemd credentials that open the vault.
const (
	systemdIdentity   = "deed-vault-identity"
	systemdPassphrase = "deed-vault-passphrase"
)

// givenKey is what opens the vault without asking anybody: what the settings name, or what systemd hands over.
func givenKey(cfg config.Config, passphrase bool) (vault.Unlocker, error) {
	path, name, use := cfg.VaultIdentity, systemdIdentity, vault.WithIdentities
	if passphrase {
		path, name, use = cfg.VaultPassphraseFile, systemdPassphrase, vault.WithPassphrase
	}
	text, err := []byte(nil), error(nil)
	if path != "" {
		text, err = privateFile(path)
	} else if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		text, err = os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // systemd names the directory, and sees to who may read it
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == "":
	case err != nil:
		return vault.Unlocker{}, &exitError{exitUsage, fmt.Errorf("the key of the vault: %w", err)}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return vault.Unlocker{}, errNoVaultKey
	}
	if passphrase {
		text = firstLine(text)
	}
	u, err := use(text)
	if err != nil {
		return u, &exitError{exitUsage, fmt.Errorf("the key of the vault: %w", err)}
	}
	return u, nil
}

// privateFile reads a small file that only its owner may read.
func privateFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is no regular file that its owner alone may read (chmod 600)", path)
	}
	return io.ReadAll(io.LimitReader(f, vault.MaxSecret))
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// startVault loads the credentials for a gateway, and opens the vault when a key is at hand. Without one the gateway runs
// with a locked vault; with one that does not fit it does not start.
func startVault(cfg config.Config, roots *x509.CertPool, log *slog.Logger) (*vault.Vault, error) {
	v, err := openVault(cfg, roots)
	if errors.Is(err, errNoVaultKey) {
		log.Warn("the vault is locked: nothing that needs a credential is sent until `deed vault unlock`")
		return v, nil
	}
	return v, err
}

// openVault loads the credentials and opens the vault with what was given. Without a key the vault comes back locked, with
// errNoVaultKey.
func openVault(cfg config.Config, roots *x509.CertPool) (*vault.Vault, error) {
	v, err := vault.Load(cfg.Credentials)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	v.UseFile(cfg.Vault, roots)
	if !v.HasFile() {
		return v, nil
	}
	needs, err := agefile.NeedsPassphrase(cfg.Vault)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Vault, err)
	}
	key, err := givenKey(cfg, needs)
	if err != nil {
		return v, err
	}
	defer key.Wipe()
	if err := v.UnlockWith(key); err != nil {
		return nil, fmt.Errorf("%s: %w; nothing was started", cfg.Vault, err)
	}
	return v, nil
}

// askForKey gives what opens the vault for a command that a person runs: what was given, or a passphrase that is typed.
// When the command's own input is not needed for a value, the passphrase may also come from there.
func (a *app) askForKey(cfg config.Config, inputIsFree bool) (vault.Unlocker, error) {
	needs, err := agefile.NeedsPassphrase(cfg.Vault)
	if errors.Is(err, agefile.ErrAbsent) {
		return vault.Unlocker{}, &exitError{exitFailed, errors.New("there is no vault yet; `deed vault init` makes one")}
	}
	if err != nil {
		return vault.Unlocker{}, err
	}
	key, err := givenKey(cfg, needs)
	if !errors.Is(err, errNoVaultKey) || !needs {
		return key, err
	}
	text, err := a.askForPassphrase(inputIsFree)
	if err != nil {
		return vault.Unlocker{}, err
	}
	return vault.WithPassphrase(text)
}

func (a *app) askForPassphrase(inputIsFree bool) ([]byte, error) {
	if inputIsFree && !typedAt(a.in) {
		text, err := io.ReadAll(io.LimitReader(a.in, 4<<10))
		if text = firstLine(text); err != nil || len(text) == 0 {
			return nil, &exitError{exitUsage, errNoVaultKey}
		}
		return text, nil
	}
	text, err := a.typed("Passphrase of the vault: ")
	if err != nil {
		return nil, &exitError{exitUsage, errNoVaultKey}
	}
	return text, nil
}

func typedAt(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// typed reads one line at the terminal without showing it.
func (a *app) typed(prompt string) ([]byte, error) {
	f, ok := a.in.(*os.File)
	if !typedAt(a.in) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer tty.Close()
		f, ok = tty, true
	}
	if !ok {
		return nil, errors.New("there is no terminal")
	}
	fmt.Fprint(a.err, prompt)
	defer fmt.Fprintln(a.err)
	return term.ReadPassword(int(f.Fd()))
}
