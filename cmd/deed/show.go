package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

// shown is one action with all that is on record about it.
type shown struct {
	Action    actionView             `json:"action"`
	Intent    intentView             `json:"intent"`
	Run       runView                `json:"run"`
	Attempts  []attemptView          `json:"attempts"`
	Learned   []operator.Observation `json:"observations,omitempty"` // apart from the attempts
	Events    []json.RawMessage      `json:"events"`
	Requested json.RawMessage        `json:"requested,omitempty"` // protected: the arguments
	Resolved  *resolvedView          `json:"resolved,omitempty"`  // protected: what was sent
	Result    json.RawMessage        `json:"result,omitempty"`    // protected: what the target answered
}

type intentView struct {
	ID         action.IntentID `json:"intent_id"`
	IdemKey    string          `json:"idem_key"`
	Step       int64           `json:"step"`
	ToolCallID string          `json:"tool_call_id"`
	KeySource  string          `json:"key_source"`
	Contract   string          `json:"contract"`
}

type runView struct {
	ID       action.RunID    `json:"run_id"`
	Actor    string          `json:"actor"`
	Strength action.Strength `json:"strength"`
	Started  string          `json:"started_at"`
	Digest   string          `json:"executable_sha256,omitempty"`
}

type attemptView struct {
	ID        action.AttemptID    `json:"attempt_id"`
	Number    int                 `json:"attempt"`
	State     action.AttemptState `json:"state"`
	Certainty string              `json:"certainty"`
	BytesSent *int64              `json:"bytes_sent"` // null when nobody was left to count
	Status    int                 `json:"http_status,omitempty"`
	Reason    string              `json:"reason,omitempty"`
	Remote    string              `json:"remote,omitempty"`
	SpanID    string              `json:"span_id"`
	RetryOf   action.AttemptID    `json:"retry_of,omitempty"`
	Started   string              `json:"started_at"`
	Ended     string              `json:"ended_at,omitempty"`
}

