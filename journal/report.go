package journal

import (
	"errors"
	"fmt"
	"strings"
)

// The codes with which a program that audits ends. Where several apply, unreadable
// comes first, then damage, then what is unproven, then what is not anchored.
const (
	ExitGood        = 0
	ExitDamaged     = 1 // the chain is broken, a signature is false, or a checkpoint contradicts the export
	ExitUnproven    = 2 // there was no checkpoint, or no key or range to check it with
	ExitNotAnchored = 3 // records after the newest checkpoint
	ExitUnreadable  = 4
)

// Report is what an audit found. Its verdicts are apart from each other: the chain,
// the profile, the signature of the log, and what outsiders hold.
type Report struct {
	Result
	End         uint64 // the number after the last good record: what a checkpoint of all would state
	Profile     Verdict
	Signature   Finding
	Anchoring   Finding
	Checkpoints []CheckpointReport // in the order of the evidence
	Unreadable  bool               // reading failed, and the end was not seen
	Whole       bool               // the journal was asked for from record 0 on

	// AnchoringAsked says that there was a checkpoint from elsewhere, or a policy that
	// asks for witnesses. Without, Anchoring is no verdict.
	AnchoringAsked bool

	start uint64
}

// Missing returns how many records before the first are not there although the whole
// journal was asked for.
func (r Report) Missing() uint64 {
	if !r.Whole {
		return 0
	}
	return r.start
}

// ExitCode returns the code of the report.
func (r Report) ExitCode() int {
	codes := []int{r.Signature.ExitCode()}
	if r.AnchoringAsked {
		codes = append(codes, r.Anchoring.ExitCode())
	}
	switch {
	case r.Unreadable:
		codes = append(codes, ExitUnreadable)
	case r.Chain == Broken || r.Missing() > 0:
		codes = append(codes, ExitDamaged)
	case r.Chain == Unchecked:
		codes = append(codes, ExitUnproven)
	}
	for _, code := range []int{ExitUnreadable, ExitDamaged, ExitUnproven, ExitNotAnchored} {
		for _, c := range codes {
			if c == code {
				return code
			}
		}
	}
	return ExitGood
}

// Text returns the report as lines: five when all is well, one more when anchoring was
// asked for, and the damage in the place of what it contradicts.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("records_checked: %d", r.RecordsChecked)
	if r.RecordsChecked > 0 {
		line("first_sequence: %d", r.FirstSequence)
		line("last_sequence: %d", r.LastSequence)
	}
	line("chain: %s", r.Chain)
	if r.Unreadable {
		line("unreadable: after %d", r.End)
	}
	if r.Bad != nil {
		r.Bad.describe(line)
	}
	if missing := r.Missing(); missing > 0 {
		line("missing: records 0 to %d", missing-1)
	}
	signature := r.Signature.line("signature")
	line("%s", signature)
	if anchoring := r.Anchoring.line("anchoring"); r.AnchoringAsked && anchoring != signature {
		line("%s", anchoring)
	}
	return b.String()
}

// describe writes the lines of the first bad record.
func (b *BadRecord) describe(line func(string, ...any)) {
	line("first_bad_sequence: %d", b.Sequence)
	line("reason: %s", b.Reason)
	switch b.Reason {
	case ReasonPredecessor:
		line("expected_predecessor: %s", b.Expected)
		line("observed_predecessor: %s", b.Observed)
	case ReasonContent:
		line("expected_hash: %s", b.Expected)
		line("observed_hash: %s", b.Observed)
	case ReasonSequence:
		line("expected_sequence: %d", b.Sequence)
		line("observed_sequence: %d", b.ObservedSequence)
	case ReasonMissing:
		line("missing: records %d to %d", b.Sequence, b.ObservedSequence-1)
	case ReasonProfile:
		line("rule: %s", b.Profile.Rule)
	case ReasonTornTail:
		line("torn_tail: %d bytes", b.TornBytes)
	}
}

// Explain says in plain words what this audit proved and what it did not.
func (r Report) Explain() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "- "+format+"\n", args...) }
	b.WriteString("Proved:\n")
	if r.RecordsChecked > 0 {
		say("Records %d to %d are there without a gap. Each has the hash that its line states, names the hash of the record before it, and keeps the profile.", r.FirstSequence, r.LastSequence)
	}
	for _, c := range r.Checkpoints {
		r.explainGood(c, say)
	}
	if r.RecordsChecked == 0 {
		say("Nothing about any record, since none was checked.")
	}
	b.WriteString("Found:\n")
	before := b.Len()
	if r.Unreadable {
		say("Reading failed after record number %d was due. Nothing is known of what follows.", r.End)
	}
	if r.Bad != nil {
		say("%s", r.Bad.explain())
	}
	if missing := r.Missing(); missing > 0 {
		say("The first %s of the journal were asked for and are not there.", records(missing))
	}
	for _, c := range r.Checkpoints {
		r.explainBad(c, say)
	}
	if b.Len() == before {
		say("No damage.")
	}
	b.WriteString("Not proved:\n")
	r.explainLimits(say)
	return b.String()
}

