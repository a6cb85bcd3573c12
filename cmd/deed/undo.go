package main

import (
	"context"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

func (a *app) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "undo ACTION",
		Short: "Compensate a completed action, as its contract says",
		Long: `Compensate a completed action by the tool that its contract names under undo. That is an action of its own, with
its own identity, and it may be lost or unknown like any other. There is one for an action: running the
command again attaches to it.

` + exitCodes,
		Example: "  deed undo act_01j4k8j7dx7v000000000000ab\n  deed undo act_01j4k8j7dx7v000000000000ab --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := actionIDs(args)
			if err != nil {
				return err
			}
			return a.decide(cmd.Context(), func(ctx context.Context, d desk) (s action.Status, code int, err error) {
				s, err = d.Undo(ctx, ids[0])
				return s, exitCode(s.Code), err
			})
		},
		ValidArgsFunction: a.completeActions(store.Query{States: []action.State{action.Completed}, Limit: 50}),
	}
}
