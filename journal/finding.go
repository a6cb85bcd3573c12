package journal

import "fmt"

// Finding is what checkpoints say about an export: the verdict named signature in a
// Report, and the one named anchoring. The zero value is that nothing was checked.
type Finding struct {
	Kind FindingKind
	Size uint64 // of the checkpoint that it is about, for Partly, Truncated and RootDiffers
	End  uint64 // the number after the last record of the export

	// Required says that records after the checkpoint are a finding and not only a
	// remark.
	Required bool
}

// FindingKind is the kind of a Finding.
type FindingKind int

// The findings.
const (
	NotChecked  FindingKind = iota // no key was given, or the export cannot be held against the checkpoint
	Covered                        // a trusted checkpoint covers all records
	Partly                         // a trusted checkpoint covers the records before Size
	Absent                         // no checkpoint of that kind was given
	Invalid                        // the checkpoint is not one of this journal that its log signed
	Truncated                      // the checkpoint is of more records than there are
	RootDiffers                    // the checkpoint is of other records than these
)

// String returns the words for it, without a name before them. What is said to be
// valid to N includes record N; the other numbers count records from 0.
func (f Finding) String() string {
	switch f.Kind {
	case Covered:
		return "valid"
	case Partly:
		if f.Size == 0 {
			return fmt.Sprintf("valid for no record, %s not anchored", records(f.End))
		}
		return fmt.Sprintf("valid to %d, %s not anchored", f.Size-1, records(f.End-f.Size))
	case Absent:
		return "absent"
	case Invalid:
		return "invalid"
	case Truncated:
		return fmt.Sprintf("truncated: checkpoint has %d, file ends at %d", f.Size, f.End)
	case RootDiffers:
		return fmt.Sprintf("root differs at %d", f.Size)
	}
	return "unchecked"
}

// line puts the name in front, unless the words are a verdict of their own.
func (f Finding) line(name string) string {
	if f.Kind == Truncated || f.Kind == RootDiffers {
		return f.String()
	}
	return name + ": " + f.String()
}

// ExitCode returns what the finding alone makes a program end with.
func (f Finding) ExitCode() int {
	switch f.Kind {
	case Covered:
		return ExitGood
	case Partly:
		if f.Required {
			return ExitNotAnchored
		}
		return ExitGood
	case Invalid, Truncated, RootDiffers:
		return ExitDamaged
	}
	return ExitUnproven
}

func records(n uint64) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}
