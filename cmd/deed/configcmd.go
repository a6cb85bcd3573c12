package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Show every setting and where it came from", Args: cobra.NoArgs,
		Example: "  deed config\n  deed config --data ./state",
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.config()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, cfg.Describe())
			return err
		},
	}
}
