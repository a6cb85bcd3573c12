package main

import (
	"errors"
	"slices"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/internal/vault/agefile"
)

// vaultDoor is the vault as the operator's door opens and locks it.
type vaultDoor struct {
	*vault.Vault
	cfg   config.Config
	one   sync.Mutex    // one at a time: guesses wait for each other
	pause time.Duration // after a wrong key
}

func newVaultDoor(cfg config.Config, v *vault.Vault) *vaultDoor {
	return &vaultDoor{Vault: v, cfg: cfg, pause: time.Second}
}

func (d *vaultDoor) Unlock(passphrase []byte) error { return d.with(passphrase, d.UnlockWith) }

func (d *vaultDoor) Reload(passphrase []byte) error { return d.with(passphrase, d.Vault.Reload) }

func (d *vaultDoor) with(passphrase []byte, open func(vault.Unlocker) error) error {
	d.one.Lock()
	defer d.one.Unlock()
	if !d.HasFile() { // locked as a switch
		d.Vault.Unlock()
		return nil
	}
	key, err := d.key(passphrase)
	if err == nil {
		defer key.Wipe()
		err = open(key)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agefile.ErrKey):
		time.Sleep(d.pause)
		return action.Errorf(action.CodeVaultLocked, "this does not open the vault; nothing was changed")
	case errors.Is(err, errNoVaultKey):
		return action.Errorf(action.CodeVaultLocked, "the gateway has no key of its own for the vault, and none was given; nothing was changed")
	case errors.Is(err, vault.ErrLocked):
		return action.Errorf(action.CodeVaultLocked, "the vault is locked, and stays so")
	}
	return action.Errorf(action.CodeInternal, "the vault's file could not be read, and nothing was changed; the log of the gateway says why").Because(err)
}

func (d *vaultDoor) key(passphrase []byte) (vault.Unlocker, error) {
	if len(passphrase) > 0 {
		return vault.WithPassphrase(slices.Clone(passphrase))
	}
	needs, err := agefile.NeedsPassphrase(d.cfg.Vault)
	if err != nil {
		return vault.Unlocker{}, err
	}
	return givenKey(d.cfg, needs)
}

func (d *vaultDoor) Entries() (any, error) {
	all, err := d.Vault.Entries()
	if errors.Is(err, vault.ErrLocked) {
		return nil, action.Errorf(action.CodeVaultLocked, "the vault is locked; `deed vault unlock` opens it")
	}
	return all, err
}
