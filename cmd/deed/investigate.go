package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/graph"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

func (a *app) investigateCommand() *cobra.Command {
	var export string
	c := &cobra.Command{
		Use:   "investigate ACTION [ACTION]",
		Short: "Answer what happened: one effect or two, retry or second intent",
		Long: `Answer, from the journal alone and with the events that say so, the five questions of an investigation:
one process or two; did the first get authorization and reach dispatch; did the gateway get a response;
did delivery fail after completion; did the second reuse the execution id or key, or make a new attempt.
Then what follows, and what the journal leaves open. With one ACTION, the second is what later calls did.

It reads the records directly, checks their hash chain on the way, and changes nothing, whether a gateway
runs or not. With --journal it reads an export (journal.events) and needs nothing else.`,
		Example: `  deed investigate act_01j4k8j7dx7v000000000000ab
  deed investigate act_01j4k8j7dx7v000000000000ab act_01j4k8j7dx7v000000000000cd
  deed investigate --journal journal.events --json act_01j4k8j7dx7v000000000000ab`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := actionIDs(args)
			if err != nil {
				return err
			}
			if export != "" {
				return a.investigateExport(export, ids)
			}
			return a.withRecords(cmd.Context(), func(ctx context.Context, r store.Reader) error {
				return a.investigate(stored(ctx, r), ids)
			})
		},
	}
	c.Flags().StringVar(&export, "journal", "", "read this exported journal, not the data directory")
	return c
}

func actionIDs(args []string) ([]action.ID, error) {
	ids := make([]action.ID, len(args))
	for i, arg := range args {
		if !action.ValidID(action.Prefix, arg) {
			return nil, &exitError{exitUsage, fmt.Errorf("%q is no action's identifier; `deed actions` lists them", arg)}
		}
		ids[i] = action.ID(arg)
	}
	if len(ids) == 2 && ids[0] == ids[1] {
		return nil, &exitError{exitUsage, errors.New("both are the same action; ask about it alone, and the calls that came later are told too")}
	}
	return ids, nil
}

func (a *app) investigate(records graph.Source, ids []action.ID) error {
	j, err := graph.Read(records, ids...)
	if err != nil {
		return err
	}
	var second action.ID
	if len(ids) == 2 {
		second = ids[1]
	}
	report, err := j.Investigate(ids[0], second)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	return report.Print(a.out)
}

// stored reads the records of a data directory and checks their chain as it goes.
func stored(ctx context.Context, r store.Reader) graph.Source {
	return func(each func(int64, []byte) error) error {
		var chain journal.Verifier
		return r.Records(ctx, 0, func(seq int64, hash [32]byte, body []byte) error {
			if err := chain.Add(hash, body); err != nil {
				return damaged(err)
			}
			return each(seq, body)
		})
	}
}

// investigateExport reads a file that somebody handed over. It is verified as a whole before anything is said of it.
func (a *app) investigateExport(path string, ids []action.ID) error {
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
	return a.investigate(graph.Export(file, int64(found.FirstSequence)), ids)
}

// damaged says that nothing is concluded from a journal that was changed, cut or mixed up.
func damaged(err error) error {
	return fmt.Errorf("the journal is damaged, so nothing is concluded from it: %w", err)
}
