package identity

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"deed.dev/deed/internal/action"
	"golang.org/x/sys/unix"
)

// PeerOf names the process that made a connection. A connection that was handed to another process keeps its maker, and
// when that one has ended the answer is ErrGone.
//
// It may read a whole executable once, so call it where a connection is served and not where connections are accepted.
func PeerOf(conn *net.UnixConn) (*Peer, error) {
	return peerOf(conn, peerPIDFD)
}

// peerOf takes the way to a pidfd as an argument, so that tests can go without one as old kernels do.
func peerOf(conn *net.UnixConn, pidfdOf func(fd int) (int, error)) (*Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("identify the peer: %w", err)
	}
	var cred *unix.Ucred
	var credErr, fdErr error
	pidfd := -1
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr == nil {
			pidfd, fdErr = pidfdOf(int(fd))
		}
	}); err != nil {
		return nil, fmt.Errorf("identify the peer: %w", err)
	}
	if credErr != nil {
		return nil, fmt.Errorf("identify the peer: %w", credErr)
	}
	s := sighting{uid: strconv.FormatUint(uint64(cred.Uid), 10), boot: bootID(), strength: action.StrengthPeerUID}
	if cred.Pid <= 0 { // it lives where we cannot see it, in another pid namespace
		closeFD(pidfd)
		return s.peer(), nil
	}
	p, strength, err := hold(int(cred.Pid), pidfd, fdErr)
	if errors.Is(err, ErrGone) {
		return nil, ErrGone
	}
	if err != nil { // there is no /proc, or it is not for us to read
		return s.peer(), nil
	}
	defer p.close()
	s.strength = strength
	return s.look(p)
}

// hold opens the peer, by the pidfd that came with the connection if there is one.
func hold(pid, pidfd int, fdErr error) (*process, action.Strength, error) {
	switch {
	case errors.Is(fdErr, unix.ESRCH):
		return nil, "", ErrGone
	case fdErr != nil:
		p, err := openProcess(pid)
		return p, action.StrengthPeerPID, err
	}
	if err := holds(pidfd, pid); err != nil {
		closeFD(pidfd)
		return nil, "", err
	}
	p, err := newProcess(pid, pidfd)
	return p, action.StrengthPeerPIDFD, err
}

// look reads the process behind p and looks through the bridge. What it says was read of one living process.
func (s sighting) look(p *process) (*Peer, error) {
	exe, running, err := p.executable()
	if errors.Is(err, ErrGone) || !p.lives() {
		return nil, ErrGone
	}
	s.pid, s.start = p.pid, p.start
	if err != nil { // another user's process: the kernel shows us no executable
		return s.peer(), nil
	}
	s.exe = exe
	return s.throughBridge(p, running).peer(), nil
}

// peerPIDFD asks the kernel, from version 6.5 on, for the process that made the connection.
func peerPIDFD(fd int) (int, error) {
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
}

// holds checks that a pidfd holds the process which we know by this number.
func holds(pidfd, pid int) error {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		rest, ok := strings.CutPrefix(line, "Pid:")
		if !ok {
			continue
		}
		switch got, err := strconv.Atoi(strings.TrimSpace(rest)); {
		case err != nil:
			return err
		case got <= 0:
			return ErrGone
		case got == pid:
			return nil
		}
	}
	return errors.New("/proc numbers processes in another way")
}

func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}
