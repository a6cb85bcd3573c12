package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/internal/vault/agefile"
)

func (a *app) vaultRekey() *cobra.Command {
	var recipients []string
	var work int
	var file string
	c := &cobra.Command{
		Use: "rekey", Short: "Write the vault for another passphrase or other keys", Args: cobra.NoArgs,
		Long: `Write the vault for another passphrase, or with --recipient for the holders of keys. The new passphrase is typed twice,
read from standard input, or taken from --new-passphrase-file. What opened the vault until now still opens copies that
were made before: when it has become known, rotate the credentials too.`,
		Example: "  deed vault rekey\n  deed vault rekey --recipient age1… --recipient age1pq1…",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			return vaultError(cfg, a.rekey(cfg, file, work, recipients))
		},
	}
	c.Flags().StringArrayVar(&recipients, "recipient", nil, "a public key whose holder can open the vault; may be given several times")
	c.Flags().StringVar(&file, "new-passphrase-file", "", "file that holds the new passphrase, for its owner alone")
	c.Flags().IntVar(&work, "work-factor", agefile.UsualWork, "2^N rounds of scrypt for a passphrase, from 10 to 22")
	return c
}

func (a *app) rekey(cfg config.Config, file string, work int, recipients []string) error {
	key, err := a.askForKey(cfg, len(recipients) > 0 || file != "")
	if err != nil {
		return err
	}
	defer key.Wipe()
	var next vault.Unlocker
	if len(recipients) == 0 {
		text, err := a.newPassphrase(file)
		if err != nil {
			return err
		}
		if next, err = vault.WithPassphrase(text); err != nil {
			return err
		}
		defer next.Wipe()
	}
	if err := vault.Rekey(cfg.Vault, key, next, work, recipients); err != nil {
		return fmt.Errorf("the vault is as it was: %w", err)
	}
	if a.json {
		return a.printJSON(map[string]any{"vault": cfg.Vault, "recipients": len(recipients)})
	}
	fmt.Fprintln(a.err, "written for the new key; a gateway that is started with the old one does not start")
	return nil
}
