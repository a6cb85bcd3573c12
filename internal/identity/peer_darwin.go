package identity

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"deed.dev/deed/internal/action"
	"golang.org/x/sys/unix"
)

// PeerOf names the user of the process that made a connection, and as evidence the process. This system gives no handle
// that holds a process while it is read, so no executable is claimed and the bridge is not looked through.
func PeerOf(conn *net.UnixConn) (*Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("identify the peer: %w", err)
	}
	var cred *unix.Xucred
	var pid int
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		if cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); credErr != nil {
			return
		}
		if pid, err = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID); err != nil {
			pid = 0
		}
	}); err != nil {
		return nil, fmt.Errorf("identify the peer: %w", err)
	}
	if credErr != nil {
		return nil, fmt.Errorf("identify the peer: %w", credErr)
	}
	s := sighting{uid: strconv.FormatUint(uint64(cred.Uid), 10), pid: pid, start: startTime(pid), boot: bootID(), strength: action.StrengthPeerUID}
	return s.peer(), nil
}

// ParentActor names the user that started this process, and as evidence the parent. Call it at the start.
func ParentActor() (*Peer, error) {
	pid := os.Getppid()
	s := sighting{uid: strconv.Itoa(os.Getuid()), boot: bootID(), strength: action.StrengthSameProcess}
	if start := startTime(pid); pid > 1 && os.Getppid() == pid {
		s.pid, s.start = pid, start
	} else {
		s.pid, s.start = os.Getpid(), startTime(os.Getpid())
	}
	return s.peer(), nil
}

// startTime is when a process started, in microseconds since 1970; 0 when that cannot be read.
func startTime(pid int) uint64 {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if pid <= 0 || err != nil {
		return 0
	}
	at := info.Proc.P_starttime
	return uint64(at.Sec)*1_000_000 + uint64(at.Usec)
}

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
