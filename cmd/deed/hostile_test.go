package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

// failsToStart runs a gateway that must refuse to start, and returns what it says.
func (d *daemon) failsToStart(wrap ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	args := append(wrap, built.deed, "serve", "--config", filepath.Join(d.dir, "config"), "--data", d.data(),
		"--socket", filepath.Join(d.dir, "s"), "--listen", "127.0.0.1:0")
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		d.t.Fatalf("the gateway started: %v\n%s", ctx.Err(), out)
	}
	if strings.Contains(string(out), "panic") || strings.Contains(string(out), "goroutine ") {
		d.t.Errorf("it panicked:\n%s", out)
	}
	return string(out)
}

// A database that is not one, is cut, or was tampered with: deed refuses to start, says so, and changes nothing.
func TestDamagedRecordsAreNotTouched(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string, intact []byte) []byte{
		"not a database": func(*testing.T, string, []byte) []byte { return []byte(strings.Repeat("not a database\n", 1000)) },
		"cut in half":    func(_ *testing.T, _ string, b []byte) []byte { return b[:len(b)/2/4096*4096] },
		"header gone":    func(_ *testing.T, _ string, b []byte) []byte { return append(make([]byte, 100), b[100:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, crashTools)
			d.start(built.deed)
			if st, ok := d.call(t.Context(), "send_email", `{"to":"a"}`, "k"); !ok || st.State != action.Completed {
				t.Fatalf("got %+v", st)
			}
			d.stop()
			path := filepath.Join(d.data(), "deed.db")
			intact, err := os.ReadFile(path)
			d.must(err)
			broken := damage(t, path, intact)
			d.must(os.WriteFile(path, broken, 0o600))
			said := d.failsToStart()
			if !strings.Contains(said, "deed.db") && !strings.Contains(said, "database") && !strings.Contains(said, "journal") {
				t.Errorf("it says only: %s", said)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(broken) {
				t.Errorf("the damaged file was changed: %v", err)
			}
		})
	}
}

// stop ends the gateway in good order.
func (d *daemon) stop() {
	d.t.Helper()
	d.must(d.cmd.Process.Signal(os.Interrupt))
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("the gateway ended badly: %v\n%s", err, d.stderr.String())
	}
	d.cmd = nil
}

// The database is removed under a running gateway: the next call is refused, and nothing is sent. AU-15
func TestRemovedDatabaseIsNoticed(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.start(built.deed)
	if st, ok := d.call(t.Context(), "send_email", `{"to":"a"}`, "k"); !ok || st.State != action.Completed {
		t.Fatalf("got %+v", st)
	}
	d.must(os.Remove(filepath.Join(d.data(), "deed.db")))
	st, ok := d.call(t.Context(), "send_email", `{"to":"b"}`, "l")
	if !ok || st.Code != action.CodeJournalUnavailable || len(d.provider.Requests()) != 1 {
		t.Errorf("got %+v, %d requests", st, len(d.provider.Requests()))
	}
}

// Secrets reach no log, record or answer of the real program, whatever happens. HT-07, VA-08
func TestSecretIsNowhere(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.start(built.deed, "DEED_LOG_LEVEL=debug")
	for i := range 3 {
		d.call(t.Context(), "charge", fmt.Sprintf(`{"amount":%d,"currency":"usd","customer":"canary-argument"}`, i+1), "")
	}
	d.call(t.Context(), "charge", `{"amount":"canary-argument"}`, "")
	d.call(t.Context(), "nothing", `{}`, "")
	d.stop()
	if len(d.provider.Effects()) != 3 {
		t.Fatalf("%d effects", len(d.provider.Effects()))
	}
	for _, canary := range []string{"canary-daemon-secret", d.token, "canary-argument"} {
		if strings.Contains(d.stderr.String(), canary) {
			t.Errorf("the log holds %s", canary)
		}
	}
	d.must(filepath.Walk(d.data(), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, canary := range []string{"canary-daemon-secret", d.token} {
			if strings.Contains(string(content), canary) {
				t.Errorf("%s holds %s", filepath.Base(path), canary)
			}
		}
		if perm := info.Mode().Perm(); perm&0o077 != 0 && info.Mode().IsRegular() {
			t.Errorf("%s can be read by others: %v", filepath.Base(path), perm)
		}
		return err
	}))
}

// IK-19: the record is lost while clients still retry. A new one is not begun in its place: their retries could not be told
// from new calls.
func TestLostRecordIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, crashTools)
	d.start(built.deed)
	if st, ok := d.call(t.Context(), "send_email", `{"to":"a"}`, "k"); !ok || st.State != action.Completed {
		t.Fatalf("got %+v", st)
	}
	d.stop()
	files, err := filepath.Glob(filepath.Join(d.data(), "deed.db*"))
	d.must(err)
	for _, f := range files {
		d.must(os.Remove(f))
	}
	said := d.failsToStart()
	if !strings.Contains(said, "is lost") || !strings.Contains(said, "Restore deed.db") {
		t.Errorf("it says only: %s", said)
	}
	if _, err := os.Stat(filepath.Join(d.data(), "deed.db")); err == nil {
		t.Error("a new record was begun")
	}
	if len(d.provider.Requests()) != 1 {
		t.Error("something was sent")
	}
}
