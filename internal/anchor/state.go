package anchor

import (
	"fmt"
	"time"
)

// State is how anchoring stands, for people and machines.
type State struct {
	Warning    string       `json:"warning,omitempty"`
	Open       bool         `json:"open"`             // new sends are allowed, as far as anchoring goes
	Closed     string       `json:"closed,omitempty"` // why they are not
	Records    int64        `json:"unanchored_records"`
	Age        int64        `json:"unanchored_age_seconds"`
	MaxRecords int64        `json:"max_unanchored_records"`
	MaxAge     int64        `json:"max_unanchored_age_seconds"`
	Need       int          `json:"need"`
	Places     []PlaceState `json:"places"`
}

// PlaceState is how one place stands.
type PlaceState struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Checked bool   `json:"checked"` // it was asked since the start, and the journal continues what it holds
	Size    uint64 `json:"size"`    // of the newest checkpoint that it holds, as far as is known
	Behind  int64  `json:"behind"`  // records
	Kept    string `json:"kept,omitempty"`
	Failing string `json:"failing_since,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// NoPlace is the warning while no place is configured.
const NoPlace = "checkpoints are kept nowhere outside: whoever has the log key and the store can rewrite the journal unseen"

// State says how anchoring stands.
func (a *Anchor) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.unanchored()
	s := State{
		Open: true, Records: u.Records, Age: int64(u.Age / time.Second),
		MaxRecords: a.limits.Records, MaxAge: int64(a.limits.Age / time.Second), Need: a.limits.Need, Places: []PlaceState{},
	}
	if len(a.sinks) == 0 {
		s.Warning = NoPlace
		return s
	}
	if err := a.closed(); err != nil {
		s.Open, s.Closed = false, err.Error()
	}
	if a.failed != nil {
		s.Warning = "no checkpoint can be cut: " + a.failed.Error()
	}
	size := a.log.Size()
	for _, k := range a.sinks {
		p := PlaceState{Name: k.Place.Name(), Kind: k.Kind, Checked: k.checked, Size: k.size, Behind: max(0, size-int64(k.size)), Kept: stamp(k.kept)}
		if k.failed != nil {
			p.Failing, p.Problem = stamp(k.since), k.failed.Error()
		}
		s.Places = append(s.Places, p)
	}
	return s
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Lines says the same in words, a line for each thing, for a terminal.
func (s State) Lines() (lines []string) {
	if len(s.Places) == 0 {
		return []string{"anchoring: none; " + s.Warning}
	}
	gate := "open"
	if !s.Open {
		gate = "closed, nothing new is sent: " + s.Closed
	}
	lines = append(lines,
		"anchoring: "+gate,
		fmt.Sprintf("  not anchored: %d records for %s (limits: %d, %s)", s.Records, seconds(s.Age), s.MaxRecords, seconds(s.MaxAge)))
	if s.Warning != "" {
		lines = append(lines, "  "+s.Warning)
	}
	for _, p := range s.Places {
		line := fmt.Sprintf("  %s (%s): %d records", p.Name, p.Kind, p.Size)
		switch {
		case !p.Checked && p.Kept == "":
			line = fmt.Sprintf("  %s (%s): not asked yet", p.Name, p.Kind)
		case p.Behind > 0:
			line += fmt.Sprintf(", %d behind", p.Behind)
		}
		if p.Kept != "" {
			line += ", since " + p.Kept
		}
		if p.Problem != "" {
			line += "\n    failing since " + p.Failing + ": " + p.Problem
		}
		lines = append(lines, line)
	}
	return lines
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
