// Command deed is the gateway through which AI agents act on the outside world: once, honestly, bound to what was
// allowed, and on record.
//
// This package only wires the parts together and talks to people. It decides nothing about an action.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
