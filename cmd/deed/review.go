package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

func (a *app) reviewCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "review",
		Short: "Settle actions of which nobody knows whether they took effect",
		Long: `Settle actions of which nobody knows whether they took effect. deed sends such an action again only where its
contract makes that safe; for the rest somebody has to find out at the target, and say so here. What you
decide is recorded with who you are (the program that runs deed, as the kernel names it), why, and what you
had seen. docs/review.md tells how to find out.`,
		Example: `  deed review list
  deed review show act_01j4k8j7dx7v000000000000ab
  deed review happened act_01j4k8j7dx7v000000000000ab --evidence 'invoice 4711 in the shop, 9:14'
  deed review absent act_01j4k8j7dx7v000000000000ab --evidence 'no mail in the outbox log of 9:00 to 10:00'
  deed review redo act_01j4k8j7dx7v000000000000ab --why 'the shop confirmed that nothing arrived'
  deed review abandon act_01j4k8j7dx7v000000000000ab --why 'the provider keeps no log'`,
	}
	c.AddCommand(a.reviewList(), a.reviewShow())
	for _, d := range decisions {
		c.AddCommand(a.reviewDecision(d))
	}
	return c
}

func (a *app) reviewList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List unknown actions that a person should look at, oldest first", Args: cobra.NoArgs,
		Long: `List unknown actions that wait for a person, and those for which deed has looked for evidence longer than their
contract says (overdue), oldest first. It reads the records directly, whether a gateway runs or not.`,
		Example: "  deed review list\n  deed review list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookingOnly(cmd.Context(), func(ctx context.Context, s *operator.Server) error {
				all, err := s.List(ctx)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(all)
				case len(all) == 0:
					fmt.Fprintln(a.err, "Nothing waits for a person.")
					return nil
				default:
					return operator.PrintList(a.out, all)
				}
			})
		},
	}
}

func (a *app) reviewShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ACTION", Short: "Show what is known of an action, and what a decision would do", Args: cobra.ExactArgs(1),
		Long: `Show what is known of an action and what is not, and what each decision would do. Arguments and bodies are not
shown; deed show --protected --why TEXT has them. It reads the records directly, whether a gateway runs or not.`,
		Example: "  deed review show act_01j4k8j7dx7v000000000000ab",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := actionIDs(args)
			if err != nil {
				return err
			}
			return a.lookingOnly(cmd.Context(), func(ctx context.Context, s *operator.Server) error {
				c, err := s.Show(ctx, ids[0])
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(c)
				default:
					return c.Print(a.out)
				}
			})
		},
		ValidArgsFunction: a.completeActions(store.Query{States: []action.State{action.Unknown}}),
	}
}

// lookingOnly uses the operator's door over the records alone.
func (a *app) lookingOnly(ctx context.Context, use func(context.Context, *operator.Server) error) error {
	return a.withRecords(ctx, func(ctx context.Context, r store.Reader) error {
		err := use(ctx, operator.New(operator.Options{Records: r, NotFound: store.ErrNotFound, Log: slog.New(slog.DiscardHandler)}))
		var refused *action.Error
		if errors.As(err, &refused) && refused.Err == nil {
			return &exitError{exitFailed, errors.New(refused.Message)}
		}
		return err
	})
}

// decision is one command of those that settle.
type decision struct {
	is             action.ReviewDecision
	short, example string
}

var decisions = []decision{
	{action.Happened, "Record that it took effect", `--evidence 'invoice 4711 in the shop, 9:14' --result '{"id":"in_4711"}'`},
	{action.DidNot, "Record that it had no effect", `--evidence 'no mail in the outbox log of 9:00 to 10:00'`},
	{action.Redo, "SEND it once more", `--why 'the shop confirmed that nothing arrived' --yes`},
	{action.Abandon, "Leave it unknown for good, so that it holds nobody up any more", `--why 'the provider keeps no log'`},
}

// asked are the flags of a decision.
type asked struct {
	evidence, why, seen, result string
	yes                         bool
}

