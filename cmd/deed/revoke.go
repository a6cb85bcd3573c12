package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
)

func (a *app) revokeCommand() *cobra.Command {
	var why string
	c := &cobra.Command{
		Use: "revoke ACTION|INTENT|RUN|ACTOR", Short: "Take back what was allowed and not sent yet", Args: cobra.ExactArgs(1),
		Long: `Take back what was allowed, or is still asked, and was not sent: of one action, of one intent (a branch of a run, whose
siblings go on), of a whole run, or of everything that an actor has open. It is rejected, and recorded with who did it and
why. What was sent already goes on and is not sent again; the answer names it.

A run that was revoked begins nothing more. An actor's next process has a run of its own: to shut out a token, revoke the
token as well (deed token revoke).`,
		Example: `  deed revoke act_01j4k8j7dx7v000000000000ab --why 'the wrong customer'
  deed revoke run_01j4k8j7dx7v000000000000ab --why 'it does not do what it was told'
  deed revoke token:billing-agent --why 'it has left the company'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := revocation(args[0], why)
			if err != nil {
				return err
			}
			return a.atDeskOrRefused(cmd.Context(), func(ctx context.Context, d desk) error {
				done, err := d.Revoke(ctx, asked)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(done)
				}
				for _, id := range done.Rejected {
					fmt.Fprintf(a.out, "%s  rejected: nothing was sent\n", id)
				}
				for _, id := range done.Sent {
					fmt.Fprintf(a.out, "%s  SENT ALREADY: it goes on, its outcome is recorded, and it is not sent again\n", id)
				}
				fmt.Fprintf(a.out, "%s  %d rejected, %d sent already, %d over before\n", done.ID, len(done.Rejected), len(done.Sent), done.Settled)
				return nil
			})
		},
	}
	c.Flags().StringVar(&why, "why", "", "why; kept in the journal")
	return c
}

// revocation reads what was named.
func revocation(what, why string) (operator.Revoke, error) {
	if strings.TrimSpace(why) == "" {
		return operator.Revoke{}, &exitError{exitUsage, errors.New("say why, with --why TEXT. Nothing was changed")}
	}
	switch {
	case action.ValidID(action.Prefix, what):
		return operator.Revoke{Action: action.ID(what), Why: why}, nil
	case action.ValidID(action.IntentPrefix, what):
		return operator.Revoke{Intent: action.IntentID(what), Why: why}, nil
	case action.ValidID(action.RunPrefix, what):
		return operator.Revoke{Run: action.RunID(what), Why: why}, nil
	case strings.Contains(what, ":"):
		return operator.Revoke{Actor: what, Why: why}, nil
	}
	return operator.Revoke{}, &exitError{exitUsage, fmt.Errorf("%q is no action, intent or run, and no actor as records show it, such as token:NAME. Nothing was changed", what)}
}
