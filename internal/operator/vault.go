package operator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"deed.dev/deed/internal/action"
)

// maxPassphrase bounds a passphrase, in bytes.
const maxPassphrase = 4 << 10

// VaultState is the answer to a change of the vault.
type VaultState struct {
	Locked bool `json:"locked"`
}

func (s *Server) getVault(w http.ResponseWriter, r *http.Request, _ Desk) {
	if s.o.Vault == nil {
		s.nothingHere(w, r, Desk{})
		return
	}
	all, err := s.o.Vault.Entries()
	s.answer(w, all, err)
}

func (s *Server) postUnlock(w http.ResponseWriter, r *http.Request, d Desk) {
	s.open(w, r, d, "the vault was unlocked", Vault.Unlock)
}

func (s *Server) postReload(w http.ResponseWriter, r *http.Request, d Desk) {
	s.open(w, r, d, "the vault was read again", Vault.Reload)
}

func (s *Server) open(w http.ResponseWriter, r *http.Request, d Desk, done string, how func(Vault, []byte) error) {
	if s.o.Vault == nil {
		s.nothingHere(w, r, Desk{})
		return
	}
	passphrase, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPassphrase))
	defer clear(passphrase)
	if err != nil {
		s.answer(w, nil, action.Errorf(action.CodeInvalidArguments, "nothing was changed: the body is to be a passphrase, of 4 KiB at most"))
		return
	}
	if err = how(s.o.Vault, passphrase); err != nil {
		s.o.Log.Warn("the vault was not opened", "by", d.By.String(), "error", err)
	} else {
		s.o.Log.Info(done, "by", d.By.String())
	}
	s.answer(w, VaultState{s.o.Vault.Locked()}, err)
}

func (s *Server) postLock(w http.ResponseWriter, r *http.Request, d Desk) {
	if s.o.Vault == nil {
		s.nothingHere(w, r, Desk{})
		return
	}
	s.o.Vault.Lock()
	s.o.Log.Info("the vault was locked", "by", d.By.String())
	s.answer(w, VaultState{s.o.Vault.Locked()}, nil)
}

// UnlockVault opens the vault of the gateway, with a passphrase or with the gateway's own key.
func (c *Client) UnlockVault(ctx context.Context, passphrase []byte) error {
	return c.do(ctx, http.MethodPost, "/v1/vault/unlock", passphrase, nil)
}

// ReloadVault makes the gateway read the vault's file again.
func (c *Client) ReloadVault(ctx context.Context, passphrase []byte) error {
	return c.do(ctx, http.MethodPost, "/v1/vault/reload", passphrase, nil)
}

// LockVault locks the vault of the gateway.
func (c *Client) LockVault(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/vault/lock", nil, nil)
}

// Vault lists what is in the vault of the gateway.
func (c *Client) Vault(ctx context.Context) (entries json.RawMessage, err error) {
	return entries, c.do(ctx, http.MethodGet, "/v1/vault", nil, &entries)
}
