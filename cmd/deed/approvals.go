package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/graph"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

func (a *app) approvalsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "approvals",
		Short: "List what waits for a person to approve or deny",
		Long: `List what waits for a person to approve or deny, what ends first coming first. It reads the records directly,
whether a gateway runs or not. deed approve and deed deny decide; docs/approvals.md tells what a decision is bound to.`,
		Example: `  deed approvals
  deed approvals watch
  deed approvals show act_01j4k8j7dx7v000000000000ab --all
  deed approvals verify journal.events --policy approvers.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookingOnly(cmd.Context(), func(ctx context.Context, s *operator.Server) error {
				all, err := s.Pending(ctx)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(all)
				case len(all) == 0:
					fmt.Fprintln(a.err, "Nothing waits for a person to approve.")
					return nil
				default:
					return operator.PrintRequests(a.out, all, time.Now())
				}
			})
		},
	}
	c.AddCommand(a.approvalsShow(), a.approvalsWatch(), a.approvalsVerify())
	return c
}

func (a *app) approvalsShow() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "show ACTION|REQUEST", Short: "Show one request with the whole operation that is asked about", Args: cobra.ExactArgs(1),
		Long: `Show one request with the whole operation that is asked about, after checking that it is what the request is bound
to. Text that an agent chose is shown with control characters and marks of direction spelled out. Of a body longer than
4 KiB the beginning is shown, and how much is missing, unless --all is given.`,
		Example: "  deed approvals show act_01j4k8j7dx7v000000000000ab\n  deed approvals show apr_01j4k8j7dx7v000000000000ab --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atDeskOrRefused(cmd.Context(), func(ctx context.Context, d desk) error {
				r, op, err := requestAt(ctx, d, args[0])
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(r)
				default:
					return r.Print(a.out, op, all)
				}
			})
		},
		ValidArgsFunction: a.completeActions(store.Query{States: []action.State{action.AwaitingApproval}}),
	}
	c.Flags().BoolVar(&all, "all", false, "show the whole body, however long")
	return c
}

func (a *app) approvalsWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Print each request when it comes, until it is stopped", Args: cobra.NoArgs,
		Long: `Print each request when it comes, those that are open already first, until it is stopped (Ctrl-C). With --json each is
one line, for a program that tells somebody.`,
		Example: "  deed approvals watch\n  deed approvals watch --json | while read -r line; do notify \"$line\"; done",
		RunE: func(cmd *cobra.Command, _ []string) error {
			seen := map[action.DecisionID]bool{}
			for {
				err := a.lookingOnly(cmd.Context(), func(ctx context.Context, s *operator.Server) error { return a.printNew(ctx, s, seen) })
				if err != nil && cmd.Context().Err() == nil {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		},
	}
}

// printNew prints the requests that were not printed yet.
func (a *app) printNew(ctx context.Context, s *operator.Server, seen map[action.DecisionID]bool) error {
	all, err := s.Pending(ctx)
	if err != nil {
		return err
	}
	var fresh []operator.Request
	for _, r := range all {
		if !seen[r.ApprovalID] {
			seen[r.ApprovalID] = true
			fresh = append(fresh, r)
		}
	}
	if a.json {
		for _, r := range fresh {
			if err := json.NewEncoder(a.out).Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range fresh {
		fmt.Fprintf(a.out, "%s  %s  %s  %s  asked by %s, until %s\n", r.ApprovalID, r.ActionID, r.Tool, r.Target, r.Actor, r.Expires)
	}
	return nil
}

// atDeskOrRefused uses the desk, and gives what the gateway refuses as a refusal.
func (a *app) atDeskOrRefused(ctx context.Context, use func(context.Context, desk) error) error {
	err := a.atDesk(ctx, use)
	var refused *action.Error
	var known *exitError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &refused):
		return &exitError{exitCode(refused.Code), errors.New(string(refused.Code) + ": " + refused.Message)}
	case errors.Is(err, operator.ErrLost):
		return &exitError{exitUnknown, err}
	}
	return explain(err)
}

func (a *app) approvalsVerify() *cobra.Command {
	var policyFile string
	c := &cobra.Command{
		Use: "verify FILE", Short: "Check every approver's signature in an exported journal, offline", Args: cobra.ExactArgs(1),
		Long: `Check, with nothing but an exported journal and the policy that names the approvers, that every decision in it was
signed by whom it names, about exactly what it names and in time, and that whatever was sent on a person's approval was
sent on one that allowed it. The journal's chain is checked first. It ends with 1 when something does not hold.

A signature made with a key file shows that somebody had the file and its passphrase, and no more.`,
		Example: "  deed approvals verify journal.events --policy approvers.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := os.ReadFile(policyFile)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			policy, err := approval.ParsePolicy(text)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return a.verifyApprovals(args[0], policy)
		},
	}
	c.Flags().StringVar(&policyFile, "policy", "", "the file that names the approvers")
	_ = c.MarkFlagRequired("policy")
	return c
}

func (a *app) verifyApprovals(path string, policy *approval.Policy) error {
	file, err := os.Open(path)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer file.Close()
	found, err := journal.Verify(file)
	if err != nil {
		return err
	}
	if found.Bad != nil {
		return damaged(found.Bad)
	}
	report, err := graph.Approvals(graph.Export(file, int64(found.FirstSequence)), policy)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		a.printVerified(report)
	}
	if err == nil && len(report.Problems) > 0 {
		return &exitError{code: exitFailed}
	}
	return err
}

func (a *app) printVerified(r graph.ApprovalsReport) {
	for _, d := range r.Decisions {
		strength := string(d.Strength)
		if strength == "" {
			strength = "DOES NOT COUNT"
		}
		fmt.Fprintf(a.out, "%d  %s  %s  %s by %s at %s (%s)\n", d.Seq, d.Approval, d.Action, d.Decision, d.Approver, d.At, strength)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "record %d: %s\n", p.Seq, p.What)
	}
	fmt.Fprintf(a.out, "records %d to %d: %d decisions, %d sends on an approval, %d problems\n", r.First, r.Last, len(r.Decisions), r.Sent, len(r.Problems))
}
