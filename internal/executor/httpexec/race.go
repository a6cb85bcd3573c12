package httpexec

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// dialFunc connects to one address.
type dialFunc func(context.Context, netip.Addr) (net.Conn, error)

// fallbackDelay is how long the first family of addresses has before the other is tried beside it (RFC 8305).
const fallbackDelay = 300 * time.Millisecond

// race tries the addresses of the first family in turn and, after a short delay or their failure, those of the other
// family. The first connection wins.
func race(ctx context.Context, addrs []netip.Addr, dial dialFunc) (net.Conn, error) {
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
func inTurn(ctx context.Context, addrs []netip.Addr, dial dialFunc) (net.Conn, error) {
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

func dialShare(ctx context.Context, left int, a netip.Addr, dial dialFunc) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
		return dial(share, a)
	}
	return dial(ctx, a)
}
