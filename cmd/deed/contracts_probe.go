package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/executor/httpexec"
	"deed.dev/deed/internal/probe"
)

// exitOpen is how a probe ends that could not find out what it was made for.
const exitOpen = 2

// probeFlags are what a person says about a probe.
type probeFlags struct {
	arguments, changed, failing string
	against                     string
	ignore                      []string
	write, yes                  bool
}

func (a *app) contractsProbe() *cobra.Command {
	var f probeFlags
	c := &cobra.Command{
		Use:   "probe TOOL",
		Short: "Find out what a target does when a key comes again",
		Long: `Send a tool's request to a sandbox, then the same request with the same key, then a changed one with that key,
and hold the answers against what the contract says. With --failing, send a request that the target answers
with an error, twice, under another key. Nothing else is sent, and no request is repeated.

Each request may have an effect. The probe says what it will send and where, and asks; it is written to
probes.jsonl in the data directory before the first request.

Exit codes:
  0  the target does what the contract says
  1  it does something else, or the probe could not be made; the message says which
  2  it could not be found out, or the command line or a file of yours is wrong`,
		Example: `  deed contracts probe charge --against https://sandbox.example \
    --arguments '{"amount":100,"currency":"eur","customer":"cus_1"}' \
    --changed '{"amount":200,"currency":"eur","customer":"cus_1"}'
  deed contracts probe charge --arguments @a.json --changed @b.json --failing @bad.json --write
  deed contracts probe charge --arguments @a.json --changed @b.json --ignore /served_at --yes --json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(a.probe(cmd.Context(), args[0], f))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.arguments, "arguments", "", "arguments as JSON, or @FILE")
	flags.StringVar(&f.changed, "changed", "", "other arguments, which the target takes under a key of their own")
	flags.StringVar(&f.failing, "failing", "", "arguments that the target answers with an error, to see whether it stores errors")
	flags.StringVar(&f.against, "against", "", "scheme, host and port to probe in the place of the contract's own")
	flags.StringArrayVar(&f.ignore, "ignore", nil, "JSON pointer of a member of the answers that differs each time; repeatable")
	flags.BoolVar(&f.write, "write", false, "write what was found, with its date, behind the contract's evidence")
	flags.BoolVar(&f.yes, "yes", false, "do not ask before sending")
	_ = c.MarkFlagRequired("arguments")
	_ = c.MarkFlagRequired("changed")
	return c
}

func (a *app) probe(ctx context.Context, tool string, f probeFlags) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	c, p, err := a.planProbe(cfg, tool, f)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	credentials, roots, err := probeCredentials(cfg, c, p)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	var file *contractFile
	if f.write {
		if file, err = openContractFile(cfg, c); err != nil {
			return &exitError{exitUsage, fmt.Errorf("%w\nNothing was sent", err)}
		}
	}
	if err := a.confirmProbe(c, p, f.yes); err != nil {
		return err
	}
	executor := httpexec.New(httpexec.Options{Vault: credentials, RootCAs: roots, LateFor: -1})
	defer executor.Close()
	report, err := p.Run(ctx, executor, probesFile{cfg.DataDir})
	if len(report.Steps) == 0 {
		return err
	}
	if err = errors.Join(err, a.printProbe(report)); err != nil {
		return err
	}
	if report.Verdict == probe.Contradicts {
		return &exitError{code: exitFailed}
	}
	if report.Verdict != probe.Agrees {
		return &exitError{code: exitOpen}
	}
	if file != nil {
		return a.writeEvidence(cfg, file, report.Evidence())
	}
	return nil
}

// planProbe resolves the arguments and plans the requests.
func (a *app) planProbe(cfg config.Config, tool string, f probeFlags) (*contract.Contract, *probe.Probe, error) {
	set, err := loadContracts(cfg)
	if err != nil {
		return nil, nil, err
	}
	c, ok := set.Tool(tool)
	if !ok {
		return nil, nil, fmt.Errorf("there is no tool %q; `deed contracts check` lists those that there are", tool)
	}
	setup := probe.Setup{Contract: c, Ignore: f.ignore, Now: time.Now}
	if f.against != "" {
		if setup.Against, err = probe.ParseTarget(f.against); err != nil {
			return nil, nil, fmt.Errorf("--against: %w", err)
		}
	}
	for _, given := range []struct {
		text string
		to   *[]byte
	}{{f.arguments, &setup.First}, {f.changed, &setup.Changed}, {f.failing, &setup.Failing}} {
		if given.text == "" {
			continue
		}
		if given.text == "-" {
			return nil, nil, errors.New("arguments come as JSON or from @FILE; standard input is for the answer to the question")
		}
		if *given.to, err = wholeArguments(given.text, nil); err != nil {
			return nil, nil, err
		}
	}
	p, err := probe.New(setup)
	return c, p, err
}

// confirmProbe says what will be sent, and asks. It never shows an argument.
func (a *app) confirmProbe(c *contract.Contract, made *probe.Probe, yes bool) error {
	p := made.Plan
	fmt.Fprintf(a.err, "%s will be probed at %s; the key goes to the %s\n", p.Tool, p.Target, p.KeyPlace)
	if own := c.Host.String(); own != made.Target().String() {
		fmt.Fprintf(a.err, "(the contract's own target is %s)\n", own)
	}
	for i, r := range p.Requests {
		fmt.Fprintf(a.err, "  %d  %-13s  %s %s%s  key %s\n", i+1, r.Name, p.Method, p.Target, p.Template, r.Token)
	}
	fmt.Fprintf(a.err, "These are real requests: up to %d effects at %s.\n", len(p.Requests), p.Host)
	if c.EachUse && yes {
		yes = false
		fmt.Fprintln(a.err, "The contract says each_use, so a person has to answer; --yes does not count.")
	}
	if yes {
		return nil
	}
	refusal := &exitError{exitRefused, errors.New("nothing was sent: a person has to agree at a terminal, or with --yes")}
	if in, ok := a.in.(*os.File); !ok || !isTerminal(in) {
		return refusal
	}
	fmt.Fprint(a.err, "Send them? [y/N] ")
	answer, _ := bufio.NewReader(a.in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return refusal
	}
	return nil
}

func (a *app) printProbe(r probe.Report) error {
	if a.json {
		return a.printJSON(r)
	}
	for i, s := range r.Steps {
		fmt.Fprintf(a.out, "  %d  %-13s  %s", i+1, s.Name, s.Finding)
		if s.Status != 0 {
			fmt.Fprintf(a.out, " (%d)", s.Status)
		}
		if s.Why != "" {
			fmt.Fprintf(a.out, ": %s", s.Why)
		}
		if len(s.Differs) > 0 {
			fmt.Fprintf(a.out, "; differs in %s", strings.Join(s.Differs, ", "))
		}
		fmt.Fprintln(a.out)
	}
	fmt.Fprintf(a.out, "the contract says  %s\nfound              %s\n", r.Plan.Declared, r.Found)
	if r.Errors != "" {
		fmt.Fprintf(a.out, "stored errors      %s\n", r.Errors)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", r.Verdict, r.Means)
	return err
}

// contractFile is the text that a contract was read from, before anything was sent.
type contractFile struct {
	path, tool string
	text       []byte
	mode       os.FileMode
}

// openContractFile reads the file and tries whether evidence could be written into it: a probe costs effects.
func openContractFile(cfg config.Config, c *contract.Contract) (*contractFile, error) {
	path, err := filepath.EvalSymlinks(filepath.Join(cfg.Contracts, c.File))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, err = contract.WithEvidence(text, c.Tool, "probed 2000-01-01 against https://example: unspecified")
	return &contractFile{path, c.Tool, text, info.Mode().Perm()}, err
}

// writeEvidence puts what was found into the contract, if the file is still the one that was probed for.
func (a *app) writeEvidence(cfg config.Config, f *contractFile, found string) error {
	kept := func(why error) error {
		return fmt.Errorf("what was found was not written into %s: %w\nThe file is as it was. Put this behind its evidence: ; %s", f.path, why, found)
	}
	now, err := os.ReadFile(f.path)
	if err == nil && string(now) != string(f.text) {
		err = errors.New("it was changed while the probe ran")
	}
	if err != nil {
		return kept(err)
	}
	text, err := contract.WithEvidence(f.text, f.tool, found)
	if err != nil {
		return kept(err)
	}
	if err := f.replace(text); err != nil {
		return kept(err)
	}
	if _, err := loadContracts(cfg); err != nil {
		if back := f.replace(f.text); back != nil {
			return fmt.Errorf("with the evidence, %s does not load, and the text before could not be put back: %w", f.path, errors.Join(err, back))
		}
		return kept(err)
	}
	fmt.Fprintln(a.err, "written:", f.path)
	return nil
}

func (f *contractFile) replace(text []byte) error {
	if err := atomicfile.Write(f.path, text); err != nil {
		return err
	}
	return os.Chmod(f.path, f.mode)
}
