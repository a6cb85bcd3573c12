package httpexec

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

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

// fallbackDelay is how long the first family of addresses has before the other is tried beside it (RFC 8305).
const fallbackDelay = 300 * time.Millisecond

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
func (e *Executor) connector(allowed allowance, port int) func(context.Context, netip.Addr) (net.Conn, error) {
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

// race tries the addresses of the first family in turn and, after a short delay or their failure, those of the other
// family. The first connection wins.
func race(ctx context.Context, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	var first, other []netip.Addr
	for _, a := range addrs {
		if a.Unmap().Is4() == addrs[0].Unmap().Is4() {
			first = append(first, a)
		} else {
			other = append(other, a)
		}
	}
	if len(other) == 0 {
		return inTurn(ctx, first, dial)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 2)
	start := func(list []netip.Addr) {
		conn, err := inTurn(ctx, list, dial)
		results <- result{conn, err}
	}
	go start(first)
	running, fallback := 1, time.NewTimer(fallbackDelay)
	defer fallback.Stop()
	var firstErr error
	for started := false; ; {
		select {
		case <-fallback.C:
			if !started {
				started, running = true, running+1
				go start(other)
			}
		case r := <-results:
			running--
			if r.err == nil {
				if running > 0 { // the loser is cancelled; it may still have connected
					cancel()
					if late := <-results; late.conn != nil {
						_ = late.conn.Close()
					}
				}
				return r.conn, nil
			}
			if firstErr == nil {
				firstErr = r.err
			}
			if !started {
				started, running = true, running+1
				go start(other)
			} else if running == 0 {
				return nil, firstErr
			}
		}
	}
}

// inTurn tries one address after the other. Each gets its share of the time that is left.
func inTurn(ctx context.Context, addrs []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	var firstErr error
	for i, a := range addrs {
		conn, err := dialShare(ctx, len(addrs)-i, a, dial)
		if err == nil {
			return conn, nil
		}
		if firstErr == nil {
			firstErr = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, firstErr
}

func dialShare(ctx context.Context, left int, a netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
		return dial(share, a)
	}
	return dial(ctx, a)
}
