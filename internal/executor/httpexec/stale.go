package httpexec

import (
	"errors"
	"net"
	"os"
	"time"
)

// usable reports whether a kept connection shows no sign of its end. Bytes that wait on an HTTP/1.1 connection belong to
// no request: the connection is out of step, and the next answer on it might be another's.
func (l *link) usable() bool {
	if l.h2 != nil && (l.h2.Err() != nil || l.h2.Available() == 0) {
		return false
	}
	if quiet, known := peek(l.meter.Conn); known && !quiet {
		return false
	}
	return l.h2 != nil || l.silent()
}

// silent looks at what TLS or the buffer hold already. Reading with a deadline in the past takes nothing from the socket.
func (l *link) silent() bool {
	if l.answers.Buffered() > 0 {
		return false
	}
	if l.conn == net.Conn(l.meter) {
		return true
	}
	_ = l.conn.SetReadDeadline(time.Unix(1, 0))
	defer func() { _ = l.conn.SetReadDeadline(time.Time{}) }()
	_, err := l.answers.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}
