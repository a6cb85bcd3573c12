package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// bar shows on a terminal how far long work is. It appears after a second, so that short work shows none. A nil bar shows
// nothing.
type bar struct {
	out     io.Writer
	what    string
	started time.Time
	shown   time.Time
}

// newBar gives a bar on standard error, nil when that is no terminal or machines read.
func (a *app) newBar(what string) *bar {
	f, ok := a.err.(*os.File)
	if a.json || !ok || !isTerminal(f) {
		return nil
	}
	return &bar{out: f, what: what, started: time.Now()}
}

const barWidth = 30

// show draws the bar anew, at most ten times a second.
func (b *bar) show(done, total int64) {
	now := time.Now()
	if b == nil || total <= 0 || now.Sub(b.started) < time.Second || now.Sub(b.shown) < 100*time.Millisecond {
		return
	}
	b.shown = now
	full := int(min(done, total) * barWidth / total)
	fmt.Fprintf(b.out, "\r%s [%s%s] %3d %%", b.what, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), min(done, total)*100/total)
}

// clear takes the bar away, so that what follows stands on a clean line.
func (b *bar) clear() {
	if b != nil && !b.shown.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
