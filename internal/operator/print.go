package operator

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"deed.dev/deed/internal/action"
)

// PrintList writes the list for a person.
func PrintList(out io.Writer, all []Waiting) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ACTION\tUNKNOWN FOR\tWHY\tTOOL\tREASON\tATTEMPTS\tLEARNED\tTARGET")
	for _, a := range all {
		why := "waits for a person"
		if a.Overdue {
			why = "overdue"
		}
		found := "–"
		if a.Asked > 0 {
			found = fmt.Sprintf("%d×, %s", a.Asked, finding(a.Finding))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", a.ActionID, Age(a.Age), why, a.Tool, a.Reason, a.Attempts, found, a.Target)
	}
	return w.Flush()
}

// Print writes the case for a person.
func (c Case) Print(out io.Writer) error {
	var b strings.Builder
	state := string(c.State)
	switch {
	case c.Abandoned:
		state += ", closed by a person"
	case c.Overdue:
		state += ", overdue: deed still looks for evidence"
	case c.Recovery != "":
		state += ", " + strings.ReplaceAll(string(c.Recovery), "_", " ")
	}
	fmt.Fprintf(&b, "%s  %s\n", c.ActionID, state)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, value)
		}
	}
	line("tool", c.Tool)
	line("asked by", c.Actor)
	line("target", c.Target)
	line("credential", c.Credential)
	line("class", string(c.Class))
	line("reason", c.Reason)
	line("accepted", c.Accepted)
	line("sent", c.Dispatched)
	if c.Unknown != "" {
		since := fmt.Sprintf("%s, for %s", c.Unknown, Age(c.Age))
		if c.Recovery == action.Reconciling {
			since += "; a person is asked after " + Age(c.Limit)
		}
		line("unknown", since)
	}
	c.printAttempts(&b)
	section(&b, "what is known", c.Known)
	section(&b, "what is not known", c.NotKnown)
	if len(c.Choices) > 0 {
		fmt.Fprintln(&b, "what you can decide")
		for _, d := range c.Choices {
			fmt.Fprintf(&b, "  %-10s %s\n", d.Decision, d.Does)
			fmt.Fprintf(&b, "             deed review %s %s --%s TEXT\n", d.Decision, c.ActionID, d.Needs)
		}
	}
	fmt.Fprintf(&b, "journal\n  %d %s\n", c.Journal.Seq, c.Journal.Hash)
	_, err := io.WriteString(out, b.String())
	return err
}

func (c Case) printAttempts(b *strings.Builder) {
	fmt.Fprintln(b, "attempts")
	for _, t := range c.Attempts {
		bytes := "unknown"
		if t.Bytes != nil {
			bytes = fmt.Sprint(*t.Bytes)
		}
		fmt.Fprintf(b, "  %d  %s  %s, %s, bytes_sent=%s", t.Number, t.Started, t.State, t.Certainty, bytes)
		if t.Status != 0 {
			fmt.Fprintf(b, ", http_status=%d", t.Status)
		}
		if t.Reason != "" {
			fmt.Fprintf(b, " (%s)", t.Reason)
		}
		fmt.Fprintln(b)
	}
	if len(c.Seen) > 0 {
		fmt.Fprintln(b, "learned since")
	}
	for _, o := range c.Seen {
		fmt.Fprintf(b, "  %d  %s  %s: %s", o.Number, o.Started, o.Kind, finding(o.Finding))
		if o.Ended == "" {
			fmt.Fprint(b, ", not answered")
		}
		if o.Status != 0 {
			fmt.Fprintf(b, ", http_status=%d", o.Status)
		}
		if o.Reason != "" {
			fmt.Fprintf(b, " (%s)", o.Reason)
		}
		fmt.Fprintln(b)
	}
}

func section(b *strings.Builder, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(b, head)
	for _, s := range lines {
		fmt.Fprintln(b, "  "+s)
	}
}

// Age writes seconds as people say them, in the two largest units.
func Age(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}
