package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/internal/vault/agefile"
)

func (a *app) vaultCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "vault", Short: "Keep the values of credentials in an encrypted file",
		Long: `Keep the values of credentials in a file that age encrypts, to a passphrase or to keys. A credential in
credentials.yaml with "vault: true" has its value there, under its own reference. Values go in and never come out:
no command, no door and no page shows one. A value is read from standard input or typed, and is never an argument.

` + exitCodes,
		Example: `  deed vault init
  deed vault set billing < key.txt
  deed vault list
  deed vault lock`,
	}
	a.vaultKeyFlags(c.PersistentFlags())
	c.AddCommand(a.vaultInit(), a.vaultSet(), a.vaultList(), a.vaultRemove(), a.vaultUnlock(), a.vaultLock(), a.vaultRotate(), a.vaultRekey())
	return c
}

func (a *app) vaultInit() *cobra.Command {
	var recipients []string
	var work int
	c := &cobra.Command{
		Use: "init", Short: "Make an empty vault", Args: cobra.NoArgs,
		Long: `Make an empty vault: for a passphrase, which is typed twice, read from standard input or taken from the file that
the settings name; or, with --recipient, for the holders of age keys (age1…, age1pq1…, of a plugin) or SSH keys.
A vault that exists is left as it is.`,
		Example: "  deed vault init\n  deed vault init --recipient age1… --recipient \"ssh-ed25519 AAAA…\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return vaultError(cfg, a.makeVault(cfg, work, recipients))
		},
	}
	c.Flags().StringArrayVar(&recipients, "recipient", nil, "a public key whose holder can open the vault; may be given several times")
	c.Flags().IntVar(&work, "work-factor", agefile.UsualWork, "2^N rounds of scrypt for a passphrase, from 10 to 22")
	return c
}

func (a *app) makeVault(cfg config.Config, work int, recipients []string) error {
	if agefile.Exists(cfg.Vault) {
		return vault.ErrExists
	}
	var key vault.Unlocker
	if len(recipients) == 0 {
		text, err := a.newPassphrase(cfg.VaultPassphraseFile)
		if err != nil {
			return err
		}
		if key, err = vault.WithPassphrase(text); err != nil {
			return err
		}
		defer key.Wipe()
	}
	if err := os.MkdirAll(filepath.Dir(cfg.Vault), 0o700); err != nil {
		return err
	}
	if err := vault.Create(cfg.Vault, key, work, recipients); err != nil {
		if errors.Is(err, vault.ErrExists) || errors.Is(err, agefile.ErrBusy) {
			return err
		}
		return &exitError{exitUsage, fmt.Errorf("no vault was made: %w", err)}
	}
	if a.json {
		return a.printJSON(map[string]any{"vault": cfg.Vault, "recipients": len(recipients)})
	}
	fmt.Fprintf(a.err, "written: %s\nWhoever loses what opens it loses what is in it. Next: put \"vault: true\" into credentials.yaml, then deed vault set REF\n", cfg.Vault)
	return nil
}

// newPassphrase is the one that a file holds, or one that is typed twice or comes in.
func (a *app) newPassphrase(file string) ([]byte, error) {
	if file != "" {
		text, err := privateFile(file)
		return firstLine(text), err
	}
	if !typedAt(a.in) {
		return a.askForPassphrase(true)
	}
	first, err := a.typed("New passphrase of the vault: ")
	if err != nil {
		return nil, err
	}
	second, err := a.typed("Once more: ")
	if err != nil {
		return nil, err
	}
	defer clear(second)
	if string(first) != string(second) {
		return nil, &exitError{exitUsage, errors.New("the two differ; nothing was written")}
	}
	return first, nil
}

func (a *app) vaultSet() *cobra.Command {
	return &cobra.Command{
		Use: "set REF", Short: "Put a value into the vault, from standard input or typed", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeVaultRefs,
		Long: `Put the value of a credential into the vault, in the place of an earlier one. It is read from standard input, with the
last line end taken off, or typed at the terminal. It is sealed together with what credentials.yaml says it is for:
kind, hosts and addresses. When those change later to anything wider, the value is refused until it is set again.
A running gateway takes it up at once.`,
		Example: "  deed vault set billing < key.txt\n  pass show billing | deed vault set billing",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeVault(cmd.Context(), args[0], true, func(e *vault.Editor, c vault.Credential, value []byte) error {
				return e.Set(c, value, time.Now())
			})
		},
	}
}