func (r Report) explainGood(c CheckpointReport, say func(string, ...any)) {
	if c.Kind != Covered {
		return
	}
	signed := "whose signature was not checked"
	if c.Trusted {
		signed = "which the log has signed"
	}
	say("The first %s of the journal are those of the checkpoint %s, %s.", records(c.Size), place(c), signed)
	for _, w := range c.Cosignatures {
		say("The witness %s saw that checkpoint, by its own clock at %s.", w.Witness, w.Time.Format("2006-01-02T15:04:05Z"))
	}
}

func place(c CheckpointReport) string {
	if c.Beside {
		return "beside the file"
	}
	return "that was kept elsewhere"
}

func (r Report) explainBad(c CheckpointReport, say func(string, ...any)) {
	switch c.Kind {
	case Invalid:
		say("A checkpoint %s was not used: %s.", place(c), c.Err)
	case Truncated:
		say("The checkpoint %s is of %s, and the file ends after record number %d was due: %s at the end were cut off, or never handed over.", place(c), records(c.Size), r.End, records(c.Size-r.End))
	case RootDiffers:
		if c.Trusted {
			say("The log has signed other records than these: at the size %d the checkpoint %s has another root. These records were written anew after that checkpoint, or another journal was put under its name.", c.Size, place(c))
		} else {
			say("At the size %d the checkpoint %s has another root, so it is of other records than these.", c.Size, place(c))
		}
	case NotChecked:
		switch {
		case c.Older:
			say("The checkpoint of %s %s is older than the first record here and could not be compared.", records(c.Size), place(c))
		case r.Bad == nil && !r.RootKnown:
			say("The checkpoint of %s %s could not be compared: the file starts in the middle and has no #range line.", records(c.Size), place(c))
		default:
			say("The checkpoint of %s %s could not be compared, since the records up to it could not be read.", records(c.Size), place(c))
		}
	}
}

func (r Report) explainLimits(say func(string, ...any)) {
	if r.RecordsChecked > 0 && r.FirstSequence > 0 {
		say("Anything about the %s before the first one here.", records(r.FirstSequence))
	}
	switch r.Signature.Kind {
	case Absent, NotChecked, Invalid:
		say("Who wrote these records. No checkpoint of theirs could be checked with a key from outside, so all of them may have been written anew, and any number may have been cut off at the end.")
	case Partly:
		say("The last %s. They are after the newest checkpoint and are not anchored: they may have been written anew, and more may have been cut off.", records(r.End-r.Signature.Size))
	}
	switch {
	case !r.AnchoringAsked:
		say("That anybody outside has seen them. Whoever holds both the key of the log and its storage can write the whole file and its checkpoint anew. Hand in a checkpoint that was kept elsewhere, or a policy that names witnesses.")
	case r.Anchoring.Kind == Partly:
		say("That anybody outside has seen the last %s. Whoever holds both the key of the log and its storage can write these anew.", records(r.End-r.Anchoring.Size))
	case r.Anchoring.Kind == Absent:
		say("That enough witnesses have seen any of them, which the policy asks for.")
	}
	say("That every action was written down. An action that was never written cannot be found here.")
	say("That what was written down was true, or right.")
}

// explain says what is wrong with the record, and what it need not mean.
func (b *BadRecord) explain() string {
	switch b.Reason {
	case ReasonTornTail:
		return fmt.Sprintf("The file ends inside a line: %d bytes are left of record %d. A crash or a full disk while the file was written does this too. The records before it are whole; nothing was repaired.", b.TornBytes, b.Sequence)
	case ReasonFraming:
		return fmt.Sprintf("Where record %d should be there is no record line.", b.Sequence)
	case ReasonContent:
		return fmt.Sprintf("Record %d was changed after its hash was taken.", b.Sequence)
	case ReasonPredecessor:
		return fmt.Sprintf("Record %d does not follow the record before it: one of the two was changed, removed, inserted or moved.", b.Sequence)
	case ReasonSequence:
		return fmt.Sprintf("Where record %d should be there is number %d.", b.Sequence, b.ObservedSequence)
	case ReasonMissing:
		return fmt.Sprintf("A segment is missing: records %d to %d.", b.Sequence, b.ObservedSequence-1)
	case ReasonHeader:
		return fmt.Sprintf("The segment that starts at record %d has a header of another journal, or of other records before it.", b.Sequence)
	case ReasonProfile:
		var broken *ProfileError
		if errors.As(b, &broken) {
			return fmt.Sprintf("Record %d has the right hash and breaks a rule of the format (%s): its writer has a fault. It was not changed afterwards.", b.Sequence, broken.Rule)
		}
	}
	return b.Error()
}