func (a *app) reviewDecision(d decision) *cobra.Command {
	var f asked
	c := &cobra.Command{
		Use: string(d.is) + " ACTION", Short: d.short, Args: cobra.ExactArgs(1),
		Example: "  deed review " + string(d.is) + " act_01j4k8j7dx7v000000000000ab " + d.example,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := actionIDs(args)
			if err != nil {
				return err
			}
			asked, err := f.decision(d.is, cmd.Flags().Changed("result"))
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return a.decide(cmd.Context(), func(ctx context.Context, at desk) (action.Status, int, error) {
				return a.settle(ctx, at, ids[0], asked, f.yes)
			})
		},
		ValidArgsFunction: a.completeActions(store.Query{States: []action.State{action.Unknown}}),
	}
	if d.is.NeedsEvidence() {
		c.Flags().StringVar(&f.evidence, "evidence", "", "what shows it, and where it can be seen; kept in the journal")
	}
	c.Flags().StringVar(&f.why, "why", "", "why; kept in the journal")
	c.Flags().StringVar(&f.seen, "seen", "", "the journal hash of the state that you decide on; that of now if not said")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	if d.is == action.Happened {
		c.Flags().StringVar(&f.result, "result", "", "the result that callers get: JSON, or @FILE")
	}
	return c
}

// decision checks what can be checked here. The gateway checks all of it again.
func (f asked) decision(is action.ReviewDecision, withResult bool) (operator.Decision, error) {
	d := operator.Decision{Decision: is, Why: f.why, Evidence: f.evidence, Seen: f.seen}
	switch {
	case is.NeedsEvidence() && strings.TrimSpace(f.evidence) == "":
		return d, errors.New("say what shows it, with --evidence TEXT; nothing clears an unknown outcome without that. Nothing was changed")
	case !is.NeedsEvidence() && strings.TrimSpace(f.why) == "":
		return d, errors.New("say why, with --why TEXT. Nothing was changed")
	case !withResult:
		return d, nil
	}
	result := []byte(f.result)
	if name, ok := strings.CutPrefix(f.result, "@"); ok {
		var err error
		if result, err = os.ReadFile(name); err != nil {
			return d, err
		}
	}
	if !json.Valid(result) {
		return d, errors.New("--result is no JSON; put text in quotes, as in --result '\"done\"'. Nothing was changed")
	}
	d.Result = result
	return d, nil
}

// settle looks at the action, says what is about to happen, asks if somebody is there to answer, and decides.
func (a *app) settle(ctx context.Context, at desk, id action.ID, asked operator.Decision, yes bool) (action.Status, int, error) {
	c, err := at.Show(ctx, id)
	if err != nil {
		return action.Status{}, 0, err
	}
	if asked.Seen == "" {
		asked.Seen = c.Journal.Hash
	}
	for _, choice := range c.Choices { // none fits an action that is settled: the gateway says so
		if choice.Decision != asked.Decision {
			continue
		}
		fmt.Fprintf(a.err, "%s  %s  %s\n%s: %s\n", c.ActionID, c.Tool, c.Target, choice.Decision, choice.Does)
		if err := a.confirm(asked.Decision, yes); err != nil {
			return action.Status{}, 0, err
		}
	}
	s, err := at.Decide(ctx, id, asked)
	if err != nil || asked.Decision != action.Redo {
		return s, exitOK, err // the decision is what was asked for, and it is on record
	}
	return s, exitCode(s.Code), nil
}

// confirm asks on a terminal. Elsewhere nobody can answer, and only what sends nothing goes on.
func (a *app) confirm(d action.ReviewDecision, yes bool) error {
	if yes {
		return nil
	}
	if f, ok := a.in.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		if d == action.Redo {
			return &exitError{exitUsage, errors.New("redo sends again, and there is no terminal to ask on; give --yes if that is meant. Nothing was sent or changed")}
		}
		return nil
	}
	fmt.Fprint(a.err, "Is that meant? [y/N] ")
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return &exitError{exitFailed, errors.New("not confirmed; nothing was sent or changed")}
	}
	return nil
}
