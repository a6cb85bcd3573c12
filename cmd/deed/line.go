package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/argseal"
	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/identity"
	"deed.dev/deed/internal/mcpserver"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/telemetry"
	"deed.dev/deed/internal/vault"
)

// line is a whole gateway, from contracts to the MCP door, without its listeners.
type line struct {
	store   *sqlite.Store
	gateway *gateway.Gateway
	mcp     *mcpserver.Server
	http    *httpexec.Executor
	tools   []*contract.Contract

	journal  *journalDesk
	operator *operator.Server
	vault    *vault.Vault
	started  time.Time
}

// openLine builds every part in the order in which an action meets them.
func openLine(ctx context.Context, cfg config.Config, log *slog.Logger) (*line, error) {
	contracts, err := loadContracts(cfg)
	if err != nil {
		return nil, err
	}
	tokens, err := identity.OpenTokens(cfg.TokensFile())
	if err != nil {
		return nil, err
	}
	roots, err := certificateRoots(cfg.TLSRoots)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	credentials, err := startVault(cfg, roots, log)
	if err != nil {
		return nil, err
	}
	if err := lostRecords(cfg); err != nil {
		return nil, err
	}
	l := &line{tools: contracts.Tools(), vault: credentials, started: time.Now(), journal: &journalDesk{}}
	l.store, err = sqlite.Open(ctx, cfg.DataDir, sqlite.Options{
		Origin: cfg.Origin, Logger: log, Committed: func(int64) { l.journal.grown() },
		Key: func(origin string, chosen bool) (string, string, error) {
			return audit.KeyFor(cfg.KeyDir, origin, chosen)
		},
	})
	if err != nil {
		return nil, err
	}
	if err := l.journal.open(ctx, cfg.KeyDir, l.store, log); err != nil {
		return nil, closing(err, l)
	}
	keys, err := digest.OpenKeys(filepath.Join(cfg.DataDir, "fingerprint.keys"))
	if err != nil {
		return nil, closing(err, l)
	}
	secrets, err := argseal.OpenKey(filepath.Join(cfg.DataDir, "arguments.key"))
	if err != nil {
		return nil, closing(err, l)
	}
	l.http = httpexec.New(httpexec.Options{Vault: credentials, RootCAs: roots})
	l.gateway = gateway.New(gateway.Options{
		Store: l.store, Contracts: contracts, Keys: keys, Vault: credentials,
		Secrets:   secrets,
		Executors: map[string]gateway.Executor{"http": l.http}, Wait: cfg.Wait, Log: log,
		Approvers: approval.PolicyFile(cfg.Approvers), EachUse: credentials.EachUse, AuthorizeRuns: cfg.PersonRuns, RunLife: cfg.LongestRun,
	})
	l.mcp = mcpserver.New(mcpserver.Options{
		Gateway: l.gateway, Tools: shownTools(l.tools), Cancelled: gateway.ErrCancelled,
		Authenticate: tokens.Authenticate, Version: version(), Log: log,
	})
	metrics, err := telemetry.New(l.figures)
	if err != nil {
		return nil, closing(err, l)
	}
	l.operator = operator.New(operator.Options{
		Gateway: l.gateway, Records: l.store, NotFound: store.ErrNotFound, RotateContentKey: l.store.RotateContentKey, Status: l.status, Metrics: metrics, Log: log,
		Journal: l.journal.desk(),
		Vault:   newVaultDoor(cfg, credentials),
	})
	return l, nil
}

// lostRecords refuses to begin a new record where an earlier one is missing: the keys that recognise its actions are there,
// and the actions are not. Going on would take every retry of an open action for a new one.
func lostRecords(cfg config.Config) error {
	dir := cfg.DataDir
	_, keys := os.Stat(filepath.Join(dir, "fingerprint.keys"))
	_, signed := os.Stat(filepath.Join(cfg.KeyDir, "log.checkpoint"))
	_, records := os.Stat(filepath.Join(dir, "deed.db"))
	if signed == nil && errors.Is(records, fs.ErrNotExist) {
		return &exitError{exitFailed, fmt.Errorf("the record in %s is lost: %s has a checkpoint of it, and deed.db is not there\n"+
			"Nothing was started, since an empty journal would take the place of the one that was signed. Restore deed.db from its "+
			"backup; or, to begin another journal, give another key_dir", dir, cfg.KeyDir)}
	}
	if keys == nil && errors.Is(records, fs.ErrNotExist) {
		return &exitError{exitFailed, fmt.Errorf("the record in %s is lost: its fingerprint keys are there, and deed.db is not\n"+
			"Nothing was started, since a retry of an action that was open could not be recognised any more. Restore deed.db from its "+
			"backup; or, when nothing was open, remove fingerprint.keys to begin anew", dir)}
	}
	return nil
}

// close lets go of the parts, last built first.
func (l *line) close() {
	if l.http != nil {
		l.http.Close()
	}
	l.journal.close()
	_ = l.store.Close()
}

// finish waits for what is under way and closes.
func (l *line) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	err := l.gateway.Close(ctx)
	l.close()
	return err
}

func closing(err error, l *line) error {
	l.journal.close()
	_ = l.store.Close()
	return err
}

// shownTools are the contracts as agents see them.
func shownTools(all []*contract.Contract) []mcpserver.Tool {
	tools := make([]mcpserver.Tool, 0, len(all))
	for _, c := range all {
		hints := c.Annotations()
		tools = append(tools, mcpserver.Tool{
			Name: c.Tool, Description: c.Description, InputSchema: c.InputSchema(),
			ReadOnly: hints.ReadOnly, Destructive: hints.Destructive, Idempotent: hints.Idempotent, OpenWorld: hints.OpenWorld,
			Retry: c.Label(), Class: string(c.Class),
		})
	}
	return tools
}

// certificateRoots adds the authorities of a PEM file to those of the system.
func certificateRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tls_roots: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("tls_roots: %s holds no certificate in PEM form", filepath.Base(path))
	}
	return pool, nil
}
