// Package crashpoint names the places where the crash lab may stop the process. In a normal build they are empty and the
// compiler removes them; with the build tag crashpoint, the environment says where to stop:
//
//	DEED_CRASH_AT=after_effect     stop the first time that place is reached
//	DEED_CRASH_AT=after_effect#3   stop the third time
//	DEED_CRASH_FILE=path           note the place there, synced to disk: proof for the parent that it was reached
//	DEED_CRASH_SELF=1              end by SIGKILL; without it the goroutine parks there and the parent kills the process
//
// Either way nothing is flushed, no deferred call runs and no signal handler sees it coming.
//
// The package knows where the places are. It refuses to know what is going on there.
package crashpoint

// The places. Each of the first four lies in one of the gaps between which a crash leaves different records.
const (
	BeforeClaim  = "before_claim"  // W1: a call arrived, and nothing is written about it
	AfterPlan    = "after_plan"    // W2: the planned record is durable, and nothing was sent
	AfterEffect  = "after_effect"  // W3: the target has answered, and the outcome is not written
	AfterOutcome = "after_outcome" // W4: the outcome is durable, and the agent has not been told

	AfterQuestion = "after_question" // a question to the target is planned, and nothing was asked
	AfterAnswer   = "after_answer"   // the target has answered a question, and nothing is written of it
	AfterEvidence = "after_evidence" // what was learned is durable, and nothing was done about it
)

// Names lists every place. A place that is not listed cannot be armed.
var Names = []string{BeforeClaim, AfterPlan, AfterEffect, AfterOutcome, AfterQuestion, AfterAnswer, AfterEvidence}
