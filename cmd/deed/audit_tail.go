package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/journal"
)

func (a *app) auditTailCommand() *cobra.Command {
	var lines uint64
	var follow, raw bool
	c := &cobra.Command{
		Use:   "tail",
		Short: "Show the newest records of the journal, and wait for more",
		Long: `Show the newest records, one a line, and with -f those that are written from now on, until it is stopped. The chain
is checked on the way. --raw prints the lines as an export has them, --json the bodies.`,
		Example: "  deed audit tail -n 20\n  deed audit tail -f --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.tail(cmd.Context(), lines, follow, raw)
		},
	}
	c.Flags().Uint64VarP(&lines, "lines", "n", 10, "how many records to begin with")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more")
	c.Flags().BoolVar(&raw, "raw", false, "print the lines of an export")
	return c
}

// newRecords is how often the database is asked for new records. A committed record has been there for half of it, on average.
const newRecords = 200 * time.Millisecond

func (a *app) tail(ctx context.Context, lines uint64, follow, raw bool) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	r, err := sqlite.OpenReader(ctx, cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing is on record in %s yet; a gateway begins the record when it starts (`deed serve`)", cfg.DataDir)
	}
	if err != nil {
		return explain(err)
	}
	defer r.Close()
	last, _, err := r.Head(ctx)
	if err != nil {
		return err
	}
	next := max(0, last+1-int64(min(lines, uint64(last+1))))
	var chain *journal.Verifier // begins after the first record, which names the one before it
	print := func(seq int64, hash [32]byte, body []byte) error {
		if chain == nil {
			if err := journal.CheckProfile(body); err != nil || journal.LeafHash(body) != hash {
				return damaged(fmt.Errorf("record %d", seq))
			}
			if chain, err = journal.NewVerifierAt(uint64(seq)+1, hash, nil); err != nil {
				return err
			}
		} else if err := chain.Add(hash, body); err != nil {
			return damaged(err)
		}
		next = seq + 1
		return a.printRecord(hash, body, raw)
	}
	ticks := time.NewTicker(newRecords)
	defer ticks.Stop()
	for {
		if err := r.Records(ctx, next, print); err != nil && ctx.Err() == nil {
			return err
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

func (a *app) printRecord(hash journal.Hash, body []byte, raw bool) error {
	switch {
	case raw:
		_, err := a.out.Write(journal.AppendLine(nil, journal.Record{Hash: hash, Body: body}))
		return err
	case a.json:
		_, err := fmt.Fprintf(a.out, "%s\n", body)
		return err
	}
	line, err := eventLine(body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, line)
	return err
}
