package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"deed.dev/deed/internal/action"
)

// events ACTION prints the journal's bodies about an action.
func scriptEvents(ts *testscript.TestScript, _ bool, args []string) {
	r := scriptReader(ts)
	defer r.Close()
	all, err := r.EventsOf(context.Background(), action.ID(args[0]))
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", bytes.Join(all, []byte("\n")))
}

// metric LINE wants the line at the running gateway's metrics.
func scriptMetric(ts *testscript.TestScript, neg bool, args []string) {
	_, text, err := getUnix(filepath.Join(filepath.Dir(ts.Getenv("SOCKET")), "operator.sock"), "/metrics")
	ts.Check(err)
	if strings.Contains("\n"+text, "\n"+args[0]+"\n") == neg {
		ts.Fatalf("%s: found is %t in\n%s", args[0], neg, text)
	}
}

// agentdoor SOCKET wants nothing of the operator's door behind the agents' socket.
func scriptAgentDoor(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range []string{"/v1/status", "/v1/review", "/v1/approvals", "/metrics"} {
		if status, text, err := getUnix(args[0], path); err == nil && status == http.StatusOK {
			ts.Fatalf("%s is answered at %s: %s", path, args[0], text)
		}
	}
}

// getUnix makes one request over a Unix socket.
func getUnix(socket, path string) (int, string, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	res, err := client.Get("http://deed" + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}
