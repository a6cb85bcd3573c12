package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/probe"
	"deed.dev/deed/internal/vault"
)

// probesFile records probes in probes.jsonl of a data directory, a line for each plan and each report. It stands beside the
// journal, and holds neither arguments nor answers.
type probesFile struct{ dir string }

// Planned returns when the plan is on disk.
func (f probesFile) Planned(_ context.Context, p probe.Plan) error {
	return f.add(struct {
		Event string `json:"event"`
		probe.Plan
	}{"probe_planned", p})
}

// Observed returns when the report is on disk.
func (f probesFile) Observed(_ context.Context, r probe.Report) error {
	return f.add(struct {
		Event string `json:"event"`
		probe.Report
	}{"probe_observed", r})
}

func (f probesFile) add(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(f.dir, "probes.jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n')) // in one piece, so that two probes do not mix
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close(), syncDir(f.dir))
}

// syncDir makes a new file's name durable, where the system can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// probeCredentials opens the vault and refuses a target that the contract's credential is not meant for, before anything is
// written down or sent.
func probeCredentials(cfg config.Config, c *contract.Contract, p *probe.Probe) (*vault.Vault, *x509.CertPool, error) {
	roots, err := certificateRoots(cfg.TLSRoots)
	if err != nil {
		return nil, nil, err
	}
	credentials, err := openVault(cfg, roots)
	if errors.Is(err, errNoVaultKey) {
		return nil, nil, fmt.Errorf("nothing was sent: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	if bound, ok := credentials.Find(c.Credential); c.Credential != "" && (!ok || !bound.Bound(p.Target())) {
		return nil, nil, fmt.Errorf("the credential %q is not for %s, so nothing was sent; name the host in credentials.yaml, or probe another", c.Credential, p.Target().Address())
	}
	return credentials, roots, nil
}
