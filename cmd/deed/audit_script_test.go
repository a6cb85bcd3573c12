package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// door PATH FILE gets something at the operator's door and keeps it in a file. With ! it must be refused.
func scriptDoor(ts *testscript.TestScript, neg bool, args []string) {
	socket := filepath.Join(filepath.Dir(ts.Getenv("SOCKET")), "operator.sock")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	res, err := client.Get("http://deed" + args[0])
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	if (res.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("%s is answered %s: %s", args[0], res.Status, text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// mode FILE OCTAL holds the permissions of a file against those that are wanted.
func scriptMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[1], 8, 32)
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %o, want %o", args[0], got, want)
	}
}

// awaitrecords N waits until the journal of $DATA has so many records: evidence of delivery is written a little later.
func scriptAwaitRecords(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	r := scriptReader(ts)
	defer r.Close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		seq, _, err := r.Head(context.Background())
		ts.Check(err)
		if seq+1 == want {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%d records, want %d", seq+1, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// exits CODE COMMAND… runs a command that must end with exactly that code. Its output is there for stdout and stderr.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("it ended with %d, want %d", got, want)
	}
}
