package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

// shown is one action with all that is on record about it.
type shown struct {
	Action   actionView             `json:"action"`
	Intent   intentView             `json:"intent"`
	Run      runView                `json:"run"`
	Attempts []attemptView          `json:"attempts"`
	Learned  []operator.Observation `json:"observations,omitempty"` // apart from the attempts
	Events   []json.RawMessage      `json:"events"`
	Erased   string                 `json:"content_erased_at,omitempty"`
	Content  *operator.Content      `json:"content,omitempty"` // protected
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

func (a *app) showCommand() *cobra.Command {
	var protected bool
	var why string
	c := &cobra.Command{
		Use:   "show ACTION",
		Short: "Show one action: what was asked, what was sent, what came of it",
		Long: `Show one action and its life, as the journal has it. It reads the records directly, whether a gateway runs or not.

Arguments, the operation's bytes and the target's answers are protected content. They are sealed at rest and are shown
only with --protected and a reason. Who reads, what and why is recorded in the journal first (content.read), by the
gateway that runs, or else by one inside this process. Content that was kept for as long as its contract says is erased.`,
		Example: `  deed show act_01j4k8j7dx7v000000000000ab
  deed show act_01j4k8j7dx7v000000000000ab --protected --why 'the customer asks what was sent'
  deed show act_01j4k8j7dx7v000000000000ab --protected --why 'case 4711' --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := actionIDs(args)
			if err != nil {
				return err
			}
			switch {
			case protected && strings.TrimSpace(why) == "":
				return &exitError{exitUsage, errors.New("say why, with --why TEXT; the reason is recorded with who reads. Nothing was shown")}
			case !protected && cmd.Flags().Changed("why"):
				return &exitError{exitUsage, errors.New("--why goes with --protected; without it no content is shown and nobody has to say why")}
			}
			return a.show(cmd.Context(), ids[0], protected, why)
		},
		ValidArgsFunction: a.completeActions(store.Query{}),
	}
	c.Flags().BoolVar(&protected, "protected", false, "also show arguments, the operation and the target's answers; it is recorded")
	c.Flags().StringVar(&why, "why", "", "why the protected content is read; kept in the journal")
	return c
}

// show prints an action. Protected content is asked for first, so that the reading is among the events that are shown.
func (a *app) show(ctx context.Context, id action.ID, protected bool, why string) error {
	var content *operator.Content
	if protected {
		c, err := a.readContent(ctx, id, why)
		if err != nil {
			return err
		}
		content = &c
	}
	return a.withRecords(ctx, func(ctx context.Context, r store.Reader) error {
		s, err := gather(ctx, r, id)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no action %s on this record", id)
		}
		if err != nil {
			return err
		}
		if s.Content = content; a.json {
			return a.printJSON(s)
		}
		return a.printShown(s)
	})
}

// readContent asks the gateway, which records the reading before it shows anything.
func (a *app) readContent(ctx context.Context, id action.ID, why string) (c operator.Content, err error) {
	err = a.atDesk(ctx, func(ctx context.Context, d desk) (err error) {
		c, err = d.Content(ctx, id, operator.Reading{Why: why})
		return err
	})
	var refused *action.Error
	switch {
	case errors.As(err, &refused) && refused.Code == action.CodeNoSuchAction:
		return c, fmt.Errorf("there is no action %s on this record", id)
	case errors.As(err, &refused):
		return c, &exitError{exitFailed, errors.New(string(refused.Code) + ": " + refused.Message)}
	case errors.Is(err, operator.ErrLost):
		return c, errors.New("the gateway's answer was lost: the reading may be on record, and nothing was shown; ask again")
	}
	return c, explain(err)
}

// gather reads all that is on record about an action.
func gather(ctx context.Context, r store.Reader, id action.ID) (shown, error) {
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
	if err != nil {
		return s, err
	}
	s.Erased, err = erasedAt(events)
	return s, err
}

// erasedAt is when the content was erased, "" when it was not.
func erasedAt(events [][]byte) (string, error) {
	for _, body := range events {
		e, err := headOf(body)
		if err != nil {
			return "", err
		}
		if e.Event == string(action.ActionPurged) {
			return stamp(e.Time), nil
		}
	}
	return "", nil
}

// eventHead is what a line about an event shows.
type eventHead struct {
	Seq   int64     `json:"seq"`
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
}

func headOf(body []byte) (e eventHead, err error) { return e, json.Unmarshal(body, &e) }

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
		fmt.Fprintf(a.out, "erased %s: its content was kept for as long as its contract says; what it was and what came of it stays\n", s.Erased)
	}
	fmt.Fprintln(a.out, "journal")
	for _, body := range s.Events {
		e, err := headOf(body)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  %6d  %s  %s\n", e.Seq, stamp(e.Time), e.Event)
	}
	if s.Content == nil {
		return nil
	}
	for _, part := range []struct {
		name  string
		value any
	}{
		{"requested", s.Content.Requested}, {"resolved", s.Content.Resolved}, {"answer", s.Content.Result},
		{"answer headers", s.Content.Headers}, {"job", s.Content.Job}, {"evidence", s.Content.Evidence},
	} {
		if raw, err := json.MarshalIndent(part.value, "  ", "  "); err == nil && string(raw) != "null" {
			fmt.Fprintf(a.out, "%s\n  %s\n", part.name, raw)
		}
	}
	return nil
}
