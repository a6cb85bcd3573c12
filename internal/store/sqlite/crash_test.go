package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
)

// TestAKillLosesNothingAcknowledged kills a committing process at a random moment, again and again on one directory.
// Every action that it had acknowledged is there, whole, and the journal is valid. (DB-15)
func TestAKillLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[action.ID]bool{}
	for round := range 8 {
		for _, id := range killed(t, dir) {
			acknowledged[id] = true
		}
		r, err := sqlite.OpenReader(t.Context(), dir) // before anybody has recovered the database
		if err != nil {
			t.Fatal(err)
		}
		storetest.Histories(t, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		s := openIn(t, dir, storetest.Options{})
		for id, records := range storetest.Histories(t, s) {
			if len(records) != 3 || storetest.Get(t, s, id).State != action.Dispatched {
				t.Errorf("round %d: %s has %d events and is %s: half a change", round, id, len(records), storetest.Get(t, s, id).State)
			}
			if _, err := s.Payload(context.Background(), store.Arguments, string(storetest.Get(t, s, id).Intent)); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		for id := range acknowledged {
			if _, err := s.Action(context.Background(), id); err != nil {
				t.Errorf("round %d: an acknowledged action is lost: %v", round, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged actions survived 8 kills", len(acknowledged))
	if len(acknowledged) < 16 {
		t.Errorf("only %d actions were acknowledged: the test shows too little", len(acknowledged))
	}
}

// killed runs a committing child, kills it, and gives what it had acknowledged.
func killed(t *testing.T, dir string) (ids []action.ID) {
	t.Helper()
	cmd := child(t, "commit", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		ids = append(ids, action.ID(lines.Text()))
		if len(ids) == 1 {
			time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() >= 0 && !strings.Contains(exit.Error(), "exit status 1") {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return ids
}

// TestASecondProcessIsRefused: it is told who holds the directory, and gets it when the holder is gone, even by a kill.
func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "open", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the child says %q (%v)", line, err)
	}
	_, err = sqlite.Open(t.Context(), dir, sqlite.Options{})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d, since ", cmd.Process.Pid)) {
		t.Errorf("beside process %d: %v", cmd.Process.Pid, err)
	}
	if r, err := sqlite.OpenReader(t.Context(), dir); err != nil {
		t.Errorf("reading beside the holder: %v", err)
	} else if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()

	s := openIn(t, dir, storetest.Options{})
	message, err := child(t, "open", dir).Output()
	if err == nil || !strings.Contains(string(message), fmt.Sprintf("process %d, since ", os.Getpid())) {
		t.Errorf("the child beside us says %s (%v)", message, err)
	}
	if _, err := sqlite.Open(t.Context(), s.dir, sqlite.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second store in one process: %v", err)
	}
}
