package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/identity"
)

func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make and revoke tokens for agents that connect over HTTP",
		Long: `A token is how an agent proves who it is over HTTP. Only its digest is stored. A token may be shared by several
agents unless it is made with --sole: without it, an equal call without an identity of its own is held back
instead of being given an answer that may belong to another agent.`,
		Example: "  deed token create billing-agent --sole\n  deed token list\n  deed token revoke billing-agent",
	}
	c.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return c
}

func (a *app) tokens() (*identity.Tokens, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return identity.OpenTokens(cfg.TokensFile())
}

func (a *app) tokenCreate() *cobra.Command {
	var sole bool
	var life time.Duration
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token and print it, once", Args: cobra.ExactArgs(1),
		Example: "  deed token create billing-agent --sole --expires 720h",
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := a.tokens()
			if err != nil {
				return explain(err)
			}
			token, err := tokens.Create(args[0], identity.TokenOptions{Sole: sole, Lifetime: life}, time.Now())
			if err != nil {
				return explain(err)
			}
			if a.json {
				return a.printJSON(map[string]any{"name": args[0], "token": token, "sole": sole})
			}
			fmt.Fprintln(a.err, "Keep it safe: it is not stored and cannot be shown again.")
			fmt.Fprintln(a.out, token)
			return nil
		},
	}
	c.Flags().BoolVar(&sole, "sole", false, "exactly one agent holds this token, so an equal call is its own retry")
	c.Flags().DurationVar(&life, "expires", 0, "how long it is good for; 0 means until it is revoked")
	return c
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens, without their values", Args: cobra.NoArgs, Example: "  deed token list --json",
		RunE: func(*cobra.Command, []string) error {
			tokens, err := a.tokens()
			if err != nil {
				return explain(err)
			}
			all, err := tokens.List()
			if err != nil {
				return explain(err)
			}
			if a.json {
				return a.printJSON(all)
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tHELD BY\tCREATED\tEXPIRES")
			for _, t := range all {
				held, expires := "several", "never"
				if t.Sole {
					held = "one agent"
				}
				if !t.Expires.IsZero() {
					expires = t.Expires.Format(time.DateTime)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, held, t.Created.Format(time.DateTime), expires)
			}
			return w.Flush()
		},
	}
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Make a token worthless at once", Args: cobra.ExactArgs(1), Example: "  deed token revoke billing-agent",
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := a.tokens()
			if err != nil {
				return explain(err)
			}
			return explain(tokens.Revoke(args[0], time.Now()))
		},
	}
}
