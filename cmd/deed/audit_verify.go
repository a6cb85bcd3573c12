package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/journal"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var t trust
	var kept []string
	var whole, explain bool
	c := &cobra.Command{
		Use:   "verify FILE|DIR",
		Short: "Verify an exported journal, offline",
		Long: `Verify an export: a file, or the segments in a directory. It reads the file, the checkpoint beside it
(FILE.checkpoint) and what you hand in, and nothing else; it changes nothing and repairs nothing.

The chain and the signature are judged apart. "signature: valid" says that the newest checkpoint is the log's and
covers the file. Whether an outsider has seen it is said only when you hand in a checkpoint that was kept elsewhere
(--checkpoint) or a policy that asks for witnesses (--policy). --explain says what was proved and what was not.

The public key has to come from outside the file: --key, --policy, or, on the gateway's own machine, its key directory.

` + auditCodes,
		Example: `  deed audit verify journal.events --key log.pub
  deed audit verify journal.events --policy trusted.policy --checkpoint kept-in-may.checkpoint --explain
  deed audit verify archive/ --key log.pub --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.auditVerify(args[0], t, kept, whole, explain)
		},
	}
	t.flags(c)
	c.Flags().StringArrayVar(&kept, "checkpoint", nil, "signed checkpoint that was kept elsewhere, of any age; may be repeated")
	c.Flags().BoolVar(&whole, "whole", false, "ask for the journal from record 0 on: old segments that were removed are then a finding")
	c.Flags().BoolVar(&explain, "explain", false, "also say in words what was proved and what was not")
	_ = c.MarkFlagFilename("checkpoint", "checkpoint")
	return c
}

func (a *app) auditVerify(path string, t trust, kept []string, whole, explain bool) error {
	demand := audit.Demand{Whole: whole}
	policy, err := a.policyFor(t, audit.OriginBeside(path))
	if err != nil {
		return &exitError{journal.ExitUnreadable, err}
	}
	demand.Policy = policy
	for _, name := range kept {
		text, err := os.ReadFile(name)
		if err != nil {
			return &exitError{journal.ExitUnreadable, err}
		}
		demand.Kept = append(demand.Kept, text)
	}
	bar := a.newBar("verifying")
	if bar != nil {
		demand.Progress = bar.show
	}
	report, readErr := audit.Verify(path, demand)
	bar.clear()
	switch {
	case a.json:
		err = a.printJSON(audit.ReportOf(report))
	case readErr == nil || report.RecordsChecked > 0:
		_, err = fmt.Fprint(a.out, report.Text())
		if explain && err == nil {
			_, err = fmt.Fprint(a.out, "\n", report.Explain())
		}
	}
	if policy == nil && report.Signature.Kind == journal.NotChecked && readErr == nil {
		fmt.Fprintln(a.err, "deed: no signature was checked, since no public key was given: hand in --key log.pub or --policy")
	}
	if code := report.ExitCode(); code != exitOK {
		return errors.Join(err, &exitError{code, readErr})
	}
	return err
}
