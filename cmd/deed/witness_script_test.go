package main

import (
	"net"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// freeaddress NAME sets the variable NAME to an address of this machine that nobody listens on.
func scriptFreeAddress(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

// awaitaddress ADDRESS waits until somebody answers there.
func scriptAwaitAddress(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if conn, err := net.Dial("tcp", args[0]); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody answers on %s", args[0])
}
