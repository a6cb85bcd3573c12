package httpexec

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"deed.dev/deed/internal/action"
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A sendError is why nothing of the request was sent, in a closed word.
type sendError struct {
	reason string
	err    error
}

func (e *sendError) Error() string { return e.reason }
func (e *sendError) Unwrap() error { return e.err }

// dial connects to the target. The name is resolved once; each address is checked, then dialled as an address, and
// checked again at the socket. One forbidden address in the answer refuses the whole name: it is either a mistake of the
// contract or somebody's attempt to get inside.
func (e *Executor) dial(ctx context.Context, target action.Target) (net.Conn, error) {
	allowed, ok := allowances(target.Private)
	if !ok {
		return nil, &sendError{ReasonTargetRefused, nil}
	}
	addrs, err := e.resolve(ctx, target.Host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if !allowed.allows(a) {
			return nil, &sendError{ReasonAddressRefused, errAddress}
		}
	}
	conn, err := race(ctx, addrs, e.connector(allowed, target.Port))
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, errAddress):
		return nil, &sendError{ReasonAddressRefused, err}
	default:
		return nil, &sendError{ReasonDialFailed, err}
	}
}

func (e *Executor) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	a, is, looks := literal(host)
	switch {
	case is:
		return []netip.Addr{a}, nil
	case looks:
		return nil, &sendError{ReasonAddressRefused, errAddress}
	}
	addrs, err := e.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, &sendError{ReasonResolveFailed, err}
	}
	return addrs, nil
}

// connector dials one address and looks at the socket's own address before it connects.
func (e *Executor) connector(allowed allowance, port int) dialFunc {
	d := net.Dialer{
		Timeout: e.dialTimeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !allowed.allows(ap.Addr()) {
				return errAddress
			}
			return nil
		},
	}
	return func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), strconv.Itoa(port)))
	}
}
