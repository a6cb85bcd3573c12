package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/crashpoint"
	"deed.dev/deed/lab/provider"
)

// trace attaches strace to a running gateway. What it says of the files of the store goes to a file, which is returned
// when the trace ends.
func (d *daemon) trace(args ...string) (end func() string) {
	d.t.Helper()
	out := filepath.Join(d.t.TempDir(), "trace")
	pid := fmt.Sprint(d.cmd.Process.Pid)
	strace := exec.Command("strace", append(d.straced(out, storeFiles, "-p", pid), args...)...)
	said := new(strings.Builder)
	strace.Stderr = said
	d.must(strace.Start())
	for deadline := time.Now().Add(10 * time.Second); !traced(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("strace did not attach: %s", said)
		}
	}
	return func() string {
		d.must(strace.Process.Signal(syscall.SIGINT))
		_ = strace.Wait()
		text, err := os.ReadFile(out)
		d.must(err)
		return string(text)
	}
}

var storeFiles = []string{"deed.db", "deed.db-wal", "deed.db-shm", "deed.lock"}

// straced are the arguments for a trace of files of the store.
func (d *daemon) straced(out string, files []string, args ...string) []string {
	args = append(args, "-f", "-o", out)
	for _, name := range files {
		args = append(args, "-P", filepath.Join(d.data(), name))
	}
	return args
}

// traced reports whether every thread of a process has a tracer.
func traced(pid string) bool {
	tasks, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "status"))
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil && strings.Contains(string(text), "TracerPid:\t0\n") {
			return false
		}
	}
	return len(tasks) > 0
}

// A faulted round is one action during which one system call of the store fails.
type faulted struct {
	call, errno string
	nth         int
}

func (f faulted) String() string { return fmt.Sprintf("%s %d fails with %s", f.call, f.nth, f.errno) }

func (f faulted) args() []string {
	return []string{"-e", "trace=" + f.call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", f.call, f.errno, f.nth)}
}

const faultCharge = `{"amount":%d,"currency":"usd","customer":"cus_42"}`

// AU-15, AU-16, 1.7 of the journal format: EIO and ENOSPC at every write, read and sync that one action makes of the store,
// before its plan is durable and after its effect. No byte is sent without a planned record, a writer that failed once
// writes nothing more, the chain is whole, and after a restart the same call has one effect.
func TestFaultsOfTheDisk(t *testing.T) {
	for _, when := range []struct {
		name    string
		calls   []string
		planned bool // the plan is durable, and the target has the effect
	}{
		{"before the plan", []string{"pwrite64", "fdatasync", "pread64"}, false},
		{"after the effect", []string{"pwrite64", "fdatasync"}, true},
	} {
		for _, call := range when.calls {
			t.Run(when.name+" "+call, func(t *testing.T) {
				t.Parallel()
				d := newDaemon(t, crashTools)
				met := 0
				for n := 1; ; n++ {
					f := faulted{call, "EIO", n}
					if n%2 == 0 || call == "fdatasync" {
						f.errno = "ENOSPC"
					}
					if !d.faultyRound(f, n, when.planned) {
						break
					}
					met++
				}
				t.Logf("%d places met", met)
				if least := map[string]int{"pwrite64": 20, "fdatasync": 1, "pread64": 1}[call]; met < least {
					t.Errorf("only %d places were met, want at least %d", met, least)
				}
			})
		}
	}
}

// faultyRound makes an action during which a system call fails, and reports whether it was made at all.
func (d *daemon) faultyRound(f faulted, n int, planned bool) bool {
	d.t.Helper()
	d.must(d.provider.Set(provider.Switches{}))
	d.start(built.deed)
	args, key := fmt.Sprintf(faultCharge, n), fmt.Sprint("k", n)
	requests, effects := len(d.provider.Requests()), len(d.provider.Effects())
	var end func() string
	var st action.Status
	var ok bool
	if planned {
		d.must(d.provider.Set(provider.Switches{Faults: []provider.Fault{{Kind: provider.CommitThenDelay, Delay: time.Minute}}}))
		done := make(chan struct{})
		go func() { defer close(done); st, ok = d.call(d.t.Context(), "charge", args, key) }()
		d.must(d.provider.Await(d.t.Context(), func() bool { return len(d.provider.Effects()) == effects+1 }))
		end = d.trace(f.args()...)
		d.must(d.provider.Set(provider.Switches{}))
		<-done
	} else {
		end = d.trace(f.args()...)
		st, ok = d.call(d.t.Context(), "charge", args, key)
	}
	trace := end()
	met := strings.Contains(trace, "(INJECTED)")
	if !ok {
		d.t.Fatalf("%s: the caller was not answered\n%s", f, d.stderr.String())
	}
	sent := len(d.provider.Requests()) - requests
	switch {
	case planned && sent != 1:
		d.t.Errorf("%s: %d requests, want 1", f, sent)
	case st.State == action.Completed: // the fault was met too late to matter, or never, or did no harm
	case !planned && sent == 0:
		if st.Code != action.CodeJournalUnavailable && (f.call != "pread64" || st.Code != action.CodeNotSent) || !strings.Contains(st.Message, "nothing") && !strings.Contains(st.Message, "Nothing") {
			d.t.Errorf("%s: nothing was sent, and the caller is told %s: %s", f, st.Code, st.Message)
		}
	case st.Code != action.CodeOutcomeUnknown:
		d.t.Errorf("%s: after the effect the caller is told %s: %s", f, st.Code, st.Message)
	}
	if met && f.call != "pread64" {
		before := len(d.provider.Requests())
		again, ok := d.call(d.t.Context(), "send_email", fmt.Sprintf(`{"to":"m%d"}`, n), fmt.Sprint("m", n))
		if !ok || again.Code != action.CodeJournalUnavailable || len(d.provider.Requests()) != before {
			d.t.Errorf("%s: the next call is answered %s, with %d requests", f, again.Code, len(d.provider.Requests())-before)
		}
	}
	d.kill()
	if got := d.chain(); got != "valid" {
		d.t.Fatalf("%s: the chain is %s", f, got)
	}
	plans := 0
	for _, a := range d.actions() {
		if a.ID == st.ActionID {
			plans = a.Attempt
		}
	}
	if st.ActionID != "" && plans < sent {
		d.t.Errorf("%s: %d requests, and %d attempts on record", f, sent, plans)
	}
	d.start(built.deed)
	st, ok = d.call(d.t.Context(), "charge", args, key)
	if got := len(d.provider.Effects()) - effects; !ok || st.State != action.Completed || got != 1 {
		d.t.Fatalf("%s: after a restart the same call is %s %s, with %d effects", f, st.State, st.Message, got)
	}
	d.kill()
	return met
}

// AU-15, 1.7 of the journal format: EIO at every open, sync and cut of the store's files while a gateway starts and takes up
// what was sent before. It refuses to start and says why, or it works; what it takes up has one effect either way.
func TestFaultsOfTheDiskAtTheStart(t *testing.T) {
	for _, call := range []string{"openat,?open", "fdatasync,fsync", "ftruncate"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			met, refused := 0, 0
			for _, file := range storeFiles { // one by one: threads count their calls apart
				for n := 1; ; n++ {
					started, injected := faultyStart(t, call, file, n)
					if !injected {
						break
					}
					met++
					if !started {
						refused++
					}
				}
			}
			t.Logf("%d places met, refused to start at %d", met, refused)
			if met == 0 {
				t.Error("no place was met")
			}
		})
	}
}

