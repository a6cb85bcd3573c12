package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/receiptpage"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
)

func (a *app) auditReceiptCommand() *cobra.Command {
	var out string
	var page bool
	c := &cobra.Command{
		Use:   "receipt ACTION",
		Short: "Make the receipt of one action, for a third party",
		Long: `Print the receipt of an action as it stands: its events, and the proof that they are in the journal whose head the
log has signed. Whoever has the log's public key verifies it with deed audit verify-receipt and needs neither the
journal nor a network. With --html it is one page that verifies itself when it is opened in a browser.

A receipt shows targets, times and outcomes of this one action, and neither arguments nor answers.`,
		Example: `  deed audit receipt act_01j4k8j7dx7v000000000000ab -o charge.receipt
  deed audit receipt act_01j4k8j7dx7v000000000000ab --html -o charge.html`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeActions(store.Query{}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !action.ValidID(action.Prefix, args[0]) {
				return &exitError{exitUsage, fmt.Errorf("%q is no action's identifier; `deed actions` lists them", args[0])}
			}
			return a.withJournal(cmd.Context(), func(ctx context.Context, _ *sqlite.Reader, s signing) error {
				text, err := s.Receipt(ctx, action.ID(args[0]))
				if errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("there is no action %s on this record", args[0])
				}
				if err == nil && page {
					text, err = receiptHTML(ctx, s, text)
				}
				if err != nil {
					return err
				}
				return a.handOut(out, text)
			})
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "file to write, which must not exist (default: standard output)")
	c.Flags().BoolVar(&page, "html", false, "make a page that verifies itself in a browser")
	return c
}

// receiptHTML puts a page around a receipt that believes the keys of this log. Whoever is given it compares them.
func receiptHTML(ctx context.Context, s signing, receipt []byte) ([]byte, error) {
	keys, err := s.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var policy, html bytes.Buffer
	for _, k := range keys {
		fmt.Fprintf(&policy, "log %s\n", k.Key)
	}
	policy.WriteString("quorum none\n")
	err = receiptpage.Write(&html, receipt, policy.Bytes())
	return html.Bytes(), err
}

// handOut writes to standard output, or to a new file for its owner alone.
func (a *app) handOut(path string, text []byte) error {
	if path == "" || path == "-" {
		_, err := a.out.Write(text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists; nothing was written, since it may be evidence: give another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
