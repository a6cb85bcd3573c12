package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
)

// actionView is an activity record as people and machines read it: what happened, without what was said.
type actionView struct {
	ExecutionID  action.ID           `json:"execution_id"`
	ActionID     action.ID           `json:"action_id"`
	IntentID     action.IntentID     `json:"intent_id"`
	RunID        action.RunID        `json:"run_id"`
	Tool         string              `json:"tool"`
	Actor        string              `json:"actor"`
	State        string              `json:"state"` // state and delivery as people read the pair
	Effect       action.State        `json:"effect_state"`
	Delivery     action.Delivery     `json:"delivery"`
	Recovery     action.Recovery     `json:"recovery,omitempty"`
	FailureClass action.FailureClass `json:"failure_class,omitempty"`
	RejectReason action.RejectReason `json:"reject_reason,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	Class        action.Class        `json:"class"`
	Channel      string              `json:"channel"`
	Target       string              `json:"target"`
	Method       string              `json:"method"`
	PathTemplate string              `json:"path_template"`
	Credential   string              `json:"credential_ref,omitempty"`
	Fingerprint  string              `json:"fingerprint"`
	Attempts     int                 `json:"attempts"`
	TargetStatus int                 `json:"target_status,omitempty"`
	Result       action.ResultID     `json:"result_reference,omitempty"`
	Approval     action.DecisionID   `json:"approval_id,omitempty"`
	Repeats      action.ID           `json:"repeats,omitempty"`
	Similar      action.ID           `json:"similar_to,omitempty"`
	Compensates  action.ID           `json:"compensates,omitempty"`
	Delegated    bool                `json:"delegated,omitempty"` // its target is at work on it
	Purged       bool                `json:"purged,omitempty"`    // its content is erased
	TraceID      string              `json:"trace_id"`
	AcceptedAt   string              `json:"accepted_at"`
	DispatchedAt string              `json:"dispatched_at,omitempty"`
	CompletedAt  string              `json:"completed_at,omitempty"`
}

func viewOf(a action.Action) actionView {
	v := actionView{
		ExecutionID: a.ID, ActionID: a.ID, IntentID: a.Intent, RunID: a.Run, Tool: a.Tool, Actor: a.Actor,
		State: action.Shown(a.State, a.Delivery), Effect: a.State, Delivery: a.Delivery, Recovery: a.Recovery,
		FailureClass: a.FailureClass, RejectReason: a.RejectReason, Reason: a.Reason, Class: a.Class,
		Channel: a.Channel, Target: a.Target.String() + a.Template, Method: a.Method, PathTemplate: a.Template, Credential: a.Credential,
		Fingerprint: a.Digests.Fingerprint, Attempts: a.Attempt, TargetStatus: a.TargetStatus, Result: a.Result,
		Approval: a.Binding.Decision, Repeats: a.Repeats, Similar: a.Similar, Compensates: a.Compensates,
		Delegated: a.Delegated(), Purged: a.Purged, TraceID: a.Trace.TraceID,
		AcceptedAt: stamp(a.AcceptedAt), DispatchedAt: stamp(a.DispatchedAt),
	}
	if a.State == action.Completed {
		v.CompletedAt = stamp(a.FinishedAt)
	}
	return v
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func (a *app) actionsCommand() *cobra.Command {
	var q store.Query
	var states []string
	c := &cobra.Command{
		Use:   "actions",
		Short: "List actions, newest first",
		Long:  "List actions, newest first. It reads the records directly and changes nothing, whether a gateway runs or not.",
		Example: `  deed actions
  deed actions --state unknown
  deed actions --tool charge --limit 20 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range states {
				q.States = append(q.States, action.State(s))
			}
			return a.withRecords(cmd.Context(), func(ctx context.Context, r store.Reader) error { return a.listActions(ctx, r, q) })
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "only these states")
	c.Flags().StringVar(&q.Tool, "tool", "", "only this tool")
	c.Flags().StringVar((*string)(&q.Run), "run", "", "only this run")
	c.Flags().StringVar(&q.TraceID, "trace", "", "only this trace")
	c.Flags().StringVar((*string)(&q.Attempt), "attempt", "", "only the action of this attempt")
	c.Flags().StringVar(&q.Host, "host", "", "only this target host")
	c.Flags().StringVar(&q.Credential, "credential", "", "only this credential reference")
	c.Flags().IntVar(&q.Limit, "limit", 50, "at most so many")
	_ = c.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := make([]string, len(action.States))
		for i, s := range action.States {
			names[i] = string(s)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

// withRecords opens the records for reading. It never writes, and it needs no gateway.
func (a *app) withRecords(ctx context.Context, use func(context.Context, store.Reader) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	r, err := sqlite.OpenReader(ctx, cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing is on record in %s yet; a gateway begins the record when it starts (`deed serve`)", cfg.DataDir)
	}
	if err != nil {
		return explain(err)
	}
	defer r.Close()
	return explain(use(ctx, r))
}

func (a *app) listActions(ctx context.Context, r store.Reader, q store.Query) error {
	found, err := r.Actions(ctx, q)
	if err != nil {
		return err
	}
	views := make([]actionView, len(found))
	for i, act := range found {
		views[i] = viewOf(act)
	}
	if a.json {
		return a.printJSON(views)
	}
	if len(views) == 0 {
		fmt.Fprintln(a.err, "No such action.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ACTION\tACCEPTED\tTOOL\tSTATE\tATTEMPTS\tSTATUS\tTARGET")
	for _, v := range views {
		status := "–"
		if v.TargetStatus != 0 {
			status = fmt.Sprint(v.TargetStatus)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s %s\n", v.ActionID, v.AcceptedAt[:19], v.Tool, v.State, v.Attempts, status, v.Method, v.Target)
	}
	return w.Flush()
}
