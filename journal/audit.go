package journal

import (
	"cmp"
	"errors"
	"io"
	"slices"
)

// Evidence is what an export is held against. None of it comes out of the export.
type Evidence struct {
	// Policy says whose signatures count: TrustLogs(key) for the key of the log alone.
	// Without one no signature is checked, only roots.
	Policy *Policy

	// Beside is the signed checkpoint that lies beside the export; nil when there is
	// none. Kept are signed checkpoints from elsewhere, of any age.
	Beside []byte
	Kept   [][]byte

	// Closed are the checkpoints that lie beside earlier segments. Like Beside they are
	// in the hands of whoever holds the export, so they can only speak against it.
	Closed [][]byte

	// Whole asks for the journal from record 0 on, and so turns old segments that were
	// removed into a finding.
	Whole bool

	// Progress, if not nil, is called now and then with the bytes read so far.
	Progress func(bytes int64)
}

// Audit verifies an export, in one file or in segments in their order, against all
// evidence in one pass. It holds one line in memory, whatever the length, and changes
// nothing. The oldest segments may be missing, as they are when they were kept long
// enough; a gap is found. The error is about reading only, and the Report then has
// exit code 4; all else is in the Report.
func Audit(evidence Evidence, segments ...io.Reader) (Report, error) {
	a := audit{evidence: evidence}
	a.open(evidence.Beside, true)
	for _, closed := range evidence.Closed {
		a.open(closed, true)
	}
	for _, kept := range evidence.Kept {
		a.open(kept, false)
	}
	a.watched = make([]*CheckpointReport, 0, len(a.checkpoints))
	for i := range a.checkpoints {
		a.watched = append(a.watched, &a.checkpoints[i])
	}
	slices.SortStableFunc(a.watched, func(x, y *CheckpointReport) int { return cmp.Compare(x.Size, y.Size) })
	a.begun, a.added = a.pastOlder, a.compare
	counted := &counter{progress: evidence.Progress}
	readers := make([]io.Reader, len(segments))
	for i, r := range segments {
		readers[i] = counted.of(r)
	}
	err := a.all(readers...)
	return a.report(err), err
}

// CheckpointReport is what became of one checkpoint.
type CheckpointReport struct {
	Opened
	Beside  bool        // it lay beside the export
	Trusted bool        // the policy's log signed it
	Kind    FindingKind // Covered, here, is that the root is that of the records before Size
	Err     error       // for Invalid: a *SignatureError
	Older   bool        // it is of a time before the first record of the export
}

type audit struct {
	reading
	evidence    Evidence
	checkpoints []CheckpointReport
	watched     []*CheckpointReport // in order of size, those not yet reached
}

// open reads a checkpoint before anything of the export is known.
func (a *audit) open(signed []byte, beside bool) {
	if signed == nil {
		return
	}
	c := CheckpointReport{Beside: beside}
	if a.evidence.Policy != nil {
		c.Opened, c.Err = a.evidence.Policy.Open(signed)
		c.Trusted = c.Err == nil
	} else if c.Checkpoint, c.Err = ReadCheckpoint(signed); c.Err != nil {
		c.Err = &SignatureError{Problem: ProblemMalformed}
	}
	if c.Err != nil {
		c.Kind = Invalid
	}
	a.checkpoints = append(a.checkpoints, c)
}

// pastOlder leaves out the checkpoints that the export has no records of.
func (a *audit) pastOlder() {
	for len(a.watched) > 0 && a.watched[0].Size < a.v.start {
		a.watched[0].Older = true
		a.watched = a.watched[1:]
	}
	a.compare()
}

// compare holds the root of the records so far against the checkpoints of that size.
func (a *audit) compare() {
	for len(a.watched) > 0 && a.watched[0].Size == a.v.next {
		c := a.watched[0]
		a.watched = a.watched[1:]
		switch {
		case c.Kind != NotChecked || a.v.noTree:
		case c.Root == a.v.root():
			c.Kind = Covered
		default:
			c.Kind = RootDiffers
		}
	}
}

