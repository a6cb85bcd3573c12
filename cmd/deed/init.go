package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a configuration to start from",
		Long: `Write a configuration directory with settings, an example contract and an example credential reference. Files
that exist are left as they are.`,
		Example: "  deed init\n  deed init --config ./deed",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			files := []struct{ path, text string }{
				{filepath.Join(cfg.ConfigDir, "deed.yaml"), initSettings},
				{filepath.Join(cfg.Contracts, "get_branches.yaml"), initContract},
				{cfg.Credentials, initCredentials},
			}
			for _, f := range files {
				if err := a.writeNew(f.path, f.text); err != nil {
					return explain(err)
				}
			}
			fmt.Fprintf(a.err, "\nNext: edit them, then\n  deed contracts check --config %s\n  deed serve --config %s\n", cfg.ConfigDir, cfg.ConfigDir)
			return nil
		},
	}
}

// writeNew writes a file that does not exist yet.
func (a *app) writeNew(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		fmt.Fprintln(a.err, "exists: ", path)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintln(a.err, "written:", path)
	}
	return err
}

const initSettings = `# Settings of deed; deed config shows each one and where it came from. All of them have defaults.
# listen: 127.0.0.1:7333   # the HTTP door, loopback only
# wait: 45s                # how long one call waits before it is told that its action still runs
# log_level: info
# key_dir: ~/deed-keys     # the key that signs the journal, and the newest checkpoint; default: keys in the data directory
`

const initContract = `# A read-only tool to start from. A tool with effects also has to say what happens if the response is lost:
# docs/contracts.md has a complete example of each kind.
tool: get_branches
description: List the branches of a public repository.
input:
  type: object
  required: [owner, repo]
  properties:
    owner: {type: string}
    repo: {type: string}
http:
  method: GET
  url: https://api.github.com/repos/{owner}/{repo}/branches
  headers: {Accept: application/vnd.github+json}
on_lost_response:
  class: read_only
  evidence: https://docs.github.com/rest/branches/branches
done_when: ${status == 200}
no_effect_when: ${status in [403, 404]}
`

const initCredentials = `# Credentials by reference. The value itself never stands here: it is read from the vault, the environment, a file, a
# command or OpenBao in the moment of sending, and goes only to the hosts that are named. docs/vault.md has all kinds.
#
# credentials:
#   - ref: billing
#     kind: bearer
#     hosts: [api.stripe.com]
#     vault: true      # deed vault init, then deed vault set billing
credentials: []
`
