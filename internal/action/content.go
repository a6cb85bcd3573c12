package action

import "time"

// ContentRead records that protected content of an action was opened for a person, before it was shown. It changes nothing
// about the action.
type ContentRead struct {
	Reader   string   // the verified principal, as records show it
	Strength Strength // how well it was verified
	Why      string   // in the reader's words
	Kinds    []string // what was opened: the kinds of payload that were there
}

// ReadAsked is what a person wants to see, and why.
type ReadAsked struct {
	Action ID
	Why    string
}

// Content is the protected content of one action. What is nil was never there.
type Content struct {
	Arguments []byte // as the agent gave them, after defaults
	Operation *Operation
	Answer    []byte
	Headers   []byte            // of the answer: the few that are kept, as JSON
	Job       []byte            // the target's own name for work that it took on
	Evidence  []EvidenceContent // the target's answers to questions, in the order of the observations
	At        time.Time         // when the reading was recorded
}

// EvidenceContent is a target's answer to one question.
type EvidenceContent struct {
	Observation ObservationID
	Body        []byte
}