func (a *app) vaultRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm REF", Short: "Take a value out of the vault", Args: cobra.ExactArgs(1), Example: "  deed vault rm billing", ValidArgsFunction: a.completeVaultRefs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeVault(cmd.Context(), args[0], false, func(e *vault.Editor, c vault.Credential, _ []byte) error { return e.Remove(c.Ref) })
		},
	}
}

// changeVault makes one change of the file, and lets a gateway that runs take it up.
func (a *app) changeVault(ctx context.Context, ref string, withValue bool, change func(*vault.Editor, vault.Credential, []byte) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	c := vault.Credential{Ref: ref}
	var value []byte
	if withValue {
		if c, err = sealedCredential(cfg, ref); err != nil {
			return err
		}
		if value, err = a.newValue(c); err != nil {
			return err
		}
		defer clear(value)
	}
	key, err := a.askForKey(cfg, !withValue)
	if err != nil {
		return err
	}
	defer key.Wipe()
	if err := vault.Edit(cfg.Vault, key, func(e *vault.Editor) error { return change(e, c, value) }); err != nil {
		return vaultError(cfg, err)
	}
	return a.takenUp(ctx, cfg, key, map[string]any{"ref": ref})
}

// takenUp tells a gateway that runs, and says what became of it.
func (a *app) takenUp(ctx context.Context, cfg config.Config, key vault.Unlocker, answer map[string]any) error {
	gateway := "none runs"
	if running(cfg.Operator) {
		err := operator.NewClient(cfg.Operator).ReloadVault(ctx, key.Passphrase())
		var refused *action.Error
		switch {
		case err == nil:
			gateway = "uses it"
		case errors.As(err, &refused) && refused.Code == action.CodeVaultLocked:
			gateway = "locked"
		default:
			return &exitError{exitFailed, fmt.Errorf("the vault is changed, and the gateway that runs still uses what it had: %w\n`deed vault unlock` makes it read the vault again", err)}
		}
	}
	if a.json {
		answer["gateway"] = gateway
		return a.printJSON(answer)
	}
	fmt.Fprintf(a.err, "done; the gateway: %s\n", gateway)
	return nil
}

// sealedCredential finds a credential whose value belongs into the vault.
func sealedCredential(cfg config.Config, ref string) (vault.Credential, error) {
	v, err := vault.Load(cfg.Credentials)
	if err != nil {
		return vault.Credential{}, &exitError{exitUsage, err}
	}
	c, ok := v.Find(ref)
	switch {
	case !ok:
		return c, &exitError{exitUsage, fmt.Errorf("credentials.yaml has no credential %q; write there what it is for (kind, hosts, vault: true), then put its value in", ref)}
	case !c.Source.Vault:
		return c, &exitError{exitUsage, fmt.Errorf("credentials.yaml says that the value of %q is elsewhere (%s); write vault: true there, then put it in", ref, c.Source)}
	}
	return c, nil
}

// newValue reads a value for the vault and checks that it is one, before any key is asked for.
func (a *app) newValue(c vault.Credential) ([]byte, error) {
	var value []byte
	var err error
	switch {
	case !typedAt(a.in):
		value, err = io.ReadAll(io.LimitReader(a.in, vault.MaxSecret+3))
		value = trimLineEnd(value)
	case c.Kind.ManyLines():
		return nil, &exitError{exitUsage, fmt.Errorf("the value of a %s has many lines; give it on standard input: deed vault set %s < FILE", c.Kind, c.Ref)}
	default:
		value, err = a.typed("Value of " + c.Ref + ": ")
	}
	if err == nil {
		err = vault.Usable(c, value)
	}
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("nothing was changed: %w", err)}
	}
	return value, nil
}

func trimLineEnd(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}

