package action

import "strings"

// Identifiers are opaque, unique, prefixed by kind and safe to show: they carry a time and random bits, never an
// argument or a secret. The gateway makes all of them; one that a caller sends is evidence at most.
type (
	RunID         string // run_: one agent process's life, or one task in it
	CallID        string // call_: one arriving request
	IntentID      string // int_: one decision of the agent to use a tool with arguments
	ID            string // act_: one intended external effect; execution_id is the same value under its other name
	AttemptID     string // att_: one actual send
	EventID       string // evt_: one journal entry
	DecisionID    string // apr_: a decision, of a person or of the policy, bound to one action
	ResultID      string // result_: one stored answer of a target
	ObservationID string // obs_: what was learned of an action apart from its attempts
	OwnerID       string // own_: one life of a gateway, which holds a lease while it lives
)

// Prefixes of the identifiers above.
const (
	RunPrefix         = "run_"
	CallPrefix        = "call_"
	IntentPrefix      = "int_"
	Prefix            = "act_"
	AttemptPrefix     = "att_"
	EventPrefix       = "evt_"
	DecisionPrefix    = "apr_"
	ResultPrefix      = "result_"
	ObservationPrefix = "obs_"
	OwnerPrefix       = "own_"
	RepeatPrefix      = "rep_" // the token that stands only in a completed result
)

// idLength is the length of the part after the prefix: 128 bits in Crockford's base 32.
const idLength = 26

// ValidID reports whether s is an identifier of the kind that prefix names.
func ValidID(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != idLength {
		return false
	}
	for _, c := range rest {
		if !strings.ContainsRune("0123456789abcdefghjkmnpqrstvwxyz", c) {
			return false
		}
	}
	return true
}
