package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
)

// PrintRequests writes the list for a person. Requests of one kind that come after each other stand together, and each is
// decided by itself.
func PrintRequests(out io.Writer, all []Request, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "REQUEST\tACTION\tENDS IN\tASKS\tAPPROVED\tTOOL\tTARGET\tCREDENTIAL\tASKED BY")
	for _, r := range all {
		credential := r.Credential
		if credential == "" {
			credential = "–"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", r.ApprovalID, r.ActionID, endsIn(r.Left(now)), r.Asks,
			len(r.Decisions), r.Needed, r.Tool, r.Target, credential, r.Actor)
	}
	return w.Flush()
}

func endsIn(d time.Duration) string {
	if d <= 0 {
		return "over"
	}
	return d.Round(time.Second).String()
}

// MostShown is how much of a body is printed unless all of it is asked for.
const MostShown = 4 << 10

// Print writes a request for the person who decides about it, with the operation as whoever prints it has checked it. Of a
// long body it shows the beginning, says how much is missing, and gives the digest of the whole.
func (r Request) Print(out io.Writer, op action.Operation, all bool) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s  %s\n", name, fmt.Sprintf(format, args...))
	}
	line("request", "%s", r.ApprovalID)
	line("action", "%s, %s", r.ActionID, r.ActionState)
	line("state", "%s, until %s", r.State, r.Expires)
	if r.Needed > 1 || len(r.Decisions) > 0 {
		line("approved by", "%d of %d%s", len(r.Decisions), r.Needed, names(r.Decisions))
	}
	if r.Asks == action.AsksRun && r.Full != nil && r.Full.Run != nil {
		r.printRun(line)
	}
	line("asked by", "%s", r.Process)
	line("run", "%s", r.RunID)
	line("tool", "%s (%s)", r.Tool, r.Class)
	if r.Full != nil && r.Full.Impact != "" {
		line("impact", "%s", neutral(r.Full.Impact))
	}
	line("channel", "%s", neutral(op.Channel))
	line("sends", "%s %s", neutral(op.Method), neutral(op.URL()))
	line("to", "%s port %d, %s", neutral(op.Target.Host), op.Target.Port, neutral(op.Target.Scheme))
	line("credential", "%s", orNone(neutral(op.Credential)))
	for _, h := range op.Headers {
		line("header", "%s: %s", neutral(h.Name), neutral(h.Value))
	}
	if op.Key.Header != "" {
		line("header", "%s: %s", neutral(op.Key.Header), r.ActionID)
	}
	body(&b, op, all)
	line("known", "%s", r.Outcome)
	if r.Dispatched != "" {
		line("first sent", "%s", r.Dispatched)
	}
	line("not sent", "%s", r.NotSent)
	if r.Full != nil {
		line("binding", "%s", r.Full.Binding)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (r Request) printRun(line func(string, string, ...any)) {
	e := r.Full.Run.Evidence
	line("asks about", "the whole run of this process: %s", r.Full.Run.Authorizes)
	line("program", "%s, sha256:%s", orNone(neutral(e.Executable)), orNone(e.Digest))
	line("process", "%d, started at tick %d of boot %s", e.PID, e.StartTime, orNone(neutral(e.BootID)))
	line("first call", "the operation below made deed ask")
}

// body prints the body between two lines that nothing in it can forge, since each of its own lines is set in.
func body(b *strings.Builder, op action.Operation, all bool) {
	if len(op.Body) == 0 {
		fmt.Fprintf(b, "%-12s  none\n", "body")
		return
	}
	longest := MostShown
	if all {
		longest = len(op.Body)
	}
	kind := ""
	if !utf8.Valid(op.Body) {
		kind = ", not all of it text"
	}
	sum := sha256.Sum256(op.Body)
	fmt.Fprintf(b, "%-12s  %s, %s%s, sha256:%s\n", "body", orNone(neutral(op.MediaType)), plural(len(op.Body), "byte"), kind, hex.EncodeToString(sum[:]))
	text, left := Neutral(op.Body, longest, true)
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(b, "    | %s\n", line)
	}
	if left > 0 {
		fmt.Fprintf(b, "    %s MORE, NOT SHOWN: --all shows the whole body\n", strings.ToUpper(plural(left, "byte")))
	}
}

func names(said []Said) string {
	var all []string
	for _, s := range said {
		all = append(all, fmt.Sprintf("%s (%s)", s.Approver, s.Strength))
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