func faultyStart(t *testing.T, call, file string, n int) (started, injected bool) {
	t.Helper()
	d := newDaemon(t, crashTools)
	args, place := fmt.Sprintf(faultCharge, n), fmt.Sprintf("%s %d of %s", call, n, file)
	d.crashAt(crashpoint.AfterEffect, "charge", args, "k")
	out, traced := filepath.Join(d.dir, "trace"), filepath.Join(d.dir, "traced")
	// -D: the gateway is our child, and strace a process of its own that ends with it.
	strace := d.straced(out, []string{file}, "-D", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:error=EIO:when=%d", call, n))
	script := "#!/bin/sh\nexec strace '" + strings.Join(append(strace, built.deed), "' '") + "' \"$@\"\n"
	d.must(os.WriteFile(traced, []byte(script), 0o700))
	started = d.tryStart(traced) == nil
	if started {
		st, ok := d.call(t.Context(), "charge", args, "k")
		if !ok || st.State != action.Completed && st.Code != action.CodeJournalUnavailable && st.Code != action.CodeOutcomeUnknown {
			t.Errorf("%s: the call is answered %s %s", place, st.State, st.Code)
		}
		d.kill()
	} else if said := d.stderr.String(); strings.Contains(said, "panic") || !strings.Contains(said, "deed: ") ||
		!strings.Contains(said, "input/output error") && !strings.Contains(said, "I/O error") && !strings.Contains(said, "unable to open") && !strings.Contains(said, "readonly database") {
		t.Errorf("%s: it says only: %s", place, said)
	}
	trace, err := os.ReadFile(out)
	d.must(err)
	if !strings.Contains(string(trace), "(INJECTED)") {
		return started, false
	}
	d.start(built.deed)
	st, ok := d.call(t.Context(), "charge", args, "k")
	if got := len(d.provider.Effects()); !ok || st.State != action.Completed || got != 1 {
		t.Errorf("%s: after a good start the call is %s with %d effects", place, st.State, got)
	}
	if got := d.chain(); got != "valid" {
		t.Errorf("%s: the chain is %s", place, got)
	}
	d.kill()
	return started, true
}
