package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/journal"
)

func (a *app) auditVerifyReceiptCommand() *cobra.Command {
	var t trust
	c := &cobra.Command{
		Use:   "verify-receipt FILE",
		Short: "Verify the receipt of an action, offline",
		Long: `Verify a receipt with the public key of the log, and print the events that it proves. It needs neither the journal
nor a gateway nor a network. Exit code 0 means valid, 1 that it proves nothing, 2 that no public key was given, and
4 that the file could not be read.`,
		Example: "  deed audit verify-receipt charge.receipt --key log.pub\n  deed audit verify-receipt charge.receipt --policy trusted.policy --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.verifyReceipt(args[0], t) },
	}
	t.flags(c)
	return c
}

type receiptView struct {
	Receipt   string            `json:"receipt"` // valid, invalid or unchecked
	Problem   string            `json:"problem,omitempty"`
	Origin    string            `json:"origin,omitempty"`
	Size      uint64            `json:"checkpoint_size,omitempty"`
	Keys      []string          `json:"keys,omitempty"`
	Witnesses []string          `json:"witnesses,omitempty"`
	Events    []json.RawMessage `json:"events,omitempty"` // oldest first
}

const mostReceipt = 8 << 20

func (a *app) verifyReceipt(path string, t trust) error {
	text, err := readUpTo(path, mostReceipt)
	if err != nil {
		return &exitError{journal.ExitUnreadable, err}
	}
	policy, err := a.policyFor(t, audit.OriginOfReceipt(text))
	if err != nil {
		return &exitError{journal.ExitUnreadable, err}
	}
	if policy == nil {
		return a.shownReceipt(receiptView{Receipt: "unchecked"}, &exitError{journal.ExitUnproven,
			errors.New("no public key was given: hand in --key log.pub or --policy")})
	}
	found, err := journal.VerifyReceipt(text, policy)
	if err != nil {
		return a.shownReceipt(receiptView{Receipt: "invalid", Problem: err.Error()}, &exitError{code: journal.ExitDamaged})
	}
	v := receiptView{Receipt: "valid", Origin: found.Origin, Size: found.Checkpoint.Size}
	for _, key := range found.Checkpoint.Logs {
		v.Keys = append(v.Keys, key.String())
	}
	for _, w := range found.Checkpoint.Cosignatures {
		v.Witnesses = append(v.Witnesses, w.Witness)
	}
	for i := len(found.Bodies) - 1; i >= 0; i-- {
		v.Events = append(v.Events, found.Bodies[i])
	}
	return a.shownReceipt(v, nil)
}

func (a *app) shownReceipt(v receiptView, end error) error {
	if a.json {
		return errors.Join(a.printJSON(v), end)
	}
	fmt.Fprintf(a.out, "receipt: %s\n", v.Receipt)
	if v.Problem != "" {
		fmt.Fprintf(a.out, "problem: %s\n", v.Problem)
	}
	if v.Receipt != "valid" {
		return end
	}
	fmt.Fprintf(a.out, "journal: %s\ncheckpoint: of %d records\n", v.Origin, v.Size)
	for _, w := range v.Witnesses {
		fmt.Fprintf(a.out, "witness: %s\n", w)
	}
	for _, body := range v.Events {
		line, err := eventLine(body)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, line)
	}
	return end
}

// eventLine shows a record in one line, without what it says of content.
func eventLine(body []byte) (string, error) {
	var e struct {
		Seq    int64     `json:"seq"`
		Time   time.Time `json:"time"`
		Event  string    `json:"event"`
		Action string    `json:"action_id"`
		Place  *struct {
			Method string `json:"method"`
			Host   string `json:"host"`
			Path   string `json:"path_template"`
		} `json:"action"`
		Run string `json:"root_run_id"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return "", err
	}
	about := e.Action
	if about == "" {
		about = e.Run
	}
	line := fmt.Sprintf("%6d  %s  %-24s %s", e.Seq, stamp(e.Time), e.Event, about)
	if e.Place != nil && e.Place.Host != "" {
		line += fmt.Sprintf("  %s %s%s", e.Place.Method, e.Place.Host, e.Place.Path)
	}
	return line, nil
}

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, err
}