// vaultError says what a person can do.
func vaultError(cfg config.Config, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vault.ErrExists):
		return &exitError{exitFailed, fmt.Errorf("%s exists already and was left as it is", cfg.Vault)}
	case errors.Is(err, agefile.ErrAbsent):
		return &exitError{exitFailed, errors.New("there is no vault yet; `deed vault init` makes one")}
	case errors.Is(err, agefile.ErrKey):
		return &exitError{exitRefused, errors.New("this does not open the vault; nothing was changed")}
	case errors.Is(err, agefile.ErrBusy):
		return &exitError{exitTryLater, fmt.Errorf("%w; nothing was changed, try again", err)}
	case errors.Is(err, vault.ErrNoEntry):
		return &exitError{exitFailed, fmt.Errorf("%w; nothing was changed", err)}
	case errors.Is(err, vault.ErrRotating):
		return &exitError{exitUnknown, fmt.Errorf("%w; nothing was changed\nSettle it first: deed vault rotate REF --verify, or --active new or old when you know", err)}
	}
	return explain(err)
}

func (a *app) vaultUnlock() *cobra.Command {
	return &cobra.Command{
		Use: "unlock", Short: "Open the vault of the running gateway", Args: cobra.NoArgs,
		Long: `Open the vault of the running gateway. The passphrase is typed, or read from standard input or from the file that the
settings name; it goes over the operator's socket once and is not kept. A gateway that has an identity file of its
own uses that. What waits for the vault goes on by itself.`,
		Example: "  deed vault unlock",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			if !running(cfg.Operator) {
				return noGateway("unlocked")
			}
			passphrase, err := a.passphraseFor(cfg)
			if err != nil {
				return err
			}
			defer clear(passphrase)
			return a.vaultAnswered(false, operator.NewClient(cfg.Operator).UnlockVault(cmd.Context(), passphrase))
		},
	}
}

// passphraseFor is what the gateway needs to be told: nothing where the vault is for a key, since that stays where it is.
func (a *app) passphraseFor(cfg config.Config) ([]byte, error) {
	needs, err := agefile.NeedsPassphrase(cfg.Vault)
	if err != nil || !needs {
		return nil, nil //nolint:nilerr // the gateway looks at its own file, and says what is wrong with it
	}
	key, err := a.askForKey(cfg, true)
	if err != nil {
		return nil, err
	}
	return key.Passphrase(), nil
}

func (a *app) vaultLock() *cobra.Command {
	return &cobra.Command{
		Use: "lock", Short: "Stop the running gateway from using any credential, at once", Args: cobra.NoArgs, Example: "  deed vault lock",
		Long: `Stop the running gateway from using any credential, at once: also for actions that are allowed and not sent yet. What
was sent stays sent. Values are wiped from its memory as far as Go allows.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			if !running(cfg.Operator) {
				return noGateway("locked")
			}
			return a.vaultAnswered(true, operator.NewClient(cfg.Operator).LockVault(cmd.Context()))
		},
	}
}

func noGateway(what string) error {
	return &exitError{exitFailed, fmt.Errorf("no gateway runs, so nothing was %s; the file itself is always encrypted", what)}
}

func (a *app) vaultAnswered(locked bool, err error) error {
	var refused *action.Error
	switch {
	case errors.As(err, &refused):
		return &exitError{exitRefused, errors.New(refused.Message)}
	case err != nil:
		return &exitError{exitFailed, fmt.Errorf("it is not known whether the gateway did it: %w; deed status says what is so", err)}
	case a.json:
		return a.printJSON(operator.VaultState{Locked: locked})
	case locked:
		fmt.Fprintln(a.err, "locked: nothing that needs a credential is sent")
	default:
		fmt.Fprintln(a.err, "unlocked")
	}
	return nil
}

// vaultLine is one credential as `deed vault list` shows it. It has no value, and nothing that is made from one.
type vaultLine struct {
	Ref      string         `json:"ref"`
	Kind     vault.Kind     `json:"kind"`
	Hosts    []string       `json:"hosts"`
	Source   string         `json:"source"`
	Set      time.Time      `json:"set,omitzero"`
	Verified time.Time      `json:"verified,omitzero"`
	By       vault.Verifier `json:"verified_by,omitempty"`
	Rotating time.Time      `json:"rotating_since,omitzero"`
	Note     string         `json:"note,omitempty"`
}

func (a *app) vaultList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List credentials, and when each value in the vault was set", Args: cobra.NoArgs, Example: "  deed vault list\n  deed vault list --json",
		Long: `List the credentials of credentials.yaml with kind, hosts and the place of the value, and for those in the vault when
they were set and verified. A running gateway is asked; without one, the vault is opened here.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			lines, err := a.vaultLines(cmd.Context(), cfg)
			if err != nil {
				return vaultError(cfg, err)
			}
			if a.json {
				return a.printJSON(lines)
			}
			return a.printVault(lines)
		},
	}
}

