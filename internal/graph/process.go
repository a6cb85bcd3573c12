package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// whose is what the journal says of the processes behind some runs.
type whose string

const (
	oneProcess    whose = "one process"
	someProcesses whose = "several processes"
	oneRun        whose = "one run"  // that a process opened; another one may have gone on with it
	noProcess     whose = "no proof" // the journal names no process for at least one of them
)

// processesOf answers the first question: from the evidence in run.started, and from nothing that a caller said.
func (j *Journal) processesOf(runs []action.RunID) whose {
	seen := map[string]bool{}
	certain := true
	for _, id := range runs {
		rec, ok := j.runs[id]
		if !ok || rec.Event.RunBody.Actor.Evidence.PID == 0 {
			return noProcess
		}
		run := *rec.Event.RunBody
		seen[process(run.Actor.Evidence)] = true
		certain = certain && ofOneProcess(run)
	}
	switch {
	case len(seen) > 1:
		return someProcesses
	case certain:
		return oneProcess
	default:
		return oneRun
	}
}

// process tells processes apart: a number alone is given out again.
func process(e action.Evidence) string {
	return fmt.Sprintf("process\x00%s\x00%d\x00%d", e.BootID, e.PID, e.StartTime)
}

// ofOneProcess reports whether a run is the life of one process, and not a task that its caller named and that another
// process may go on with. The run's key tells: the gateway makes it of one or of the other. A key made in any other way
// gives the careful answer.
func ofOneProcess(run action.Run) bool {
	parts := []string{"deed-run/1", run.Actor.String(), process(run.Actor.Evidence)}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return run.Actor.Evidence.PID != 0 && run.Key == hex.EncodeToString(sum[:])
}

// whoAsked answers for one action: whose calls belong to it.
func (j *Journal) whoAsked(h *history) (answer, whose) {
	var a answer
	runs := h.runs()
	w := j.processesOf(runs)
	a.say(leadOf(w, len(runs)))
	for i, id := range runs {
		j.citeRun(&a, id)
		a.say(fmt.Sprintf("%s %s: %s.", numbered("Run", i, len(runs)), id, j.madeBy(id, h)))
	}
	a.sentences = append(a.sentences, w.reserve()...)
	for _, c := range h.calls {
		a.cite(c, correlation(c.Event.CallBody.Protocol))
	}
	return a, w
}

// whoAskedBoth answers for two actions: who asked for each.
func (j *Journal) whoAskedBoth(first, second *history) (answer, whose) {
	var a answer
	runs := []action.RunID{first.body().Run}
	if other := second.body().Run; other != runs[0] {
		runs = append(runs, other)
	}
	w := j.processesOf(runs)
	a.say(leadOf(w, len(runs)))
	if len(runs) == 1 {
		a.say(fmt.Sprintf("Run %s asked for both: %s.", runs[0], j.openedBy(runs[0])))
	} else {
		a.say(fmt.Sprintf("Run %s asked for the first: %s.", runs[0], j.openedBy(runs[0])))
		a.say(fmt.Sprintf("Run %s asked for the second: %s.", runs[1], j.openedBy(runs[1])))
	}
	a.sentences = append(a.sentences, w.reserve()...)
	for _, id := range runs {
		j.citeRun(&a, id)
	}
	for _, h := range []*history{first, second} {
		for _, c := range h.kind(action.CallAccepted) {
			a.cite(c, correlation(c.Event.CallBody.Protocol))
		}
	}
	return a, w
}

func leadOf(w whose, runs int) string {
	switch {
	case w == oneProcess && runs == 1:
		return "One process, in one run."
	case w == oneProcess:
		return fmt.Sprintf("One process, in %d runs.", runs)
	case w == someProcesses && runs == 2:
		return "Two processes, in two runs."
	case w == someProcesses:
		return fmt.Sprintf("More than one process, in %d runs.", runs)
	case w == oneRun && runs == 1:
		return "One run, opened by one process."
	case w == oneRun:
		return fmt.Sprintf("%d runs, opened by one process.", runs)
	case runs == 1:
		return "One run; which process it was is not on record."
	default:
		return fmt.Sprintf("%d runs; which processes they were is not on record for each.", runs)
	}
}

// reserve says what keeps the answer from being certain.
func (w whose) reserve() []string {
	if w == oneRun {
		return []string{"The agent named the run itself, so another process of the same actor may have gone on with it."}
	}
	return nil
}

// madeBy says who opened a run, and what came from it for the action.
func (j *Journal) madeBy(id action.RunID, h *history) string {
	n := 0
	for _, c := range h.calls {
		if c.Event.Run == id {
			n++
		}
	}
	return fmt.Sprintf("%s; %s", j.openedBy(id), count(n, "call"))
}

// openedBy describes the process or the principal behind a run.
func (j *Journal) openedBy(id action.RunID) string {
	rec, ok := j.runs[id]
	if !ok {
		return "its beginning stands in another part of the journal"
	}
	actor := rec.Event.RunBody.Actor
	if actor.Evidence.PID == 0 {
		return fmt.Sprintf("%s (%s, no process named)", actor, actor.Strength)
	}
	via := ""
	if actor.Evidence.Via != "" {
		via = ", through " + actor.Evidence.Via
	}
	return fmt.Sprintf("process %d, %s (%s%s)", actor.Evidence.PID, actor, actor.Strength, via)
}

func (j *Journal) citeRun(a *answer, id action.RunID) {
	rec, ok := j.runs[id]
	if !ok {
		return
	}
	note := "no process named"
	if e := rec.Event.RunBody.Actor.Evidence; e.PID != 0 {
		note = fmt.Sprintf("process %d", e.PID)
	}
	a.cite(rec, note)
}

// correlation is what the protocol said of a call: evidence, never identity. A caller writes its request ids, so a long
// one is cut.
func correlation(c action.Correlation) string {
	const longest = 40
	id := []rune(c.RequestID)
	switch {
	case len(id) == 0:
		return c.Transport
	case len(id) > longest:
		id = append(id[:longest], '…')
	}
	return fmt.Sprintf("%s, request %s", c.Transport, string(id))
}
