package main

import (
	"context"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/store/sqlite"
)

func (a *app) auditCheckpointCommand() *cobra.Command {
	var size uint64
	var out string
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "Sign the head of the journal",
		Long: `Print a signed checkpoint: how many records there are, and the root of the tree that they make. Keep it where
the gateway cannot change it. From then on nobody can cut or rewrite those records without being found out, the
holder of the log's key included.`,
		Example: "  deed audit checkpoint -o $(date +%F).checkpoint\n  deed audit checkpoint --size 700",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withJournal(cmd.Context(), func(ctx context.Context, _ *sqlite.Reader, s signing) error {
				signed, err := s.Checkpoint(ctx, size)
				if err != nil {
					return err
				}
				return a.handOut(out, signed)
			})
		},
	}
	c.Flags().Uint64Var(&size, "size", 0, "of the first so many records (0: all)")
	c.Flags().StringVarP(&out, "output", "o", "", "file to write, which must not exist (default: standard output)")
	return c
}
