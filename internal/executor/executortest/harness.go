// Package executortest is the suite that every executor passes, whatever its channel. It runs against real targets, and
// believes the target's own record of what arrived, never the outcome alone.
package executortest

import (
	"context"
	"testing"

	"deed.dev/deed/internal/action"
)

// Executor is what is tested: one attempt of one operation.
type Executor interface {
	Perform(context.Context, action.Dispatch) action.Outcome
	Close()
}

// Behaviour is what a target does with a request that arrives.
type Behaviour string

// Behaviours. A harness leaves out those that its channel cannot show.
const (
	Answers   Behaviour = "answers"     // has the effect and says so; the answer holds the token and echoes the credential
	Refuses   Behaviour = "refuses"     // says that it had no effect, and the contract believes it
	ComeLater Behaviour = "come later"  // refuses for now, and the contract promises that trying again is meant (429)
	Fails     Behaviour = "fails"       // says that something went wrong; the contract knows no more (500)
	Overload  Behaviour = "overload"    // says that it is unavailable; the contract says nothing (503)
	Breaks    Behaviour = "breaks"      // takes the request, has the effect, and breaks the connection
	Hangs     Behaviour = "hangs"       // takes the request, has the effect, and never answers
	CutsShort Behaviour = "cuts short"  // breaks off in the middle of an answer that proves nothing so far
	Absent    Behaviour = "is not here" // nobody listens
)

// Target is a real target with a record of its own.
type Target interface {
	// Dispatch makes a dispatch that is complete and allowed. The token tells it from others.
	Dispatch(token string) action.Dispatch
	// Become changes the behaviour. Connections stay as they are.
	Become(Behaviour)
	// Seen is how many requests with the token arrived, by the target's own record.
	Seen(token string) int
	// Arrived is how many requests arrived in all.
	Arrived() int
}

// Harness makes what the suite needs for one channel.
type Harness struct {
	Executor   func(*testing.T) Executor
	Target     func(*testing.T) Target // at first it answers
	Behaviours []Behaviour
	Canary     string // the value of the credential that dispatches use
	ReadsLate  bool   // an answer that a target held back and then gives is handed to the dispatch's Late
}

// Run tests an executor.
func Run(t *testing.T, h Harness) {
	t.Run("OneRequestPerAttempt", h.oneRequestPerAttempt)
	t.Run("SilenceIsNoFailure", h.silenceIsNoFailure)
	t.Run("CancelledBeforeSending", h.cancelledBeforeSending)
	t.Run("CancelledWhileWaiting", h.cancelledWhileWaiting)
	t.Run("LateIsCalledOnceAtMost", h.lateIsCalledOnceAtMost)
	t.Run("UnboundDispatchSendsNothing", h.unboundDispatchSendsNothing)
	t.Run("ParallelAttemptsKeepTheirAnswers", h.parallelAttemptsKeepTheirAnswers)
	t.Run("NothingRunsAfterClose", h.nothingRunsAfterClose)
}
