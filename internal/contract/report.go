package contract

import (
	"fmt"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
)

// Report says in words what deed does with a tool: with which key, what a crash does at each moment, and what counts as
// the same call.
type Report struct {
	Tool        string
	Digest      string
	Label       string // safe, idempotent or unsafe
	Need        Need
	Key         KeyReport
	Crashes     []Crash
	Lookup      string // how the target is asked what became of an action; "" for a read, as are the next three
	Poll        string // how a target that finishes later is asked
	Review      string // when a person is asked
	Undo        string // what undoes it
	Fingerprint Fingerprint
	Attach      string
	Keep        string
}

// KeyReport says which key goes to the target, who makes it and where it is stored.
type KeyReport struct {
	Which  string
	Maker  string
	Stored string
}

// Crash is one of the four moments at which a process can stop.
type Crash struct {
	Window  string // W1 to W4
	Between string
	Then    string
}

// Fingerprint says what finds a repeat of the tool's calls.
type Fingerprint struct {
	Included   []string // parts of the digest, and the arguments in it
	Excluded   []string
	Normalized []string // arguments that get one spelling first
}

// Label is the tool's retry classification: safe, idempotent or unsafe. It speaks of the target, not of deed.
func (c *Contract) Label() string {
	switch c.Class {
	case action.ReadOnly:
		return "safe"
	case action.RepeatableWithKey:
		return "idempotent"
	default:
		return "unsafe"
	}
}

// Describe reports about one tool.
func Describe(c *Contract) Report {
	r := Report{
		Tool: c.Tool, Digest: c.Digest, Label: c.Label(), Need: Level(c),
		Key: keyReport(c), Crashes: crashes(c), Fingerprint: c.Fingerprint(),
		Attach: c.attaches(), Keep: fmt.Sprintf("The result is kept for %s.", formatDuration(c.KeepResult)),
	}
	if c.HasEffects {
		r.Lookup, r.Poll, r.Review, r.Undo = c.looksUp(), c.polls(), c.reviewed(), c.undoneBy()
	}
	return r
}

// attaches says how long an equal call belongs to an earlier action.
func (c *Contract) attaches() string {
	const open = "An equal call attaches while the action is open, at any age"
	if c.AttachFor == 0 {
		return open + "."
	}
	return fmt.Sprintf("%s, and for %s after its end while it is not proved that the answer arrived.", open, formatDuration(c.AttachFor))
}

func keyReport(c *Contract) KeyReport {
	r := KeyReport{
		Which:  "none: the target takes no key",
		Maker:  "deed, before the first send; one for each action and the same for all its attempts",
		Stored: "with the action, in deed's database and journal",
	}
	if c.Key.Given() {
		r.Which = "the action's id, in the " + c.Key.Place()
	} else {
		r.Maker, r.Stored = "nobody", "nowhere"
	}
	if places := slices.Concat(c.metadata.JSON, c.metadata.Form); len(places) > 0 {
		r.Which += "; idem_key, to search by, at " + strings.Join(places, ", ")
	}
	return r
}

// crashes says what follows a crash in each window. W2 and W3 look the same from inside, and so they are treated the same.
func crashes(c *Contract) []Crash {
	after := c.afterUnknown()
	return []Crash{
		{"W1", "the call is made, and nothing is recorded", "Nothing was sent. The call is made again and is a new action."},
		{"W2", "the plan is recorded, and the target has not acted", "Nobody can tell this from W3. " + after},
		{"W3", "the target has acted, and the outcome is not recorded", after},
		{"W4", "the outcome is recorded, and the agent has not got it",
			"Nothing is sent. The same call gets the recorded outcome."},
	}
}

// Fingerprint lists what the digest of a call contains, so that it can be compared with what is computed.
func (c *Contract) Fingerprint() Fingerprint {
	f := Fingerprint{
		Included: []string{"actor", "tool", "channel", "target", "credential_ref", "method", "intent_scope"},
		Excluded: []string{"message and session ids", "trace context", "number of the attempt", "secret of the credential"},
	}
	for _, name := range sortedKeys(c.args.declared) {
		if !slices.Contains(c.Volatile, child("", name)) {
			f.Included = append(f.Included, "argument "+child("", name))
		}
	}
	if c.args.open {
		f.Included = append(f.Included, "any argument that the input does not name")
	}
	for _, pointer := range c.Volatile {
		f.Excluded = append(f.Excluded, "argument "+pointer)
	}
	if c.HasEffects {
		f.Excluded = append(f.Excluded, repeatOf)
	}
	for _, name := range c.Normalized {
		f.Normalized = append(f.Normalized, child("", name)+": "+c.normalizer(name))
	}
	for _, pointer := range c.args.defaults.known {
		f.Normalized = append(f.Normalized, pointer+": default "+c.args.defaults.modeOf(pointer))
	}
	return f
}

// normalizer is the expression of an argument, as written.
func (c *Contract) normalizer(name string) string {
	for _, n := range c.norms {
		if n.name == name {
			return n.source
		}
	}
	return ""
}

// String writes the report as plain text.
func (r Report) String() string {
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "  %-12s %s\n", name, text) }
	fmt.Fprintf(&b, "%s (%s)\n", r.Tool, r.Label)
	line("contract", r.Digest)
	line("needs", r.Need.String())
	line("key", r.Key.Which)
	line("made by", r.Key.Maker)
	line("stored", r.Key.Stored)
	for _, c := range r.Crashes {
		line(c.Window, c.Between+": "+c.Then)
	}
	for _, about := range [][2]string{{"look-up", r.Lookup}, {"poll", r.Poll}, {"review", r.Review}, {"undo", r.Undo}} {
		if about[1] != "" {
			line(about[0], about[1])
		}
	}
	line("attaches", r.Attach)
	line("result", r.Keep)
	line("same call", strings.Join(r.Fingerprint.Included, ", "))
	line("left out", strings.Join(r.Fingerprint.Excluded, ", "))
	if len(r.Fingerprint.Normalized) > 0 {
		line("one spelling", strings.Join(r.Fingerprint.Normalized, ", "))
	}
	return b.String()
}
