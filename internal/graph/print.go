package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// Lines of a printed report are at most so wide, as long as no single word is wider.
const width = 80

// shownEvents is how many events of one answer are printed; the JSON form has them all.
const shownEvents = 12

// Print writes the report for people: the questions with their answers, and below each the events that say so. Times are
// UTC.
func (r Report) Print(w io.Writer) error {
	var b bytes.Buffer
	p := printer{&b, r.columns()}
	if r.Second == nil {
		p.subject("", r.First)
	} else {
		p.subject("first   ", r.First)
		p.subject("second  ", *r.Second)
	}
	for i, a := range r.Answers {
		fmt.Fprintf(p, "\n%d. %s\n", i+1, a.Question)
		for line := range strings.SplitSeq(a.Answer, "\n") {
			p.wrap("   ", "   ", line)
		}
		p.events(a.Events)
	}
	fmt.Fprintln(p, "\nConclusion")
	p.wrap("   ", "   ", r.Conclusion)
	fmt.Fprintln(p, "\nNot known")
	for _, s := range r.NotKnown {
		p.wrap("   - ", "     ", s)
	}
	if len(r.NotKnown) == 0 {
		p.wrap("   ", "   ", "Nothing that these questions ask for.")
	}
	fmt.Fprintf(p, "\nRecords %d to %d were read. Times are UTC%s.\n", r.Read.First, r.Read.Last, p.columns.on)
	_, err := w.Write(b.Bytes())
	return err
}

// columns are the widths that all lists of events of a report share, so that their columns stand under each other.
type columns struct {
	seq, kind int
	clock     string // how a time is written
	on        string // the day, where one is enough
}

func (r Report) columns() columns {
	c := columns{clock: "15:04:05.000"}
	var day time.Time
	for _, a := range r.Answers {
		for _, e := range a.Events {
			c.seq, c.kind = max(c.seq, len(fmt.Sprint(e.Seq))), max(c.kind, len(e.Event))
			switch d := e.Time.UTC().Truncate(24 * time.Hour); {
			case day.IsZero():
				day = d
			case !day.Equal(d):
				c.clock = "2006-01-02 15:04:05.000"
			}
		}
	}
	if !day.IsZero() && c.clock == "15:04:05.000" {
		c.on = ", on " + day.Format(time.DateOnly)
	}
	return c
}

type printer struct {
	io.Writer
	columns columns
}

func (p printer) subject(which string, s Subject) {
	tool := s.Tool
	if tool == "" {
		tool = "(tool not in this part)"
	}
	shown := s.Shown
	if s.State == action.Completed && s.Delivery != action.Delivered {
		shown += fmt.Sprintf(" (delivery %s)", s.Delivery)
	}
	fmt.Fprintf(p, "%s%s  %s\n%*s%s\n", which, s.ActionID, printable(tool), len(which), "", shown)
}

func (p printer) events(events []Reference) {
	for i, e := range events {
		if i == shownEvents && len(events) > shownEvents+1 {
			fmt.Fprintf(p, "     … and %d more; --json has them all\n", len(events)-i)
			return
		}
		start := fmt.Sprintf("     %*d  %s  %-*s  ", p.columns.seq, e.Seq, e.Time.UTC().Format(p.columns.clock), p.columns.kind, e.Event)
		if e.Note == "" {
			fmt.Fprintln(p, strings.TrimRight(start, " "))
			continue
		}
		p.wrap(start, strings.Repeat(" ", len(start)), e.Note)
	}
}

// wrap writes words in lines of the width. What stands between words is one blank, but for the first line's start.
func (p printer) wrap(start, next, text string) {
	line, empty := start, true
	for word := range strings.SplitSeq(text, " ") {
		if !empty && len([]rune(line))+1+len([]rune(word)) > width {
			fmt.Fprintln(p, strings.TrimRight(line, " "))
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	fmt.Fprintln(p, strings.TrimRight(line, " "))
}
