package vault

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// patience bounds a source that has to be asked: a program, a token server, OpenBao.
const patience = 15 * time.Second

// runCommand gives what a program prints, without the line end. It runs without a shell, without input, in the root
// directory, and with nothing in its environment but PATH. What it says on standard error is dropped: it may hold
// anything.
func runCommand(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := &limited{left: MaxSecret + 2}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout = []string{"PATH=" + os.Getenv("PATH")}, string(os.PathSeparator), out
	cmd.WaitDelay = time.Second // for children that keep the output open
	err := cmd.Run()
	defer clear(out.text.Bytes())
	switch {
	case out.left < 0:
		return "", errors.New("its program prints too much")
	case ctx.Err() != nil:
		return "", errors.New("its program took too long")
	case err != nil:
		return "", errors.New("its program failed")
	}
	return trimNewline(out.text.String()), nil
}

// limited keeps what fits and remembers that there was more.
type limited struct {
	text bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too much")
	}
	return l.text.Write(p)
}
