package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/identity"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

// desk is where an operator decides: at the door of the gateway that runs, or of one inside this process.
type desk interface {
	Show(ctx context.Context, id action.ID) (operator.Case, error)
	Decide(ctx context.Context, id action.ID, asked operator.Decision) (action.Status, error)
	Undo(ctx context.Context, id action.ID) (action.Status, error)
	Content(ctx context.Context, id action.ID, asked operator.Reading) (operator.Content, error)
	RotateContentKey(ctx context.Context) (operator.ContentKey, error)
	Request(ctx context.Context, id string) (operator.Request, error)
	Approve(ctx context.Context, id action.DecisionID, said operator.ApprovalDecision) (action.Status, error)
	Revoke(ctx context.Context, asked operator.Revoke) (operator.Revoked, error)
}

// atDesk uses the gateway that runs, or else one inside this process.
func (a *app) atDesk(ctx context.Context, use func(context.Context, desk) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if running(cfg.Operator) {
		return use(ctx, operator.NewClient(cfg.Operator))
	}
	err = a.inProcess(ctx, cfg, func(ctx context.Context, l *line, peer *identity.Peer) error {
		return use(ctx, operator.Desk{Server: l.operator, By: peer.Actor()})
	})
	if !errors.Is(err, store.ErrLocked) {
		return err
	}
	// Somebody was faster. A gateway that is starting opens its door in a moment.
	for range 50 {
		if running(cfg.Operator) {
			return use(ctx, operator.NewClient(cfg.Operator))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// decide does one thing at the operator's desk, shows what came of it and ends with the code that it means.
func (a *app) decide(ctx context.Context, do func(context.Context, desk) (action.Status, int, error)) error {
	var s action.Status
	var code int
	err := a.atDesk(ctx, func(ctx context.Context, d desk) (err error) {
		s, code, err = do(ctx, d)
		return err
	})
	var refused *action.Error
	var known *exitError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return &exitError{exitCode(refused.Code), errors.New(string(refused.Code) + ": " + refused.Message)}
	case errors.Is(err, operator.ErrLost):
		return &exitError{exitUnknown, err}
	case err != nil:
		return explain(err)
	case a.json:
		err = a.printJSON(s)
	default:
		_, err = fmt.Fprintf(a.out, "%s  %s\n%s\n", s.ActionID, s.Shown, s.Message)
	}
	if err == nil && code != exitOK {
		return &exitError{code: code}
	}
	return err
}

// completeActions offers the actions that fit a query.
func (a *app) completeActions(q store.Query) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = a.withRecords(cmd.Context(), func(ctx context.Context, r store.Reader) error {
			found, err := r.Actions(ctx, q)
			for _, act := range found {
				if !act.Abandoned {
					names = append(names, string(act.ID)+"\t"+act.Tool+" "+act.Method+" "+act.Target.Host)
				}
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
