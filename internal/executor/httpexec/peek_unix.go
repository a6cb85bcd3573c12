//go:build unix

package httpexec

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// peek asks the operating system, without waiting, whether the peer sent or closed something on a connection that should
// be quiet. known is false where it cannot be asked.
func peek(c net.Conn) (quiet, known bool) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false, true
	}
	var b [1]byte
	err = raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EWOULDBLOCK)
	})
	return quiet && err == nil, true
}
