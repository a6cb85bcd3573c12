package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

// A data directory that cannot be written: a clear error at the start, nothing is sent.
func TestReadOnlyDataDirectory(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.must(os.Chmod(d.data(), 0o500))
	t.Cleanup(func() { _ = os.Chmod(d.data(), 0o700) })
	var wrap []string
	if os.Geteuid() == 0 { // root may write anywhere, so it becomes somebody who may not
		for dir := d.dir; dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 != 0o005 && strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir() {
				d.must(os.Chmod(dir, info.Mode().Perm()|0o055))
			}
		}
		d.must(filepath.Walk(filepath.Join(d.dir, "config"), func(p string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Chmod(p, info.Mode().Perm()|0o055)
		}))
		d.must(os.Chmod(d.data(), 0o555))
		d.must(os.Chmod(filepath.Dir(built.deed), 0o755))
		d.must(os.Chmod(filepath.Dir(filepath.Dir(built.deed)), 0o755))
		wrap = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	}
	said := d.failsToStart(wrap...)
	if !strings.Contains(said, "permission denied") && !strings.Contains(said, "read-only") && !strings.Contains(said, "not writable") {
		t.Errorf("it says only: %s", said)
	}
	if len(d.provider.Requests()) != 0 {
		t.Error("something was sent")
	}
}

// AU-15, AU-16, case 080: the disk is full. Before the call nothing is sent and the caller is told why; what is on record
// can still be read, and after room is made and a restart everything goes on. The limit on the size of a file stands for a
// full disk: the write fails in the same place.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.start(built.deed)
	if st, ok := d.call(t.Context(), "send_email", `{"to":"first"}`, "k0"); !ok || st.State != action.Completed {
		t.Fatalf("got %+v", st)
	}
	d.stop()
	limited := filepath.Join(d.dir, "limited")
	d.must(os.WriteFile(limited, []byte(fmt.Sprintf("#!/bin/sh\nulimit -f 200\nexec %s \"$@\"\n", built.deed)), 0o700))
	d.start(limited)
	refused := 0
	for n := 1; n <= 200 && refused < 3; n++ {
		before := len(d.provider.Requests())
		st, ok := d.call(t.Context(), "send_email", fmt.Sprintf(`{"to":"m%d"}`, n), fmt.Sprint("k", n))
		if !ok {
			t.Fatalf("call %d was not answered\n%s", n, d.stderr.String())
		}
		if st.Code == action.CodeJournalUnavailable {
			refused++
			if len(d.provider.Requests()) != before {
				t.Fatal("something was sent without a record of its plan")
			}
			if !strings.Contains(st.Message, "nothing") {
				t.Errorf("the caller is told %q", st.Message)
			}
		}
	}
	if refused < 3 {
		t.Fatalf("the limit was never met\n%s", d.stderr.String())
	}
	sent := len(d.provider.Effects())
	d.kill()
	if got := d.chain(); got != "valid" {
		t.Errorf("the chain is %s", got)
	}
	d.start(built.deed)
	if st, ok := d.call(t.Context(), "send_email", `{"to":"after"}`, "kx"); !ok || st.State != action.Completed {
		t.Errorf("after room was made: %+v", st)
	}
	for _, act := range d.actions() {
		if act.State == action.Failed || act.State == action.Accepted {
			t.Errorf("%s is %s", act.ID, act.State)
		}
	}
	if got := len(d.provider.Effects()); got != sent+1 {
		t.Errorf("%d effects after the restart, want %d", got, sent+1)
	}
}
