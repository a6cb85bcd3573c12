package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one process of this machine, held by the kernel where it can be: while the pidfd is open and the process
// has not exited, its pid is nobody else's.
type process struct {
	pid     int
	parent  int
	session int
	start   uint64
	pidfd   int // -1 when this kernel gives none
}

// errHidden means that /proc keeps a living process from us, as it can be told to do with those of other users.
var errHidden = errors.New("the process is hidden from us")

// openProcess finds a process by its number.
func openProcess(pid int) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, ErrGone
	case err != nil: // an old kernel or a sandbox; its start time, read twice, has to do
		fd = -1
	}
	return newProcess(pid, fd)
}

// newProcess reads what stays the same for as long as the process lives. It takes the pidfd over, also when it fails.
func newProcess(pid, pidfd int) (*process, error) {
	p := &process{pid: pid, pidfd: pidfd}
	var err error
	if p.parent, p.session, p.start, err = p.stat(); err == nil {
		return p, nil
	}
	defer p.close()
	if errors.Is(err, ErrGone) && pidfd >= 0 && !p.exited() {
		return nil, errHidden
	}
	return nil, err
}

func (p *process) close() {
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
	}
}

// lives reports whether the process that was opened is still there, so that what was read by its number since then was
// its own.
func (p *process) lives() bool {
	_, _, start, err := p.stat()
	return err == nil && start == p.start && !p.exited()
}

// keptParent reports whether its parent has lived since the process was opened: an orphan is given another parent.
func (p *process) keptParent() bool {
	parent, _, start, err := p.stat()
	return err == nil && start == p.start && parent == p.parent && !p.exited()
}

// exited asks the kernel directly. A pidfd is readable once its process has ended.
func (p *process) exited() bool {
	if p.pidfd < 0 {
		return false
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0
		}
	}
}

// stat reads the parent and the start time. The name in the line may hold anything, so what counts begins after the last
// parenthesis.
func (p *process) stat() (parent, session int, start uint64, err error) {
	line, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, 0, 0, gone(err)
	}
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", p.pid, len(fields))
	}
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0, 0, 0, err
	}
	if session, err = strconv.Atoi(string(fields[3])); err != nil {
		return 0, 0, 0, err
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return parent, session, start, err
}

// runsAs reports whether the process has this user for real and in effect, with no set-uid program in between.
func (p *process) runsAs(uid string) bool {
	status, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			uids := strings.Fields(rest)
			return len(uids) == 4 && uids[0] == uid && uids[1] == uid
		}
	}
	return false
}

func (p *process) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, name) }

// gone tells a process that has ended from one that may not be looked at.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// bootID names this boot of the machine; "" when it cannot be read.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
