package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/identity"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store/sqlite"
)

func (a *app) auditKeysCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "List the public keys of the log, for auditors",
		Long: `List the public keys with which checkpoints of the journal are signed, the one in use first. Give the key to whoever
shall verify the journal, on a way that does not go through the journal: what a journal says of its own keys proves
nothing.`,
		Example: "  deed audit keys\n  deed audit keys rotate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withJournal(cmd.Context(), func(ctx context.Context, _ *sqlite.Reader, s signing) error {
				keys, err := s.Keys(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(keys)
				}
				for _, k := range keys {
					use := "earlier"
					if k.Signs {
						use = "in use "
					}
					since := ""
					if k.Since != nil {
						since = fmt.Sprintf("  named by record %d", *k.Since)
					}
					fmt.Fprintf(a.out, "%s  %s%s\n", use, k.Key, since)
				}
				return nil
			})
		},
	}
	c.AddCommand(a.auditRotateCommand())
	return c
}

func (a *app) auditRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Let a new key sign from now on",
		Long: `Make a new key for the log. A record in the journal names it, and one checkpoint carries the signatures of the old
key and of the new one: whoever trusts the old key can follow to the new one with it. It is printed, and stays in the
key directory. The old private key is gone afterwards. Tell your auditors the new public key.`,
		Example: "  deed audit keys rotate > handover.checkpoint",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			var r audit.Rotated
			if running(cfg.Operator) {
				r, err = operator.NewClient(cfg.Operator).Rotate(cmd.Context())
			} else {
				err = a.inProcess(cmd.Context(), cfg, func(ctx context.Context, l *line, _ *identity.Peer) (err error) {
					r, err = l.journal.parts.Rotate(ctx)
					return err
				})
			}
			if errors.Is(err, operator.ErrLost) {
				return &exitError{exitUnknown, fmt.Errorf("%w\nWhether there is a new key, `deed audit keys` says", err)}
			}
			if err != nil {
				return spoken(err)
			}
			if a.json {
				return a.printJSON(r)
			}
			fmt.Fprintf(a.err, "old  %s\nnew  %s\n", r.Old, r.New)
			_, err = fmt.Fprint(a.out, r.Checkpoint)
			return err
		},
	}
}
