// Command bench measures deed beside raw limits in the same run and prints ratios, which survive a change of machine
// better than times do.
//
// Each row is the median of several runs, and rows that are compared run in turn. There are two targets, each a process of
// its own: one that answers at once and keeps no ledger, so that the figures are deed's and not the target's, and the
// provider of the demo, which syncs its ledger before each answer.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// settings of one bench.
type settings struct {
	runs     int
	duration time.Duration
	stored   int
	open     int
	events   int
	only     string
}

func main() {
	serve := flag.Bool("target", false, "be the target (used by the bench itself)")
	ledger := flag.String("ledger", "", "be the provider with this ledger (used by the bench itself)")
	var s settings
	flag.IntVar(&s.runs, "runs", 5, "runs per row; the median is printed")
	flag.DurationVar(&s.duration, "duration", time.Second, "length of one run")
	flag.IntVar(&s.stored, "stored", 100_000, "actions on record for the attach row")
	flag.IntVar(&s.open, "unresolved", 100_000, "unknown actions on record for the restart row")
	flag.IntVar(&s.events, "events", 1_000_000, "events of the journal that is verified")
	flag.StringVar(&s.only, "only", "", "journal: the rows of the journal and no others")
	flag.Parse()
	switch {
	case *ledger != "":
		serveProvider(*ledger)
		return
	case *serve:
		serveTarget()
		return
	}
	if err := bench(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// benchJournal prints what concerns the journal alone.
func benchJournal(ctx context.Context, s settings) error {
	sync, err := fsyncProbe(s)
	if err != nil {
		return err
	}
	figures, err := measureJournal(ctx, s)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "RATIO\tMEASURED\tBUDGET\n")
	figures.rows(w, sync)
	return w.Flush()
}

func bench(ctx context.Context, s settings) error {
	if s.only == "journal" {
		return benchJournal(ctx, s)
	}
	t, err := startTarget(ctx, "-target")
	if err != nil {
		return err
	}
	defer t.stop()
	dir, err := os.MkdirTemp("", "deed-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := startTarget(ctx, "-ledger", filepath.Join(dir, "ledger"))
	if err != nil {
		return err
	}
	defer p.stop()
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "WHAT\tAGENTS\tRATE/S\tP50\tP95\tP99\tCPU/CALL\n")
	rows := map[string]measured{}
	print := func(name string, agents int, m measured) {
		rows[fmt.Sprint(name, " ", agents)] = m
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%s\t%s\t%s\t%s\n", name, agents, m.rate, m.p50, m.p95, m.p99, m.cpu)
	}
	sync, err := fsyncProbe(s)
	if err != nil {
		return err
	}
	print("raw append and fsync", 1, sync)
	for _, agents := range []int{1, 8, 64} {
		found, err := compare(ctx, s, t, p, agents)
		if err != nil {
			return err
		}
		for _, name := range []string{"direct", "deed", "deed, no sync", "deed, no group", "provider, direct", "provider, through deed"} {
			print(name, agents, found[name])
		}
	}
	for _, agents := range []int{1, 8} {
		found, err := compareMCP(ctx, s, t, agents)
		if err != nil {
			return err
		}
		print("bare SDK echo over MCP", agents, found["echo"])
		print("deed over MCP", agents, found["deed"])
	}
	attach, err := compareAttach(ctx, s, t)
	if err != nil {
		return err
	}
	print("attach, 1,000 stored", 1, attach["few"])
	print(fmt.Sprintf("attach, %d stored", s.stored), 1, attach["many"])
	restart, err := compareRestart(ctx, s, t, 8)
	if err != nil {
		return err
	}
	print("live calls after a restart, none unresolved", 8, restart["none"])
	print(fmt.Sprintf("live calls after a restart, %d unresolved", s.open), 8, restart["many"])
	figures, err := measureJournal(ctx, s)
	if err != nil {
		return err
	}
	print("one record a commit", 1, figures.alone)
	print("one record a commit", 64, figures.many)
	fmt.Fprintln(w)
	verdicts(w, rows, s)
	figures.rows(w, sync)
	return nil
}

// verdicts prints the ratios that the budgets are about.
func verdicts(w *tabwriter.Writer, rows map[string]measured, s settings) {
	fmt.Fprintf(w, "RATIO\tMEASURED\tBUDGET\n")
	row := func(what, got, budget string) { fmt.Fprintf(w, "%s\t%s\t%s\n", what, got, budget) }
	added := rows["deed 1"].p50 - rows["direct 1"].p50
	allowed := 2*rows["raw append and fsync 1"].p50 + 500*time.Microsecond
	row("latency added for one agent ÷ (2 raw syncs + 0.5 ms)", ratio(float64(added), float64(allowed)), "≤ 1")
	row("64 agents ÷ the same without sync", ratio(rows["deed 64"].rate, rows["deed, no sync 64"].rate), "≥ 0.70")
	row("64 agents ÷ the same without group commit", ratio(rows["deed 64"].rate, rows["deed, no group 64"].rate), "≥ 4")
	for _, agents := range []int{1, 8, 64} {
		row(fmt.Sprintf("provider through deed ÷ provider direct, %d agents", agents),
			ratio(rows[fmt.Sprint("provider, through deed ", agents)].rate, rows[fmt.Sprint("provider, direct ", agents)].rate), "–")
	}
	for _, agents := range []int{1, 8} {
		more := rows[fmt.Sprint("deed over MCP ", agents)].cpu - rows[fmt.Sprint("bare SDK echo over MCP ", agents)].cpu
		row(fmt.Sprintf("CPU per call beyond the bare SDK, %d agents", agents), more.Round(time.Microsecond).String(), "≤ 0.5 ms")
	}
	row(fmt.Sprintf("attach with %d actions ÷ with 1,000", s.stored),
		ratio(float64(rows[fmt.Sprintf("attach, %d stored 1", s.stored)].p50), float64(rows["attach, 1,000 stored 1"].p50)), "≤ 1.5")
	row(fmt.Sprintf("p95 of live calls at a restart with %d unresolved ÷ with none", s.open),
		ratio(float64(rows[fmt.Sprintf("live calls after a restart, %d unresolved 8", s.open)].p95),
			float64(rows["live calls after a restart, none unresolved 8"].p95)), "≤ 2")
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", a/b)
}
