//go:build crashpoint

package crashpoint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test binary is its own child: it passes after_effect five times and counts.
func TestMain(m *testing.M) {
	if os.Getenv("DEED_CRASHPOINT_CHILD") == "1" {
		defer fmt.Println("deferred")
		for i := range 5 {
			Here(AfterPlan)
			fmt.Println("visit", i+1)
			Here(AfterEffect)
		}
		return
	}
	os.Exit(m.Run())
}

type child struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	file           string
}

func start(t *testing.T, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), file: filepath.Join(t.TempDir(), "reached")}
	c.cmd.Env = append(os.Environ(), "DEED_CRASHPOINT_CHILD=1", "DEED_CRASH_FILE="+c.file)
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

func (c *child) note() string {
	b, _ := os.ReadFile(c.file)
	return string(b)
}

// LAB-04: the process ends by signal 9, no deferred call runs, and standard error says where.
func TestSelfCrashIsSIGKILL(t *testing.T) {
	c := start(t, "DEED_CRASH_AT=after_effect", "DEED_CRASH_SELF=1")
	err := c.cmd.Wait()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the child ended with %v, want signal: killed", err)
	}
	if got, want := c.stdout.String(), "visit 1\n"; got != want {
		t.Errorf("standard output is %q, want %q", got, want)
	}
	want := "[lab] simulated crash at after_effect\n"
	if c.stderr.String() != want || c.note() != want {
		t.Errorf("standard error %q, file %q, want %q in both", c.stderr.String(), c.note(), want)
	}
}

func TestParksUntilTheParentKills(t *testing.T) {
	c := start(t, "DEED_CRASH_AT=after_effect#3")
	for deadline := time.Now().Add(30 * time.Second); c.note() == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child never reached the place")
		}
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if got, want := c.stdout.String(), "visit 1\nvisit 2\nvisit 3\n"; got != want {
		t.Errorf("standard output is %q, want %q", got, want)
	}
	if got, want := c.note(), "[lab] parked at after_effect\n"; got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

// LAB-05: unset, or never reached that often, means a normal run.
func TestNothingArmedNothingHappens(t *testing.T) {
	for _, at := range []string{"", "before_claim", "after_effect#6"} {
		c := start(t, "DEED_CRASH_AT="+at, "DEED_CRASH_SELF=1")
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%q: the child ended with %v, want success", at, err)
		}
		if !strings.HasSuffix(c.stdout.String(), "visit 5\ndeferred\n") || c.stderr.String() != "" {
			t.Errorf("%q: standard output %q, standard error %q", at, c.stdout.String(), c.stderr.String())
		}
	}
}

// A place that does not exist would never be reached, and the run would look like one that survived it.
func TestUnknownPlaceEndsTheRun(t *testing.T) {
	for _, at := range []string{"nowhere", "after_effect#0", "after_effect#", "after_effect#-1", "after_effect#x"} {
		c := start(t, "DEED_CRASH_AT="+at)
		_ = c.cmd.Wait()
		if got := c.cmd.ProcessState.ExitCode(); got != 2 {
			t.Errorf("%q: exit code %d, want 2", at, got)
		}
		if !strings.HasPrefix(c.stderr.String(), "[lab] DEED_CRASH_AT: ") {
			t.Errorf("%q: standard error is %q", at, c.stderr.String())
		}
	}
}
