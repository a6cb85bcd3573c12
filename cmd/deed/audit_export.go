package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/store/sqlite"
)

func (a *app) auditExportCommand() *cobra.Command {
	var from, to int64
	var archive string
	c := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Export the journal, byte for byte",
		Long: `Write the journal, or a part of it, exactly as it is stored: one record a line. FILE is journal.events when none is
given, and - is standard output. A signed checkpoint of the end is put beside it (FILE.checkpoint). Files are
readable by their owner alone, and an existing file is never replaced. Exporting twice gives the same bytes.

With --archive DIR the records that DIR does not have yet become its next segment, with a checkpoint of its own: call
it from time to time. Old segments may be removed, oldest first, and the rest still verifies.`,
		Example: `  deed audit export
  deed audit export --from 91001 --to 92842 may.events
  deed audit export --archive /var/lib/deed-archive
  deed audit export - | sha256sum`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "journal.events"
			if len(args) > 0 {
				path = args[0]
			}
			switch {
			case archive != "" && (len(args) > 0 || cmd.Flags().Changed("from") || cmd.Flags().Changed("to")):
				return &exitError{exitUsage, errors.New("--archive goes on where the archive ends: give no file and no --from or --to")}
			case from < 0 || to < -1:
				return &exitError{exitUsage, errors.New("--from and --to take the number of a record, from 0")}
			}
			span := audit.Span{From: uint64(from), End: uint64(to + 1)}
			return a.withJournal(cmd.Context(), func(ctx context.Context, r *sqlite.Reader, s signing) error {
				if archive != "" {
					return a.exportSegment(ctx, r, s, archive)
				}
				return a.exportFile(ctx, r, s, path, span)
			})
		},
	}
	c.Flags().Int64Var(&from, "from", 0, "number of the first record")
	c.Flags().Int64Var(&to, "to", -1, "number of the last record (-1: the newest)")
	c.Flags().StringVar(&archive, "archive", "", "directory that gets the records which it does not have yet, as its next segment")
	_ = c.MarkFlagDirname("archive")
	return c
}

func (a *app) exportFile(ctx context.Context, r *sqlite.Reader, s signing, path string, span audit.Span) error {
	if path == "-" {
		done, err := audit.Export(ctx, r, a.out, span)
		return errors.Join(err, damagedExport(done))
	}
	done, err := audit.WriteFile(ctx, r, s.Checkpoint, path, span)
	if err != nil {
		return err
	}
	return a.exported(done, path)
}

func (a *app) exportSegment(ctx context.Context, r *sqlite.Reader, s signing, dir string) error {
	done, path, err := audit.Continue(ctx, r, s.Checkpoint, dir)
	if errors.Is(err, audit.ErrNothingNew) {
		if a.json {
			return a.printJSON(exportedView{Origin: done.Origin, Records: 0})
		}
		fmt.Fprintf(a.err, "%s has all %d records already\n", dir, done.End)
		return nil
	}
	if err != nil {
		return err
	}
	return a.exported(done, path)
}

type exportedView struct {
	File       string  `json:"file,omitempty"`
	Checkpoint string  `json:"checkpoint,omitempty"`
	Origin     string  `json:"origin"`
	First      *uint64 `json:"first_sequence,omitempty"`
	Last       *uint64 `json:"last_sequence,omitempty"`
	Records    uint64  `json:"records"`
}

func (a *app) exported(done audit.Exported, path string) error {
	last := done.End - 1
	if a.json {
		v := exportedView{path, path + audit.CheckpointSuffix, done.Origin, &done.From, &last, done.End - done.From}
		return errors.Join(a.printJSON(v), damagedExport(done))
	}
	fmt.Fprintf(a.err, "records %d to %d of %s are in %s, and a checkpoint of them beside it\n", done.From, last, done.Origin, path)
	return damagedExport(done)
}

// damagedExport says that what was exported is damaged where it is stored.
func damagedExport(done audit.Exported) error {
	if done.Bad == nil {
		return nil
	}
	return fmt.Errorf("the journal is damaged where it is stored: %w\nIt was exported as it is, and nothing was repaired", done.Bad)
}
