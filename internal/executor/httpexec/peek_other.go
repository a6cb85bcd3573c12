//go:build !unix

package httpexec

import "net"

// peek cannot ask here. The short life of kept connections has to do.
func peek(net.Conn) (quiet, known bool) { return false, false }
