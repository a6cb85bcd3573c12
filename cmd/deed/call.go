package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/identity"
)

// callFlags are what a caller may say about a call.
type callFlags struct {
	pairs     []string
	whole     string
	run, id   string
	step      int64
	stepGiven bool
}

func (a *app) callCommand() *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use:   "call TOOL",
		Short: "Call a tool once",
		Long: `Call a tool through the running gateway, or through one inside this process when none runs.

Running the same command again attaches to the action that exists while its answer may have been lost. A
script that gives --run and --id makes that exact: the same run and id are the same intent, for ever.

` + exitCodes,
		Example: `  deed call charge --arg amount=25000 --arg currency=usd --arg customer=cus_42
  deed call charge --args @charge.json --run renewals-2026-11 --id invoice-7
  deed call charge --args '{"amount":25000,"customer":"cus_42"}' --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.stepGiven = cmd.Flags().Changed("step")
			return explain(a.call(cmd.Context(), args[0], f))
		},
		ValidArgsFunction: a.completeTools,
	}
	c.Flags().StringArrayVar(&f.pairs, "arg", nil, "one argument, name=value; repeatable")
	c.Flags().StringVar(&f.whole, "args", "", "all arguments as JSON, @FILE, or - for standard input")
	c.Flags().StringVar(&f.run, "run", "", "your name of the run that this call belongs to")
	c.Flags().Int64Var(&f.step, "step", 0, "number of the step inside the run")
	c.Flags().StringVar(&f.id, "id", "", "your identifier of this call inside the run")
	return c
}

func (a *app) call(ctx context.Context, tool string, f callFlags) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	running := func(ctx context.Context, conn *net.UnixConn) error { return a.callOver(ctx, conn, tool, f) }
	return a.withGateway(ctx, cfg, running, func(ctx context.Context, l *line, peer *identity.Peer) error {
		ours, theirs := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = l.mcp.ServeStream(ctx, theirs, theirs, peer.Actor(), "cli") // its end says nothing that the answer does not
		}()
		err := a.callOver(ctx, ours, tool, f)
		_ = theirs.Close()
		<-served
		return err
	})
}

// callOver makes the call over an MCP stream.
func (a *app) callOver(ctx context.Context, conn net.Conn, tool string, f callFlags) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "deed-call", Version: version()}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
	if err != nil {
		return fmt.Errorf("reach the gateway: %w; nothing was done", err)
	}
	defer session.Close()
	schema, err := inputOf(ctx, session, tool)
	if err != nil {
		return err
	}
	args, err := toolArguments(schema, f.pairs, f.whole, a.in)
	if err != nil {
		return err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Meta: f.meta(), Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return &exitError{exitUnknown, fmt.Errorf("the answer was lost: %w\nThe action may have taken effect; run the same command again, or look with `deed actions`", err)}
	}
	return a.printResult(result)
}

func (f callFlags) meta() mcp.Meta {
	m := mcp.Meta{}
	if f.run != "" {
		m["dev.deed/run"] = f.run
	}
	if f.stepGiven {
		m["dev.deed/step"] = f.step
	}
	if f.id != "" {
		m["dev.deed/tool_call_id"] = f.id
	}
	return m
}

// inputOf is the input schema of a tool.
func inputOf(ctx context.Context, session *mcp.ClientSession, tool string) ([]byte, error) {
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w; nothing was done", err)
		}
		if t.Name == tool {
			return json.Marshal(t.InputSchema)
		}
	}
	return nil, &exitError{exitUsage, fmt.Errorf("there is no tool %q; `deed contracts check` lists those that there are", tool)}
}

// printResult shows an answer and ends with the exit code that it means.
func (a *app) printResult(r *mcp.CallToolResult) error {
	structured, err := json.Marshal(r.StructuredContent)
	if err != nil {
		return err
	}
	var answer struct {
		Deed   action.Status   `json:"deed"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	if err := json.Unmarshal(structured, &answer); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a.json {
		err = a.printJSON(answer)
	} else {
		err = a.printAnswer(answer.Deed, answer.Result)
	}
	if code := exitCode(answer.Deed.Code); err == nil && code != exitOK {
		return &exitError{code: code}
	}
	return err
}

func (a *app) printAnswer(s action.Status, result json.RawMessage) error {
	if s.ActionID != "" {
		fmt.Fprintf(a.err, "%s %s\n", s.ActionID, s.Shown)
	}
	if s.Code != "" {
		fmt.Fprintf(a.err, "%s: ", s.Code)
	}
	fmt.Fprintln(a.err, s.Message)
	if len(result) == 0 {
		return nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, result, "", "  "); err != nil {
		return errors.Join(err)
	}
	_, err := fmt.Fprintln(a.out, pretty.String())
	return err
}
