package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A bar appears after a second, is drawn at most ten times a second, and leaves a clean line. Without a terminal there is none.
func TestABarIsForLongWorkOnATerminal(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, what: "verifying", started: time.Now()}
	b.show(50, 100)
	b.clear()
	if out.Len() > 0 {
		t.Errorf("short work shows %q", out.String())
	}
	b.started = b.started.Add(-2 * time.Second)
	for range 1000 {
		b.show(50, 100)
	}
	if n := strings.Count(out.String(), " 50 %"); n < 1 || n > 20 {
		t.Errorf("it was drawn %d times: %q", n, out.String())
	}
	b.shown = time.Time{}
	b.show(200, 100) // a file that grows meanwhile
	if !strings.Contains(out.String(), "100 %") {
		t.Errorf("got %q", out.String())
	}
	b.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("it leaves %q", out.String())
	}
	a := &app{terminal: terminal{err: &out}}
	if a.newBar("x") != nil {
		t.Error("there is a bar where no terminal is")
	}
	var none *bar
	none.clear()
}