type resolvedView struct {
	Method     string          `json:"method"`
	URL        string          `json:"url"`
	Headers    []string        `json:"header_names,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	Credential string          `json:"credential_ref,omitempty"`
}

func (a *app) showCommand() *cobra.Command {
	var protected bool
	c := &cobra.Command{
		Use:   "show ACTION",
		Short: "Show one action: what was asked, what was sent, what came of it",
		Long: `Show one action and its life, as the journal has it. Arguments, the operation's bytes and the target's answer
are protected detail and are shown only with --protected.`,
		Example: "  deed show act_01j4k8j7dx7v000000000000ab\n  deed show act_01j4k8j7dx7v000000000000ab --protected --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !action.ValidID(action.Prefix, args[0]) {
				return &exitError{exitUsage, fmt.Errorf("%q is no action's identifier; `deed actions` lists them", args[0])}
			}
			return a.withRecords(cmd.Context(), func(ctx context.Context, r store.Reader) error {
				s, err := gather(ctx, r, action.ID(args[0]), protected)
				if errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("there is no action %s on this record", args[0])
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(s)
				}
				return a.printShown(s)
			})
		},
	}
	c.Flags().BoolVar(&protected, "protected", false, "also show arguments, the operation and the target's answer")
	return c
}

// gather reads all that is on record about an action.
func gather(ctx context.Context, r store.Reader, id action.ID, protected bool) (shown, error) {
	var s shown
	act, err := r.Action(ctx, id)
	if err != nil {
		return s, err
	}
	intent, err := r.Intent(ctx, act.Intent)
	if err != nil {
		return s, err
	}
	run, err := r.Run(ctx, act.Run)
	if err != nil {
		return s, err
	}
	attempts, err := r.Attempts(ctx, id)
	if err != nil {
		return s, err
	}
	s.Action = viewOf(act)
	s.Intent = intentView{intent.ID, intent.IdemKey, intent.Step, intent.ToolCallID, intent.KeySource, intent.Contract}
	s.Run = runView{run.ID, run.Actor.String(), run.Actor.Strength, stamp(run.Started), run.Actor.Evidence.Digest}
	for _, t := range attempts {
		s.Attempts = append(s.Attempts, attemptView{
			t.ID, t.Number, t.State, t.Certainty.String(), t.Counted(), t.Status, t.Reason, t.Remote, t.SpanID, t.RetryOf,
			stamp(t.Started), stamp(t.Ended),
		})
	}
	seen, err := r.Observations(ctx, id)
	if err != nil {
		return s, err
	}
	for _, o := range seen {
		s.Learned = append(s.Learned, operator.ObservationOf(o))
	}
	events, err := r.EventsOf(ctx, id)
	for _, body := range events {
		s.Events = append(s.Events, body)
	}
	if err != nil || !protected || act.Purged {
		return s, err
	}
	return s, s.unseal(ctx, r, act)
}

// unseal adds the protected detail.
func (s *shown) unseal(ctx context.Context, r store.Reader, act action.Action) error {
	args, err := r.Payload(ctx, store.Arguments, string(act.Intent))
	if err != nil {
		return err
	}
	s.Requested, _ = json.Marshal(map[string]json.RawMessage{"arguments": args})
	sent, err := r.Payload(ctx, store.Operation, string(act.ID))
	if err != nil {
		return err
	}
	var op action.Operation
	if err := json.Unmarshal(sent, &op); err != nil {
		return err
	}
	s.Resolved = &resolvedView{Method: op.Method, URL: op.URL(), Credential: op.Credential}
	for _, h := range op.Headers {
		s.Resolved.Headers = append(s.Resolved.Headers, h.Name)
	}
	if json.Valid(op.Body) {
		s.Resolved.Body = op.Body
	}
	if act.Result == "" {
		return nil
	}
	_, body, err := r.Result(ctx, act.Result)
	if err != nil {
		return err
	}
	if s.Result = body; !json.Valid(body) {
		s.Result, err = json.Marshal(string(body))
	}
	return err
}

func (a *app) printShown(s shown) error {
	v := s.Action
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.out, "  %-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(a.out, "%s  %s\n", v.ActionID, v.State)
	line("tool", v.Tool)
	line("actor", fmt.Sprintf("%s (%s)", v.Actor, s.Run.Strength))
	line("target", v.Method+" "+v.Target)
	line("credential", v.Credential)
	line("class", string(v.Class))
	line("reason", v.Reason)
	line("decision", string(v.Approval))
	line("repeats", string(v.Repeats))
	line("similar to", string(v.Similar))
	line("undoes", string(v.Compensates))
	line("result", string(v.Result))
	fmt.Fprintln(a.out, "attempts")
	for _, t := range s.Attempts {
		status := ""
		if t.Status != 0 {
			status = fmt.Sprintf(" http_status=%d", t.Status)
		}
		sent := "unknown"
		if t.BytesSent != nil {
			sent = fmt.Sprint(*t.BytesSent)
		}
		fmt.Fprintf(a.out, "  trace_id=%s action_id=%s attempt=%d state=%s bytes_sent=%s%s\n", v.TraceID, v.ActionID, t.Number, t.State, sent, status)
	}
	for i, o := range s.Learned {
		if i == 0 {
			fmt.Fprintln(a.out, "learned")
		}
		finding := string(o.Finding)
		if finding == "" {
			finding = "nothing"
		}
		fmt.Fprintf(a.out, "  %d  %s  by %s: %s", o.Number, o.Started, o.Kind, finding)
		if o.Reason != "" {
			fmt.Fprintf(a.out, " (%s)", o.Reason)
		}
		fmt.Fprintln(a.out)
	}
	if v.Purged {
		fmt.Fprintln(a.out, "erased: its content was kept for as long as its contract says; what it was and what came of it stays")
	}
	fmt.Fprintln(a.out, "journal")
	for _, body := range s.Events {
		var e struct {
			Seq   int64     `json:"seq"`
			Time  time.Time `json:"time"`
			Event string    `json:"event"`
		}
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  %6d  %s  %s\n", e.Seq, stamp(e.Time), e.Event)
	}
	for name, value := range map[string]any{"requested": s.Requested, "resolved": s.Resolved, "answer": s.Result} {
		if raw, err := json.MarshalIndent(value, "  ", "  "); err == nil && string(raw) != "null" {
			fmt.Fprintf(a.out, "%s\n  %s\n", name, raw)
		}
	}
	return nil
}
