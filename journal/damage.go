package journal

import "fmt"

// Reason says what is wrong with the first bad record.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	ReasonTornTail    Reason = "torn_tail"   // the file ends inside a line
	ReasonFraming     Reason = "framing"     // the line is no record
	ReasonContent     Reason = "content"     // the body does not have the hash that the line states
	ReasonProfile     Reason = "profile"     // the hash is right, and the body breaks the profile
	ReasonPredecessor Reason = "predecessor" // prev is not the hash of the record before
	ReasonSequence    Reason = "sequence"    // seq is not the number that comes next

	// Between two segments only.
	ReasonMissing Reason = "missing" // the next segment begins with a later record
	ReasonHeader  Reason = "header"  // its header is of another journal, or of other records
)

// BadRecord is the first record of a journal that is not in order.
type BadRecord struct {
	Sequence uint64 // the number that the record at this place should have
	Reason   Reason

	// For ReasonPredecessor: the hash of the record before, and the prev of this one.
	// For ReasonContent: the hash that the line states, and the one that the body has.
	Expected, Observed Hash

	ObservedSequence uint64        // for ReasonSequence and ReasonMissing: the number that is there instead
	Profile          *ProfileError // for ReasonProfile: the rule
	TornBytes        int           // for ReasonTornTail: the length of what is left
}

func (b *BadRecord) Error() string {
	text := fmt.Sprintf("record %d: %s", b.Sequence, b.Reason)
	switch b.Reason {
	case ReasonContent, ReasonPredecessor:
		return fmt.Sprintf("%s: expected %s, observed %s", text, b.Expected, b.Observed)
	case ReasonSequence, ReasonMissing:
		return fmt.Sprintf("%s: expected %d, observed %d", text, b.Sequence, b.ObservedSequence)
	case ReasonProfile:
		return fmt.Sprintf("%s: %s", text, b.Profile)
	case ReasonTornTail:
		return fmt.Sprintf("%s: %d bytes", text, b.TornBytes)
	}
	return text
}

func (b *BadRecord) Unwrap() error {
	if b.Profile == nil {
		return nil // not a nil *ProfileError, which errors.As would hand out
	}
	return b.Profile
}
