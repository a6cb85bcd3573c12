package audit

import (
	"encoding/base64"

	"deed.dev/deed/journal"
)

// Report is what an audit found, for machines. The words of the verdicts are those of the text.
type Report struct {
	Exit           int               `json:"exit_code"`
	Origin         string            `json:"origin,omitempty"`
	RecordsChecked uint64            `json:"records_checked"`
	FirstSequence  *uint64           `json:"first_sequence,omitempty"` // absent when no record was checked
	LastSequence   *uint64           `json:"last_sequence,omitempty"`
	Chain          string            `json:"chain"`
	Profile        string            `json:"profile"`
	Signature      string            `json:"signature"`
	Anchoring      string            `json:"anchoring,omitempty"` // absent when nobody asked for it
	Size           uint64            `json:"size"`                // what a checkpoint of all good records would state
	Root           string            `json:"root,omitempty"`      // base64, as checkpoints have it
	Missing        uint64            `json:"missing_records,omitempty"`
	Unreadable     bool              `json:"unreadable,omitempty"`
	Bad            *Bad              `json:"first_bad,omitempty"`
	Checkpoints    []CheckpointFound `json:"checkpoints"`
	Explanation    string            `json:"explanation"`
}

// Bad is the first record that is not in order.
type Bad struct {
	Sequence         uint64         `json:"sequence"`
	Reason           journal.Reason `json:"reason"`
	Expected         string         `json:"expected,omitempty"`
	Observed         string         `json:"observed,omitempty"`
	ObservedSequence *uint64        `json:"observed_sequence,omitempty"`
	Rule             journal.Rule   `json:"rule,omitempty"`
	TornBytes        int            `json:"torn_bytes,omitempty"`
}

// CheckpointFound is what became of one checkpoint.
type CheckpointFound struct {
	Beside    bool     `json:"beside"` // it lay beside the export
	Origin    string   `json:"origin,omitempty"`
	Size      uint64   `json:"size"`
	Verdict   string   `json:"verdict"`
	Trusted   bool     `json:"trusted"` // the policy's log signed it
	Keys      []string `json:"keys,omitempty"`
	Witnesses []string `json:"witnesses,omitempty"`
	Problem   string   `json:"problem,omitempty"`
}

var verdicts = map[journal.FindingKind]string{
	journal.NotChecked: "unchecked", journal.Covered: "valid", journal.Partly: "valid", journal.Absent: "absent", journal.Invalid: "invalid",
	journal.Truncated: "truncated", journal.RootDiffers: "root differs",
}

// ReportOf puts a journal.Report into members.
func ReportOf(r journal.Report) Report {
	view := Report{
		Exit: r.ExitCode(), Origin: r.Origin, RecordsChecked: r.RecordsChecked, Chain: r.Chain.String(), Profile: r.Profile.String(),
		Signature: r.Signature.String(), Size: r.End, Missing: r.Missing(), Unreadable: r.Unreadable, Explanation: r.Explain(),
		Checkpoints: []CheckpointFound{},
	}
	if r.RecordsChecked > 0 {
		view.FirstSequence, view.LastSequence = &r.FirstSequence, &r.LastSequence
	}
	if r.RootKnown {
		view.Root = base64.StdEncoding.EncodeToString(r.Root[:])
	}
	if r.AnchoringAsked {
		view.Anchoring = r.Anchoring.String()
	}
	if r.Bad != nil {
		view.Bad = badOf(*r.Bad)
	}
	for _, c := range r.Checkpoints {
		found := CheckpointFound{Beside: c.Beside, Origin: c.Origin, Size: c.Size, Verdict: verdicts[c.Kind], Trusted: c.Trusted}
		for _, key := range c.Logs {
			found.Keys = append(found.Keys, key.String())
		}
		for _, w := range c.Cosignatures {
			found.Witnesses = append(found.Witnesses, w.Witness)
		}
		if c.Err != nil {
			found.Problem = c.Err.Error()
		}
		view.Checkpoints = append(view.Checkpoints, found)
	}
	return view
}

func badOf(b journal.BadRecord) *Bad {
	view := &Bad{Sequence: b.Sequence, Reason: b.Reason, TornBytes: b.TornBytes}
	switch b.Reason {
	case journal.ReasonContent, journal.ReasonPredecessor:
		view.Expected, view.Observed = b.Expected.String(), b.Observed.String()
	case journal.ReasonSequence, journal.ReasonMissing:
		view.ObservedSequence = &b.ObservedSequence
	}
	if b.Profile != nil {
		view.Rule = b.Profile.Rule
	}
	return view
}
