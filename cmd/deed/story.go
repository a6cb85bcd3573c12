package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

// story prints what happens as it happens: in colour on a terminal, and not at all when machines read.
type story struct {
	out    io.Writer
	colour bool
}

func newStory(a *app) *story {
	if a.json {
		return &story{out: io.Discard}
	}
	f, ok := a.out.(*os.File)
	return &story{out: a.out, colour: ok && isTerminal(f) && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *story) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *story) head(text string) { fmt.Fprintf(s.out, "\n%s\n", s.paint("1", text)) }

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, "  "+format+"\n", args...) }

func (s *story) figure(format string, args ...any) {
	fmt.Fprintf(s.out, "  %s\n", s.paint("36", "→ "+fmt.Sprintf(format, args...)))
}

func (s *story) end(r demoResult) {
	verdict := fmt.Sprintf("%d charges without deed, %d with it.", r.NaiveEffects, r.Effects)
	colour := "1;32"
	if r.Effects != 1 || r.Chain != "valid" {
		colour = "1;31"
	}
	fmt.Fprintf(s.out, "\n%s %.1f s\n", s.paint(colour, verdict), r.Seconds)
}

// checkChain recomputes the journal's hash chain from its first record to its last.
func checkChain(ctx context.Context, r store.Reader) (verdict string, records int64, err error) {
	var v journal.Verifier
	var bad *journal.BadRecord
	err = r.Records(ctx, 0, func(_ int64, hash [32]byte, body []byte) error { return v.Add(hash, body) })
	if err != nil && !errors.As(err, &bad) {
		return "", 0, err
	}
	result := v.Result()
	return result.Chain.String(), int64(result.RecordsChecked), nil
}
