package main

import (
	"github.com/spf13/cobra"

	"deed.dev/deed/lab/provider"
)

// labCommand holds the parts of the demo and the tests that run as processes of their own.
func (a *app) labCommand() *cobra.Command {
	c := &cobra.Command{Use: "lab", Short: "Parts of the demo and the tests", Hidden: true}
	c.AddCommand(&cobra.Command{
		Use: "provider", Short: "A payment provider with its own ledger", DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := provider.Main(args, a.out, a.err); code != exitOK {
				return &exitError{code: code}
			}
			return nil
		},
	})
	return c
}
