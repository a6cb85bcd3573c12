package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store/sqlite"
)

func (a *app) contentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "content",
		Short: "Look after the keys of protected content",
		Long: `Look after the keys of protected content: arguments, requests and answers, which rest sealed in the data directory. The
keys stand in content.keys there. Back that file up apart from the database: without it the journal still
verifies, and content is lost. To read content: deed show ACTION --protected --why TEXT. docs/protected.md says more.`,
		Example: "  deed content keys\n  deed content rotate",
	}
	c.AddCommand(a.contentKeys(), a.contentRotate())
	return c
}

// contentKey is one line of the list. Nothing of a key but its identifier ever leaves its file.
type contentKey struct {
	ID    string `json:"key_id"`
	Seals bool   `json:"seals"`
}

func (a *app) contentKeys() *cobra.Command {
	return &cobra.Command{
		Use: "keys", Short: "List the identifiers of the content keys, newest first", Args: cobra.NoArgs,
		Long:    `List the identifiers of the content keys, newest first. The first seals; the others open what they sealed.`,
		Example: "  deed content keys\n  deed content keys --json",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			keys, err := sealed.Read(filepath.Join(cfg.DataDir, sqlite.KeysName))
			if err != nil {
				return err
			}
			all := make([]contentKey, 0, 1)
			for i, id := range keys.IDs() {
				all = append(all, contentKey{id, i == 0})
			}
			if a.json {
				return a.printJSON(all)
			}
			for _, k := range all {
				does := "opens what it sealed"
				if k.Seals {
					does = "seals"
				}
				fmt.Fprintf(a.out, "%s  %s\n", k.ID, does)
			}
			return nil
		},
	}
}

func (a *app) contentRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Make a new content key, which seals from now on", Args: cobra.NoArgs,
		Long: `Make a new content key, which seals from now on. Older keys stay in content.keys for what they sealed. The gateway
that runs does it, or else one inside this process. Back content.keys up again afterwards: a gateway does not start with
an older copy of it.`,
		Example: "  deed content rotate",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var made operator.ContentKey
			err := a.atDesk(cmd.Context(), func(ctx context.Context, d desk) (err error) {
				made, err = d.RotateContentKey(ctx)
				return err
			})
			var refused *action.Error
			switch {
			case errors.As(err, &refused):
				return &exitError{exitFailed, errors.New(refused.Message)}
			case errors.Is(err, operator.ErrLost):
				return errors.New("the gateway's answer was lost: a new key may have been made; look with `deed content keys`")
			case err != nil:
				return explain(err)
			case a.json:
				return a.printJSON(made)
			}
			_, err = fmt.Fprintf(a.out, "%s seals from now on. Back %s up again.\n", made.ID, sqlite.KeysName)
			return err
		},
	}
}
