package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/store"
)

// Exit codes, the same for every command. The help of `deed` lists them.
const (
	exitOK       = 0 // done, or the effect is proved
	exitFailed   = 1 // it did not work; the message says what was not done
	exitUsage    = 2 // the command line or a file of yours is wrong
	exitRefused  = 3 // refused, and nothing was sent
	exitUnknown  = 4 // sent, and the outcome is not known
	exitTryLater = 5 // nothing took effect yet; the same command goes on
)

const exitCodes = `Exit codes:
  0  done
  1  failed; the message says what was not done
  2  the command line or a file of yours is wrong
  3  refused, and nothing was sent
  4  sent, and the outcome is not known: the effect may have happened
  5  nothing took effect yet; the same command goes on`

// terminal is where a command reads and writes.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// app is what all commands share: the settings that were asked for and how to print.
type app struct {
	terminal
	flags config.Overrides
	json  bool
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, t terminal) int {
	a := &app{terminal: t}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var known *exitError
	if errors.As(err, &known) {
		if known.err != nil {
			fmt.Fprintln(t.err, "deed:", known.err)
		}
		return known.code
	}
	fmt.Fprintln(t.err, "deed:", err)
	if isUsage(err) {
		fmt.Fprintln(t.err, "Run 'deed help' for the commands.")
		return exitUsage
	}
	return exitFailed
}

// exitError ends the program with a code of its own. A nil err means that everything was said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// isUsage recognises what cobra itself says about a command line.
func isUsage(err error) bool {
	for _, start := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires ", "required flag", "flag needs", "invalid argument"} {
		if strings.HasPrefix(err.Error(), start) {
			return true
		}
	}
	return false
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "deed",
		Short: "The gateway through which AI agents act: once, honestly, and on record",
		Long: `deed stands between AI agents and the outside world. An agent asks for a tool; deed resolves it into one
operation, gives it a durable identity, writes the plan down, sends it once, writes down what came of it,
and answers. A retry by any layer attaches to the action that exists.

` + exitCodes,
		Example: `  deed demo                          # see it work: one effect after a crash and 81 calls
  deed init                          # make a configuration to start from
  deed serve                         # run the gateway
  deed mcp                           # connect an agent over stdio
  deed call charge --arg amount=25000 --arg customer=cus_42`,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.ConfigDir, "config", "", "configuration directory (default: deed in the XDG configuration directory)")
	flags.StringVar(&a.flags.DataDir, "data", "", "data directory (default: deed in the XDG state directory)")
	flags.StringVar(&a.flags.Contracts, "contracts", "", "directory of tool contracts (default: contracts in the configuration directory)")
	flags.StringVar(&a.flags.Socket, "socket", "", "Unix socket of the gateway")
	flags.StringVar(&a.flags.OperatorSocket, "operator-socket", "", "Unix socket of those who look after the gateway (default: operator.sock beside the gateway's)")
	flags.BoolVar(&a.json, "json", false, "print one JSON value for machines")
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"}, &cobra.Group{ID: "use", Title: "Use:"},
		&cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "prove", Title: "Prove:"},
		&cobra.Group{ID: "set", Title: "Set up:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"run":   {a.serveCommand(), a.mcpCommand(), a.witnessCommand(), a.demoCommand()},
		"prove": {a.auditCommand()},
		"set":   {a.initCommand(), a.vaultCommand(), a.tokenCommand(), a.approverCommand(), a.contentCommand(), a.configCommand()},
		"use":   {a.callCommand(), a.approveCommand(), a.denyCommand(), a.reviewCommand(), a.undoCommand(), a.revokeCommand()},
		"look":  {a.statusCommand(), a.approvalsCommand(), a.actionsCommand(), a.showCommand(), a.investigateCommand(), a.planCommand(), a.contractsCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.versionCommand(), a.labCommand())
	return root
}

// config reads the settings, once per command.
func (a *app) config() (config.Config, error) {
	c, err := config.Load(a.flags)
	if err != nil {
		return c, &exitError{exitUsage, err}
	}
	return c, nil
}

// printJSON writes one value for machines.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// logger writes structured lines to stderr. What it is given never holds a secret, an argument or a body.
func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// explain turns errors of the parts into what a person can do about them.
func explain(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return &exitError{exitFailed, fmt.Errorf("%w\nStop it first, or choose another directory with --data. Several agents share one gateway when `deed serve` runs", err)}
	case errors.Is(err, os.ErrPermission):
		return &exitError{exitFailed, fmt.Errorf("%w\nNothing was done. Give this user the right, or choose another directory with --data", err)}
	default:
		return err
	}
}

// exitCode is the third table of error codes, after MCP and REST.
func exitCode(code action.Code) int {
	switch code {
	case "":
		return exitOK
	case action.CodeOutcomeUnknown, action.CodeInProgress, action.CodeInternal:
		return exitUnknown
	case action.CodeTryLater, action.CodeNotSent, action.CodeOverloaded, action.CodeNeedsApproval, action.CodeHeld,
		action.CodeJournalUnavailable, action.CodeVaultLocked:
		return exitTryLater
	case action.CodeInvalidArguments, action.CodeUnknownTool, action.CodeKeyInvalid:
		return exitUsage
	default:
		return exitRefused
	}
}