// report sums up when all was read, or as much as could be.
func (a *audit) report(readError error) Report {
	r := Report{Result: a.v.Result(), End: a.v.next, Unreadable: readError != nil, Whole: a.evidence.Whole, start: a.v.start}
	if r.Unreadable {
		r.Chain = Unchecked
	}
	r.Profile = r.Chain
	if r.Bad != nil {
		r.Profile = Unchecked
		if r.Bad.Reason == ReasonProfile {
			r.Profile = Broken
		}
	}
	endSeen := !r.Unreadable && (r.Bad == nil || r.Bad.Reason == ReasonTornTail)
	for _, c := range a.watched {
		if c.Kind == NotChecked && endSeen {
			c.Kind = Truncated
		}
	}
	for i := range a.checkpoints {
		if c := &a.checkpoints[i]; c.Kind != Invalid && r.Origin != "" && c.Origin != r.Origin {
			c.Kind, c.Err, c.Trusted = Invalid, &SignatureError{Problem: ProblemOrigin}, false
		}
	}
	r.Checkpoints = a.checkpoints
	r.Signature = a.signature(r.End)
	r.Anchoring, r.AnchoringAsked = a.anchoring(r.End)
	return r
}

// signature judges the checkpoint beside the export, and takes what was kept elsewhere
// for as good where it covers more.
func (a *audit) signature(end uint64) Finding {
	found := Finding{Kind: Absent, End: end, Required: true}
	best := -1
	for i, c := range a.checkpoints {
		if c.Beside {
			switch c.Kind {
			case Invalid, Truncated, RootDiffers:
				return Finding{c.Kind, c.Size, end, true}
			}
		}
		if c.Beside || a.evidence.Policy == nil {
			found.Kind = NotChecked
		}
		if c.Kind == Covered && c.Trusted && (best < 0 || c.Size > a.checkpoints[best].Size) {
			best = i
		}
	}
	if best >= 0 {
		return found.covering(a.checkpoints[best].Size)
	}
	return found
}

// anchoring judges what outsiders hold: the checkpoints that were kept elsewhere, or,
// where the policy asks for witnesses, those that enough witnesses have signed.
func (a *audit) anchoring(end uint64) (found Finding, asked bool) {
	witnesses := a.evidence.Policy != nil && a.evidence.Policy.AsksForWitnesses()
	found = Finding{Kind: Absent, End: end, Required: witnesses}
	best, worst := -1, -1
	for i, c := range a.checkpoints {
		counts := !c.Beside
		if !c.Beside {
			asked = true
			if c.Kind >= Invalid && (worst < 0 || a.worse(i, worst)) {
				worst = i
			}
		}
		if witnesses {
			counts = c.Quorum
		}
		switch {
		case !counts:
		case c.Kind == NotChecked:
			found.Kind = NotChecked
		case c.Kind == Covered && (best < 0 || c.Size > a.checkpoints[best].Size):
			best = i
		}
	}
	switch {
	case worst >= 0:
		return Finding{a.checkpoints[worst].Kind, a.checkpoints[worst].Size, end, witnesses}, true
	case best >= 0:
		return found.covering(a.checkpoints[best].Size), true
	}
	return found, asked || witnesses
}

// worse says which of two bad checkpoints tells more: other records before fewer
// records, and among those the earliest; the largest of those that were cut.
func (a *audit) worse(i, j int) bool {
	x, y := a.checkpoints[i], a.checkpoints[j]
	if x.Kind != y.Kind {
		return x.Kind > y.Kind
	}
	return x.Kind == RootDiffers && x.Size < y.Size || x.Kind == Truncated && x.Size > y.Size
}

// covering is the finding when the newest good checkpoint is of that size.
func (f Finding) covering(size uint64) Finding {
	f.Kind, f.Size = Partly, size
	if size == f.End {
		f.Kind = Covered
	}
	return f
}

// counter counts what is read through it.
type counter struct {
	progress func(int64)
	bytes    int64
}

// of counts the bytes of the next reader too.
func (c *counter) of(r io.Reader) io.Reader {
	if c.progress == nil {
		return r
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		c.bytes += int64(n)
		if n > 0 || errors.Is(err, io.EOF) {
			c.progress(c.bytes)
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
