package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/telemetry"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether a gateway runs, and what is unresolved",
		Long: `Show whether a gateway runs, where its journal ends, and what is unresolved: actions that are open, unknown ones
that wait for evidence or for a person, the oldest of them, and whether the credentials are locked. When no
gateway runs, the records are read directly.`,
		Example: "  deed status\n  deed status --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return explain(a.status(cmd.Context())) },
	}
}

func (a *app) status(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var s operator.Status
	if running(cfg.Operator) {
		if s, err = operator.NewClient(cfg.Operator).Status(ctx); err != nil {
			return err
		}
	} else if err = a.withRecords(ctx, func(ctx context.Context, r store.Reader) (err error) {
		s, err = recorded(ctx, r, time.Now())
		return err
	}); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	a.printStatus(s)
	return nil
}

// status is what the running gateway says of itself.
func (l *line) status(ctx context.Context) (operator.Status, error) {
	s, err := recorded(ctx, l.store, time.Now())
	locked := l.vault.Locked()
	s.Running, s.VaultLocked = true, &locked
	s.Version, s.PID, s.Started, s.Uptime = version(), os.Getpid(), stamp(l.started), int64(time.Since(l.started)/time.Second)
	return s, err
}

// figures are the same for the metrics.
func (l *line) figures(ctx context.Context) (telemetry.Figures, error) {
	s, err := l.status(ctx)
	b := s.Backlog
	return telemetry.Figures{
		Reconciling: b.Reconciling, ReviewRequired: b.ReviewRequired, Delegated: b.Delegated, Overdue: b.Overdue,
		OldestUnknown: time.Duration(b.OldestAge) * time.Second, VaultLocked: l.vault.Locked(), Records: s.Records,
	}, err
}

// recorded is what the records say, whether a gateway runs or not.
func recorded(ctx context.Context, r store.Reader, now time.Time) (operator.Status, error) {
	var s operator.Status
	left, err := r.Backlog(ctx)
	if err != nil {
		return s, err
	}
	overdue, err := r.Overdue(ctx, now)
	if err != nil {
		return s, err
	}
	open, err := r.Open(ctx)
	if err != nil {
		return s, err
	}
	seq, hash, err := r.Head(ctx)
	if err != nil {
		return s, err
	}
	s.Head, s.Records, s.Open = action.Place{Seq: seq, Hash: hash}, seq+1, open
	s.Backlog = operator.Backlog{
		Reconciling: left.Reconciling, ReviewRequired: left.Review, Overdue: overdue, Abandoned: left.Abandoned, Delegated: left.Delegated,
		Oldest: left.OldestOf, OldestSince: stamp(left.Oldest),
	}
	if !left.Oldest.IsZero() {
		s.Backlog.OldestAge = max(0, int64(now.Sub(left.Oldest)/time.Second))
	}
	return s, nil
}

func (a *app) printStatus(s operator.Status) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(a.out, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if s.Running {
		line("gateway", "running for %s, version %s, process %d", operator.Age(s.Uptime), s.Version, s.PID)
	} else {
		line("gateway", "none answers; this is what the records say")
	}
	switch {
	case s.VaultLocked == nil:
		line("vault", "not known: only a running gateway can say")
	case *s.VaultLocked:
		line("vault", "LOCKED: nothing that needs a credential is sent; `deed vault unlock` opens it")
	default:
		line("vault", "open")
	}
	if s.Records == 0 {
		line("journal", "empty")
	} else {
		line("journal", "%d records, the newest is %d %s", s.Records, s.Head.Seq, s.Head.Hash)
	}
	var open []string
	for _, state := range action.States {
		if n := s.Open[state]; n > 0 {
			open = append(open, fmt.Sprintf("%d %s", n, state))
		}
	}
	line("open", "%s", strings.Join(slices.Concat(open, none(open)), ", "))
	b := s.Backlog
	line("unknown", "%d reconciling (%d overdue), %d for a person, %d abandoned; %d delegated", b.Reconciling, b.Overdue, b.ReviewRequired, b.Abandoned, b.Delegated)
	if b.Oldest != "" {
		line("oldest", "%s, unknown for %s", b.Oldest, operator.Age(b.OldestAge))
	}
	if b.ReviewRequired+b.Overdue > 0 {
		fmt.Fprintln(a.err, "\nSee them with `deed review list`.")
	}
}

func none(list []string) []string {
	if len(list) == 0 {
		return []string{"nothing"}
	}
	return nil
}

// running reports whether somebody answers on a socket.
func running(socket string) bool {
	conn, err := dialSocket(socket)
	if err != nil {
		return errors.Is(err, os.ErrPermission) // somebody does, and not to us: say that, and do not read around it
	}
	_ = conn.Close()
	return true
}