func (a *app) vaultLines(ctx context.Context, cfg config.Config) ([]vaultLine, error) {
	v, err := vault.Load(cfg.Credentials)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	entries, state, err := a.vaultEntries(ctx, cfg)
	if err != nil {
		return nil, err
	}
	lines := []vaultLine{}
	for _, c := range v.All() {
		l := vaultLine{Ref: c.Ref, Kind: c.Kind, Hosts: c.Hosts, Source: c.Source.String()}
		if c.Source.Vault {
			l.Note = state
			if at := slices.IndexFunc(entries, func(e vault.Entry) bool { return e.Ref == c.Ref }); at >= 0 {
				e := entries[at]
				l.Set, l.Verified, l.By, l.Rotating, l.Note = e.Set, e.Verified, e.VerifiedBy, e.Rotating, ""
				if !e.Rotating.IsZero() {
					l.Note = "rotation not over"
				}
			}
		}
		lines = append(lines, l)
	}
	for _, e := range entries {
		if c, ok := v.Find(e.Ref); !ok || !c.Source.Vault {
			lines = append(lines, vaultLine{e.Ref, e.Kind, e.Hosts, "vault", e.Set, e.Verified, e.VerifiedBy, e.Rotating, "credentials.yaml does not use it"})
		}
	}
	return lines, nil
}

// vaultEntries asks the gateway that runs, or opens the file.
func (a *app) vaultEntries(ctx context.Context, cfg config.Config) (entries []vault.Entry, without string, err error) {
	if running(cfg.Operator) {
		raw, err := operator.NewClient(cfg.Operator).Vault(ctx)
		var refused *action.Error
		if errors.As(err, &refused) && refused.Code == action.CodeVaultLocked {
			return nil, "locked", nil
		}
		if err != nil {
			return nil, "", err
		}
		return entries, "no value", json.Unmarshal(raw, &entries)
	}
	if !agefile.Exists(cfg.Vault) {
		return nil, "no value", nil
	}
	key, err := a.askForKey(cfg, true)
	if err != nil {
		return nil, "", err
	}
	defer key.Wipe()
	entries, err = vault.View(cfg.Vault, key)
	return entries, "no value", err
}

func (a *app) printVault(lines []vaultLine) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "REF\tKIND\tHOSTS\tVALUE FROM\tSET\tVERIFIED\tNOTE")
	day := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format(time.DateTime)
	}
	for _, l := range lines {
		verified := day(l.Verified)
		if l.By != "" {
			verified += " by " + string(l.By)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Ref, l.Kind, strings.Join(l.Hosts, ","), l.Source, day(l.Set), verified, l.Note)
	}
	return w.Flush()
}

// completeVaultRefs offers the credentials whose value belongs into the vault.
func (a *app) completeVaultRefs(_ *cobra.Command, args []string, _ string) (refs []string, _ cobra.ShellCompDirective) {
	if cfg, err := a.config(); err == nil && len(args) == 0 {
		if v, err := vault.Load(cfg.Credentials); err == nil {
			for _, c := range v.All() {
				if c.Source.Vault {
					refs = append(refs, c.Ref+"\t"+string(c.Kind))
				}
			}
		}
	}
	return refs, cobra.ShellCompDirectiveNoFileComp
}
