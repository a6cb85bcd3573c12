package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/approval"
)

func (a *app) approverCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "approver", Short: "Make an approver's key, and list who may approve",
		Long: `An approver is a person who may approve or deny what agents want to do, known by a key. Who they are stands in
approvers.yaml in the configuration directory. Whoever can write that file can approve: no agent may run as its owner.`,
		Example: "  deed approver new ada\n  deed approver list",
	}
	c.AddCommand(a.approverNew(), a.approverList())
	return c
}

func (a *app) approverNew() *cobra.Command {
	var key, passphrase string
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a key file, and print the lines for approvers.yaml", Args: cobra.ExactArgs(1),
		Long: `Make an Ed25519 key file in OpenSSH's format, which only its passphrase opens, and print the lines that make it an
approver's in approvers.yaml. They are printed and not written there: enrolling somebody is for whoever looks after
that file. A key that exists is never replaced.`,
		Example: "  deed approver new ada\n  deed approver new ada --key ~/ada.key --passphrase-file ada.pass >> approvers.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.newApprover(args[0], key, passphrase)
		},
	}
	c.Flags().StringVar(&key, "key", "", "where the key file goes (default: approver.key in the configuration directory)")
	c.Flags().StringVar(&passphrase, "passphrase-file", "", "read the passphrase from the first line of this file")
	return c
}

func (a *app) newApprover(name, key, passphraseFile string) error {
	path, err := a.keyPath(key)
	if err != nil {
		return err
	}
	passphrase, err := a.newKeyPassphrase(passphraseFile)
	if err != nil {
		return err
	}
	defer clear(passphrase)
	file, public, err := approval.NewKeyFile(passphrase, name)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	lines := fmt.Sprintf("  - name: %s\n    keys:\n      - %s\n", name, public)
	if _, err := approval.ParsePolicy([]byte("approvers:\n" + lines)); err != nil {
		return &exitError{exitUsage, err}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return &exitError{exitFailed, fmt.Errorf("there is a key in %s already, and it was left as it is; choose another place with --key", path)}
	}
	if err != nil {
		return explain(err)
	}
	_, err = f.Write(file)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Fprintln(a.err, "written:", path)
	if a.json {
		return a.printJSON(map[string]any{"name": name, "key_file": path, "public_key": public})
	}
	fmt.Fprintln(a.err, "These lines belong under approvers: in approvers.yaml:")
	fmt.Fprint(a.out, lines)
	return nil
}

// newKeyPassphrase asks twice at a terminal, since nobody sees what is typed.
func (a *app) newKeyPassphrase(path string) ([]byte, error) {
	first, err := a.passphrase(path, "New passphrase: ")
	if err != nil || path != "" {
		return first, err
	}
	again, err := a.passphrase("", "The same again: ")
	defer clear(again)
	if err == nil && !bytes.Equal(first, again) {
		err = &exitError{exitFailed, errors.New("the two are not the same; nothing was written")}
	}
	return first, err
}

// approverShown is an approver as lists show them.
type approverShown struct {
	Name   string   `json:"name"`
	Keys   int      `json:"keys"`
	Pass   int      `json:"passkeys"`
	Actors []string `json:"actors"`
}

func (a *app) approverList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List who may approve, as approvers.yaml says", Args: cobra.NoArgs, Example: "  deed approver list --json",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			policy, err := approval.PolicyFile(cfg.Approvers).Policy()
			if err != nil {
				return &exitError{exitFailed, fmt.Errorf("nobody can approve: %w", err)}
			}
			all := make([]approverShown, len(policy.Approvers))
			for i, p := range policy.Approvers {
				all[i] = approverShown{Name: p.Name, Actors: append([]string{}, p.Actors...)}
				for _, k := range p.Keys {
					if k.Passkey != nil {
						all[i].Pass++
					} else {
						all[i].Keys++
					}
				}
			}
			if a.json {
				return a.printJSON(all)
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tKEY FILES\tPASSKEYS")
			for _, p := range all {
				fmt.Fprintf(w, "%s\t%d\t%d\n", p.Name, p.Keys, p.Pass)
			}
			return w.Flush()
		},
	}
}
