package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/lab/provider"
)

// demoResult is what the demo found, counted on the provider's own ledger and on deed's own records.
type demoResult struct {
	Intents      int     `json:"intents"`
	Calls        int     `json:"calls"`
	Effects      int     `json:"effects"`
	NaiveEffects int     `json:"naive_effects"`
	Attempts     int     `json:"attempts"`
	Chain        string  `json:"chain"`
	Records      int64   `json:"records"`
	Seconds      float64 `json:"seconds"`
}

func (a *app) demoCommand() *cobra.Command {
	var keep string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Lose a response, kill the gateway, retry 81 times: one effect",
		Long: `Start a payment provider and a gateway as processes of their own on this machine, charge a card, lose the
response, kill the gateway between effect and record, start it again and retry through four layers. The
figures come from the provider's own ledger. Nothing outside this machine is touched.`,
		Example: "  deed demo\n  deed demo --json\n  deed demo --keep ./demo    # leave the data to look at with deed show",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			return a.demo(ctx, keep)
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "directory to leave contracts, records and the ledger in")
	return c
}

func (a *app) demo(ctx context.Context, keep string) (err error) {
	started := time.Now()
	dir, remove, err := demoDirectory(keep)
	if err != nil {
		return err
	}
	defer remove()
	s := newStory(a)
	rig := &demoRig{dir: dir}
	defer func() { err = errors.Join(err, rig.stop()) }()
	if err := rig.start(ctx); err != nil {
		return err
	}
	var r demoResult
	if r.NaiveEffects, err = a.demoNaive(ctx, s, rig); err != nil {
		return err
	}
	if r.Calls, err = a.demoDeed(ctx, s, rig); err != nil {
		return err
	}
	if err := a.demoCount(ctx, s, rig, &r); err != nil {
		return err
	}
	r.Seconds = time.Since(started).Round(time.Millisecond).Seconds()
	if keep != "" {
		s.say("Left in %s; look with: deed actions --data %s", keep, rig.data())
	}
	if a.json {
		return a.printJSON(r)
	}
	s.end(r)
	if r.Effects != 1 || r.Chain != "valid" {
		return fmt.Errorf("the demo did not hold: %d effects, chain %s", r.Effects, r.Chain)
	}
	return nil
}

func demoDirectory(keep string) (string, func(), error) {
	if keep != "" {
		if entries, err := os.ReadDir(keep); err == nil && len(entries) > 0 {
			return "", nil, &exitError{exitUsage, fmt.Errorf("%s is not empty; name a new directory", keep)}
		}
		abs, err := filepath.Abs(keep)
		return abs, func() {}, errors.Join(err, os.MkdirAll(keep, 0o700))
	}
	dir, err := os.MkdirTemp("", "deed-demo-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// layers are the places that retry by themselves, outermost first, each with three tries.
var layers = []string{"model", "framework", "wrapper", "http client"}

const tries = 3

// errStage is a fault of the demo's own stage, which no layer should retry.
var errStage = errors.New("the demo could not go on")

// throughLayers calls innermost until it succeeds or every layer has had its tries. try says which try each layer is in.
func throughLayers(innermost func(try []int) error) (calls int, err error) {
	var descend func(try []int) error
	descend = func(try []int) error {
		if len(try) == len(layers) {
			calls++
			return innermost(try)
		}
		var err error
		for n := range tries {
			if err = descend(append(try, n)); err == nil || errors.Is(err, errStage) {
				return err
			}
		}
		return err
	}
	err = descend(nil)
	return calls, err
}

// demoNaive charges without deed: each layer sees an error and tries again, and the key is made where the call is made.
func (a *app) demoNaive(ctx context.Context, s *story, rig *demoRig) (effects int, err error) {
	s.head("Without deed")
	s.say("A card is charged and every response is lost. Four layers retry, three tries each: %s.", "model, framework, wrapper, HTTP client")
	if err := rig.provider.set(ctx, provider.Switches{Faults: []provider.Fault{{Kind: provider.CommitThenDrop}}}); err != nil {
		return 0, err
	}
	calls, _ := throughLayers(func([]int) error { return rig.chargeDirectly(ctx, "cus_naive") })
	effects, err = rig.effects("cus_naive")
	s.figure("%d calls, %d charges on the provider's ledger", calls, effects)
	return effects, err
}

// demoDeed makes the same calls through deed, which dies in the middle.
func (a *app) demoDeed(ctx context.Context, s *story, rig *demoRig) (int, error) {
	s.head("With deed")
	if err := rig.provider.set(ctx, provider.Switches{Faults: []provider.Fault{{Kind: provider.CommitThenHang, Times: 1}}}); err != nil {
		return 0, err
	}
	last := tries*tries*tries*tries - 1
	n := 0
	calls, err := throughLayers(func(try []int) error {
		defer func() { n++ }()
		switch n {
		case 0:
			return a.demoCrash(ctx, s, rig, try)
		case last:
			rig.loseAnswers(false)
		}
		_, err := rig.call(ctx, n, try)
		return err
	})
	if err != nil {
		return calls, fmt.Errorf("the last of %d calls should have been answered: %w", calls, err)
	}
	s.say("All %d calls were made; the answers to the first %d were lost on the way.", calls, calls-1)
	s.say("The last answer that came through: %s", rig.lastMessage)
	return calls, nil
}

// demoCrash makes the first call and kills the gateway after the provider has charged and before deed has heard of it.
func (a *app) demoCrash(ctx context.Context, s *story, rig *demoRig, try []int) error {
	failed := make(chan error, 1)
	go func() {
		_, err := rig.call(ctx, 0, try)
		failed <- err
	}()
	if err := rig.awaitEffect(ctx, "cus_42"); err != nil {
		return errors.Join(errStage, err)
	}
	s.say("The provider has charged the card and has not answered yet. The gateway is killed (SIGKILL).")
	if err := rig.kill(); err != nil {
		return errors.Join(errStage, err)
	}
	lost := <-failed
	if err := rig.provider.set(ctx, provider.Switches{}); err != nil {
		return errors.Join(errStage, err)
	}
	if err := rig.startGateway(ctx); err != nil {
		return errors.Join(errStage, err)
	}
	s.say("The gateway is started again. It finds what it had planned, and every layer above retries.")
	rig.loseAnswers(true)
	return lost
}

// demoCount stops the gateway and counts on the records.
func (a *app) demoCount(ctx context.Context, s *story, rig *demoRig, r *demoResult) error {
	var err error
	if r.Effects, err = rig.effects("cus_42"); err != nil {
		return err
	}
	if err := rig.stopGateway(); err != nil {
		return err
	}
	reader, err := sqlite.OpenReader(ctx, rig.data())
	if err != nil {
		return err
	}
	defer reader.Close()
	all, err := reader.Actions(ctx, store.Query{Limit: 1000})
	if err != nil {
		return err
	}
	intents := map[action.IntentID]bool{}
	for _, act := range all {
		intents[act.Intent] = true
		r.Attempts += act.Attempt
	}
	r.Intents = len(intents)
	r.Chain, r.Records, err = checkChain(ctx, reader)
	s.figure("%d intent, %d calls, %d charge on the provider's ledger", r.Intents, r.Calls, r.Effects)
	s.figure("journal: %d records, chain %s", r.Records, r.Chain)
	return err
}
