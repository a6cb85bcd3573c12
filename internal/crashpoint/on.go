//go:build crashpoint

package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// armed is the place to stop at and how many visits of it are left; "" is nowhere.
var (
	armed string
	left  atomic.Int64
)

// A mistake in DEED_CRASH_AT ends the process at once: a place that is never reached would look like a run without a
// crash.
func init() {
	at := os.Getenv("DEED_CRASH_AT")
	if at == "" {
		return
	}
	name, visit, err := parse(at)
	if err != nil {
		fmt.Fprintf(os.Stderr, "[lab] DEED_CRASH_AT: %v\n", err)
		os.Exit(2)
	}
	armed = name
	left.Store(visit)
}

// parse reads NAME or NAME#VISIT.
func parse(at string) (name string, visit int64, err error) {
	name, count, counted := strings.Cut(at, "#")
	if !slices.Contains(Names, name) {
		return "", 0, fmt.Errorf("no place is called %q; write one of %s", name, strings.Join(Names, ", "))
	}
	if !counted {
		return name, 1, nil
	}
	visit, err = strconv.ParseInt(count, 10, 32)
	if err != nil || visit < 1 {
		return "", 0, fmt.Errorf("%q is no number of visits; write %s#2 for the second", count, name)
	}
	return name, visit, nil
}

// Here marks a place. If it is the armed one, this is as far as the goroutine gets.
func Here(name string) {
	if name != armed || left.Add(-1) != 0 {
		return
	}
	if os.Getenv("DEED_CRASH_SELF") == "1" {
		note("[lab] simulated crash at " + name)
		die()
	}
	note("[lab] parked at " + name)
	park()
}

// note writes the line where the parent looks for it, and to standard error.
func note(line string) {
	if path := os.Getenv("DEED_CRASH_FILE"); path != "" {
		if err := appendLine(path, line+"\n"); err != nil {
			fmt.Fprintf(os.Stderr, "[lab] DEED_CRASH_FILE: %v\n", err)
		}
	}
	fmt.Fprintln(os.Stderr, line)
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	return f.Sync()
}

// die ends this process the way the kernel does it, and does not return while the signal is on its way.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	park()
}

// park sleeps instead of blocking on nothing, which the runtime would take for a deadlock.
func park() {
	for {
		time.Sleep(time.Hour)
	}
}
