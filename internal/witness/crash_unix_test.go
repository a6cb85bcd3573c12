//go:build unix

package witness_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/witness"
)

const helperDir = "DEED_TEST_WITNESS"

// TestMain makes this binary a witness process when a test asks for one.
func TestMain(m *testing.M) {
	dir := os.Getenv(helperDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	w, err := witness.Open(dir, time.Now, slog.Default())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", l.Addr())
	_ = w.Server().Serve(l)
}

// start runs a witness in a process of its own.
func start(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the witness did not start: %v", err)
	}
	return cmd, strings.TrimSpace(line)
}

// A witness that is killed while it works has never forgotten what it had signed. AU-10
func TestKilledAtAnyMoment(t *testing.T) {
	l := anchortest.New(t, 1)
	dir, _ := watching(t, l)
	var signed uint64 // the largest size for which a cosignature arrived
	for range 12 {
		cmd, url := start(t, dir)
		killed := make(chan struct{})
		time.AfterFunc(time.Duration(1+rand.IntN(40))*time.Millisecond, func() {
			_ = cmd.Process.Signal(syscall.SIGKILL)
			close(killed)
		})
		at := signed
		for alive := true; alive; {
			l.Add(1)
			h := l.MustHead(t)
			got, err := tryPost(url, body(t, at, h))
			switch {
			case err != nil:
				alive = false
			case got.status == 200:
				at, signed = h.Size, h.Size
			case got.status == 409:
				known, err := strconv.ParseUint(strings.TrimSpace(got.body), 10, 64)
				if err != nil || known < signed {
					t.Fatalf("the witness is at %q, and it had signed %d", got.body, signed)
				}
				at = known // it was remembered, and the answer was lost
			default:
				t.Fatalf("got %v", got)
			}
		}
		<-killed
		_ = cmd.Wait()
	}
	if signed == 0 {
		t.Fatal("nothing was cosigned in any round")
	}
	_, url := start(t, dir)
	if got := post(t, url, body(t, 0, l.Fork(0, int(signed)+1).MustHead(t))); got.status != 409 {
		t.Errorf("another history after %d: %v, want 409", signed, got)
	}
}
