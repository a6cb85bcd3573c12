package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"deed.dev/deed/lab/provider"
)

// target is a process that answers every request at once.
type target struct {
	cmd *exec.Cmd
	in  io.Closer
	url string
}

func startTarget(ctx context.Context, args ...string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &target{cmd: exec.CommandContext(ctx, self, args...)}
	t.cmd.Stderr = os.Stderr
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, t.cmd.Wait())
	}
	t.url = strings.TrimSpace(line)
	var ready provider.Ready
	if json.Unmarshal([]byte(line), &ready) == nil {
		t.url = ready.URL
	}
	return t, nil
}

func (t *target) stop() {
	_ = t.in.Close() // the target ends with its input
	_ = t.cmd.Wait()
}

// serveProvider is the provider of the demo. It ends with its input, like the other target.
func serveProvider(ledger string) {
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	os.Exit(provider.Main([]string{"--ledger", ledger}, os.Stdout, os.Stderr))
}

// serveTarget runs until its input closes, so that it never outlives the bench.
func serveTarget() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	answer := []byte(`{"id":"ch_0123456789","object":"charge","amount":25000,"currency":"usd","customer":"cus_42","status":"succeeded"}`)
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer)
	}))
}
