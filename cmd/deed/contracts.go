package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/contract"
)

func (a *app) contractsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "contracts", Short: "Check tool contracts and report what they promise",
		Example: "  deed contracts check\n  deed contracts report charge\n  deed contracts schema > contract.schema.json",
	}
	c.AddCommand(a.contractsCheck(), a.contractsReport(), a.contractsProbe(), a.contractsSchema())
	return c
}

// contracts loads the contracts of the settings.
func (a *app) contracts() (*contract.Set, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	return loadContracts(cfg)
}

// loadContracts loads all contracts, or says what is wrong with them.
func loadContracts(cfg config.Config) (*contract.Set, error) {
	set, err := contract.Load(cfg.Contracts)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &exitError{exitUsage, fmt.Errorf("there is no directory of contracts at %s; `deed init` writes a configuration to start from", cfg.Contracts)}
	case err != nil:
		return nil, &exitError{exitUsage, err}
	}
	return set, keptLongEnough(set, cfg.LongestRun)
}

// keptLongEnough refuses contracts under which a run could outlive what recognises its retries: the key and the result.
func keptLongEnough(set *contract.Set, longest time.Duration) error {
	for _, c := range set.Tools() {
		if c.HasEffects && c.KeepResult <= longest {
			return &exitError{exitUsage, fmt.Errorf("%s: the tool %s keeps its results for %s, and a run may last %s: a retry at its end would "+
				"find its key used up\nRaise keep_result in the contract, or lower longest_run in deed.yaml", c.File, c.Tool, c.KeepResult, longest)}
		}
	}
	return nil
}

// chosen are the named tools, or all.
func chosen(set *contract.Set, names []string) ([]*contract.Contract, error) {
	if len(names) == 0 {
		return set.Tools(), nil
	}
	var all []*contract.Contract
	for _, n := range names {
		c, ok := set.Tool(n)
		if !ok {
			return nil, &exitError{exitUsage, fmt.Errorf("there is no tool %q", n)}
		}
		all = append(all, c)
	}
	return all, nil
}

// checked is one tool's answers to the production questions.
type checked struct {
	Tool    string            `json:"tool"`
	Class   string            `json:"class"`
	Retry   string            `json:"retry"`
	Level   contract.Need     `json:"level"`
	Answers []contract.Answer `json:"answers"`
	Pass    bool              `json:"pass"`
}

func (a *app) contractsCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check [TOOL…]", Short: "Answer the ten production questions for each tool",
		Long: `Load every contract and answer, for each tool, the ten questions that it has to stand before it goes into
production, and which guard level it needs. Ends with 1 if an answer is no, with 2 if a contract does not load.`,
		Example: "  deed contracts check\n  deed contracts check charge --json", ValidArgsFunction: a.completeTools,
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := a.contracts()
			if err != nil {
				return err
			}
			tools, err := chosen(set, args)
			if err != nil {
				return err
			}
			all, ok := checkTools(tools)
			if a.json {
				err = a.printJSON(all)
			} else {
				a.printChecked(all)
			}
			if err == nil && !ok {
				return &exitError{code: exitFailed}
			}
			return err
		},
	}
}

func checkTools(tools []*contract.Contract) (all []checked, ok bool) {
	ok = true
	for _, c := range tools {
		one := checked{Tool: c.Tool, Class: string(c.Class), Retry: c.Label(), Level: contract.Level(c), Answers: contract.Check(c), Pass: true}
		for _, answer := range one.Answers {
			one.Pass = one.Pass && answer.Pass
		}
		ok = ok && one.Pass
		all = append(all, one)
	}
	return all, ok
}

func (a *app) printChecked(all []checked) {
	for _, one := range all {
		fmt.Fprintf(a.out, "%s  %s (%s)\n  level  %s\n", one.Tool, one.Class, one.Retry, one.Level)
		for _, answer := range one.Answers {
			mark := "yes"
			if !answer.Pass {
				mark = "NO"
			}
			fmt.Fprintf(a.out, "  %-4s %s %s\n", mark, answer.Question, answer.Text)
		}
		fmt.Fprintln(a.out)
	}
	if len(all) == 0 {
		fmt.Fprintln(a.err, "There are no contracts yet; `deed init` writes one to start from.")
	}
}

func (a *app) contractsReport() *cobra.Command {
	return &cobra.Command{
		Use: "report [TOOL…]", Short: "Say which key each tool uses and what a crash at each moment does",
		Example: "  deed contracts report\n  deed contracts report charge --json", ValidArgsFunction: a.completeTools,
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := a.contracts()
			if err != nil {
				return err
			}
			tools, err := chosen(set, args)
			if err != nil {
				return err
			}
			reports := make([]contract.Report, len(tools))
			texts := make([]string, len(tools))
			for i, c := range tools {
				reports[i] = contract.Describe(c)
				texts[i] = reports[i].String()
			}
			if a.json {
				return a.printJSON(reports)
			}
			_, err = fmt.Fprint(a.out, strings.Join(texts, "\n"))
			return err
		},
	}
}

func (a *app) contractsSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a contract file, for editors", Args: cobra.NoArgs,
		Example: "  deed contracts schema > contract.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(contract.FileSchema())
			return err
		},
	}
}

// completeTools offers the names of tools to the shell.
func (a *app) completeTools(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	set, err := a.contracts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range set.Tools() {
		names = append(names, c.Tool+"\t"+c.Description)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
