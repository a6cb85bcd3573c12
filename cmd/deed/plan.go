package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/ladder"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/vault"
)

// planned is what a call would do.
type planned struct {
	Tool       string            `json:"tool"`
	Requested  json.RawMessage   `json:"requested"`
	Resolved   operator.Resolved `json:"resolved"`
	Steps      []action.Step     `json:"resolution"`
	Resource   string            `json:"resource,omitempty"`
	Impact     string            `json:"impact,omitempty"`
	Class      action.Class      `json:"class"`
	Identity   plannedIdentity   `json:"identity"`
	Ladder     plannedVerdict    `json:"ladder"`
	Crashes    []contract.Crash  `json:"if_the_response_is_lost"`
	Attempts   int               `json:"attempts"`
	BytesSent  int               `json:"bytes_sent"`
	Credential string            `json:"credential_ref,omitempty"`
}

type plannedIdentity struct {
	Key   string `json:"key"`
	Scope string `json:"scope"`
	Match string `json:"match"`
}

type plannedVerdict struct {
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
	Why     string `json:"why"`
}

func (a *app) planCommand() *cobra.Command {
	var pairs []string
	var whole string
	c := &cobra.Command{
		Use:   "plan TOOL",
		Short: "Show what a call would do, and send nothing",
		Long: `Resolve a call into its operation and show it: where it would go, with which credential, under which identity,
whether it would be allowed, and what happens if the response is lost at each moment. Nothing is sent and
nothing is recorded.`,
		Example: "  deed plan charge --arg amount=25000 --arg currency=usd --arg customer=cus_42\n  deed plan charge --args @charge.json --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.plan(args[0], pairs, whole)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(p)
			}
			a.printPlan(p)
			return nil
		},
		ValidArgsFunction: a.completeTools,
	}
	c.Flags().StringArrayVar(&pairs, "arg", nil, "one argument, name=value; repeatable")
	c.Flags().StringVar(&whole, "args", "", "all arguments as JSON, @FILE, or - for standard input")
	return c
}

func (a *app) plan(tool string, pairs []string, whole string) (planned, error) {
	cfg, err := a.config()
	if err != nil {
		return planned{}, err
	}
	set, err := loadContracts(cfg)
	if err != nil {
		return planned{}, err
	}
	c, ok := set.Tool(tool)
	if !ok {
		return planned{}, &exitError{exitUsage, fmt.Errorf("there is no tool %q; `deed contracts check` lists those that there are", tool)}
	}
	args, err := toolArguments(c.InputSchema(), pairs, whole, a.in)
	if err != nil {
		return planned{}, err
	}
	r, err := c.Resolve(args)
	if err != nil {
		return planned{}, &exitError{exitUsage, err}
	}
	credentials, err := vault.Load(cfg.Credentials)
	if err != nil {
		return planned{}, &exitError{exitUsage, err}
	}
	return describePlan(c, r, credentials)
}

// describePlan says what would be sent. The identity is shown by example: a real one is made when the call is accepted.
func describePlan(c *contract.Contract, r contract.Resolved, credentials *vault.Vault) (planned, error) {
	const exampleAction, exampleRun = action.ID("act_00000000000000000000000000"), action.RunID("run_00000000000000000000000000")
	op, err := r.Operation(exampleAction, digest.IdemKey(exampleRun, 0, "example"))
	if err != nil {
		return planned{}, &exitError{exitUsage, err}
	}
	decision := ladder.Decide(ladder.Facts{ActorVerified: true, RunAuthorized: true, EachUse: c.EachUse || credentials.EachUse(c.Credential), VaultLocked: c.Credential != "" && credentials.Locked()})
	if bound, ok := credentials.Find(c.Credential); c.Credential != "" && (!ok || !bound.Bound(op.Target)) {
		decision = ladder.Decision{Verdict: ladder.Deny, Rule: ladder.RuleVault,
			Why: fmt.Sprintf("there is no credential %q for %s; add it to credentials.yaml", c.Credential, op.Target.Address())}
	}
	report := contract.Describe(c)
	p := planned{
		Tool: c.Tool, Requested: r.Requested, Steps: r.Steps, Resource: r.Resource, Impact: r.Impact, Class: c.Class,
		Resolved: operator.Resolved{Method: op.Method, URL: op.URL(), Credential: op.Credential}, Credential: c.Credential,
		Identity: plannedIdentity{Key: report.Key.Which, Scope: string(c.Scope), Match: report.Attach},
		Ladder:   plannedVerdict{decision.Verdict.String(), decision.Rule, decision.Why},
		Crashes:  report.Crashes, Attempts: c.MaxAttempts,
	}
	for _, h := range op.Headers {
		p.Resolved.Headers = append(p.Resolved.Headers, h.Name)
	}
	if json.Valid(op.Body) {
		p.Resolved.Body = op.Body
	}
	return p, nil
}

func (a *app) printPlan(p planned) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.out, "  %-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(a.out, "%s would send (nothing was sent)\n", p.Tool)
	line("request", p.Resolved.Method+" "+p.Resolved.URL)
	line("headers", strings.Join(p.Resolved.Headers, ", "))
	line("body", string(p.Resolved.Body))
	line("credential", p.Credential)
	line("resource", p.Resource)
	line("impact", p.Impact)
	fmt.Fprintln(a.out, "identity")
	line("class", string(p.Class))
	line("key", p.Identity.Key)
	line("scope", p.Identity.Scope)
	line("repeat", p.Identity.Match)
	line("attempts", fmt.Sprintf("at most %d over all layers", p.Attempts))
	fmt.Fprintln(a.out, "allowed")
	line("ladder", fmt.Sprintf("%s (%s): %s", p.Ladder.Verdict, p.Ladder.Rule, p.Ladder.Why))
	fmt.Fprintln(a.out, "if the response is lost")
	for _, c := range p.Crashes {
		fmt.Fprintf(a.out, "  %s  %s: %s\n", c.Window, c.Between, c.Then)
	}
	fmt.Fprintln(a.out, "resolved by")
	for _, s := range p.Steps {
		fmt.Fprintf(a.out, "  %-10s %s  %s\n", s.Kind, s.Field, s.Detail)
	}
}
