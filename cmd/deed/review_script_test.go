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

// agentdoor SOCKET [ACTION] wants nothing of the operator's door behind the agents' socket, the action's content included.
func scriptAgentDoor(ts *testscript.TestScript, _ bool, args []string) {
	for _, path := range []string{"/v1/status", "/v1/review", "/v1/approvals", "/v1/journal", "/v1/journal/checkpoint", "/v1/journal/keys", "/metrics"} {
		if status, text, err := getUnix(args[0], path); err == nil && status == http.StatusOK {
			ts.Fatalf("%s is answered at %s: %s", path, args[0], text)
		}
	}
	if len(args) < 2 {
		return
	}
	res, err := unixClient(args[0]).Post("http://deed/v1/actions/"+args[1]+"/content", "application/json", strings.NewReader(`{"why":"curious"}`))
	if err != nil {
		return
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode == http.StatusOK || bytes.Contains(text, []byte("requested")) {
		ts.Fatalf("content is shown at the agents' door: %s", text)
	}
}

// getUnix makes one request over a Unix socket.
func getUnix(socket, path string) (int, string, error) {
	res, err := unixClient(socket).Get("http://deed" + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func unixClient(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}
