package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/vault"
)

func (a *app) vaultRotate() *cobra.Command {
	var verify bool
	var active string
	c := &cobra.Command{
		Use: "rotate REF", Short: "Replace a value, and find out which one is active", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeVaultRefs,
		Long: `Replace a value, and find out which one is active. The new value is written beside the one in use, and the credential's
check (check: URL in credentials.yaml, a read-only request) is made with both. When the target takes the new one, it
is used from now on; when it refuses the new one and takes the old one, nothing changes. Otherwise the rotation stays
open: the old value stays in use, and no other value is taken until it is known which one is active, by --verify or
by what you say with --active.`,
		Example: `  deed vault rotate billing < new-key.txt
  deed vault rotate billing --verify
  deed vault rotate billing --active new`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			if verify && active != "" || active != "" && active != "new" && active != "old" {
				return &exitError{exitUsage, errors.New("give one of --verify, --active new and --active old")}
			}
			c, err := sealedCredential(cfg, args[0])
			if err != nil {
				return err
			}
			return a.rotate(cmd.Context(), cfg, c, verify, active)
		},
	}
	c.Flags().BoolVar(&verify, "verify", false, "make the check of a rotation that is open, without a new value")
	c.Flags().StringVar(&active, "active", "", "say which value is active: new or old")
	return c
}

func (a *app) rotate(ctx context.Context, cfg config.Config, c vault.Credential, verify bool, active string) error {
	var value []byte
	var err error
	begins := !verify && active == ""
	if begins {
		if value, err = a.newValue(c); err != nil {
			return err
		}
		defer clear(value)
	}
	key, err := a.askForKey(cfg, !begins)
	if err != nil {
		return err
	}
	defer key.Wipe()
	if begins {
		if err := vault.Edit(cfg.Vault, key, func(e *vault.Editor) error { return e.Rotate(c, value, time.Now()) }); err != nil {
			return vaultError(cfg, err)
		}
	}
	over, newIsActive, by, seen := active != "", active == "new", vault.ByPerson, vault.Verdicts{}
	if active == "" {
		if seen, err = a.verdicts(ctx, cfg, c, key); err != nil {
			return vaultError(cfg, err)
		}
		over, newIsActive = seen.Over()
		by = vault.ByCheck
	}
	if !over {
		return a.rotationOpen(c, seen)
	}
	if err := vault.Edit(cfg.Vault, key, func(e *vault.Editor) error { return e.Settle(c.Ref, newIsActive, by, time.Now()) }); err != nil {
		return vaultError(cfg, err)
	}
	answer := map[string]any{"ref": c.Ref, "rotation": "over", "active": "old", "verified_by": by, "new": seen.New.String(), "old": seen.Old.String()}
	if newIsActive {
		answer["active"] = "new"
	}
	if !a.json {
		fmt.Fprintf(a.out, "the %s value of %s is the active one and is used (verified by %s)\n", answer["active"], c.Ref, by)
	}
	if err := a.takenUp(ctx, cfg, key, answer); err != nil {
		return err
	}
	if begins && !newIsActive {
		return &exitError{code: exitRefused} // what was asked for did not happen, and was said
	}
	return nil
}

func (a *app) verdicts(ctx context.Context, cfg config.Config, c vault.Credential, key vault.Unlocker) (vault.Verdicts, error) {
	roots, err := certificateRoots(cfg.TLSRoots)
	if err != nil {
		return vault.Verdicts{}, err
	}
	v, err := vault.Load(cfg.Credentials)
	if err != nil {
		return vault.Verdicts{}, err
	}
	v.UseFile(cfg.Vault, roots)
	return v.Check(ctx, cfg.Vault, key, c)
}

// rotationOpen says that it is not known which value is active.
func (a *app) rotationOpen(c vault.Credential, seen vault.Verdicts) error {
	if a.json {
		if err := a.printJSON(map[string]any{"ref": c.Ref, "rotation": "open", "new": seen.New.String(), "old": seen.Old.String()}); err != nil {
			return err
		}
		return &exitError{code: exitUnknown}
	}
	why := fmt.Sprintf("its check says of the new value: %s; of the old one: %s", seen.New, seen.Old)
	if c.Check == "" {
		why = "it has no check in credentials.yaml"
	}
	return &exitError{exitUnknown, fmt.Errorf("it is not known which value of %s is active: %s\nThe old one stays in use, and the new one is kept beside it. "+
		"Go on with deed vault rotate %s --verify, or --active new or old when you know", c.Ref, why, c.Ref)}
}
