package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// target is a process that answers every request at once.
type target struct {
	cmd *exec.Cmd
	in  io.Closer
	url string
}

func startTarget(ctx context.Context) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &target{cmd: exec.CommandContext(ctx, self, "-target")}
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
	return t, nil
}

func (t *target) stop() {
	_ = t.in.Close() // the target ends with its input
	_ = t.cmd.Wait()
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
