package chaos

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Connection is what is known of one client connection. A byte counts as sent
// or received when it was handed to the system, so a reset that follows at
// once may still destroy it if the other side reads slowly.
type Connection struct {
	Number     int       // counts accepted connections from 1
	FromClient int64     // bytes that came from the client
	Sent       int64     // bytes forwarded to the target
	FromTarget int64     // bytes that came from the target
	Received   int64     // bytes forwarded to the client
	FirstByte  time.Time // when the first byte came from the client
	Open       bool
}

// link is a client connection and the connection to the target that serves it.
type link struct {
	proxy  *Proxy
	client *net.TCPConn

	// Guarded by proxy.mu.
	target    *net.TCPConn // nil until dialled
	rule      *rule
	open      bool
	broken    bool // by reset
	firstByte time.Time
	request   traffic
	response  traffic
}

// traffic counts the bytes of one direction.
type traffic struct {
	came, went int64
}

// run serves the connection until both directions have ended.
func (l *link) run() {
	defer l.end()
	switch l.current().Mode {
	case Reset:
		l.reset()
		return
	case Twice:
		l.twice()
		return
	}
	target, err := l.dial()
	if err != nil {
		l.reset()
		return
	}
	request := stream{link: l, traffic: &l.request, src: l.client, dst: target, cut: CutRequest, swallow: SwallowRequest}
	response := stream{link: l, traffic: &l.response, src: target, dst: l.client, cut: CutResponse, swallow: SwallowResponse}
	var both sync.WaitGroup
	both.Go(request.pump)
	both.Go(response.pump)
	both.Wait()
}

func (l *link) current() *rule {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.rule
}

// dial connects to the target. The connection is closed by reset and by end.
func (l *link) dial() (*net.TCPConn, error) {
	conn, err := new(net.Dialer).DialContext(l.proxy.ctx, "tcp", l.proxy.target)
	if err != nil {
		return nil, err
	}
	target := conn.(*net.TCPConn)
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.broken {
		resetConn(target)
		return nil, net.ErrClosed
	}
	l.target = target
	return target, nil
}

// reset ends both sides with a TCP reset.
func (l *link) reset() {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	l.broken = true
	resetConn(l.client)
	if l.target != nil {
		resetConn(l.target)
	}
}

func resetConn(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // both fail if it is closed already
	_ = conn.Close()
}

func (l *link) end() {
	l.proxy.note(func() {
		l.open = false
		_ = l.client.Close()
		if l.target != nil {
			_ = l.target.Close()
		}
	})
}

// came counts bytes that have arrived.
func (l *link) came(t *traffic, n int) {
	l.proxy.note(func() {
		t.came += int64(n)
		if t == &l.request && l.firstByte.IsZero() {
			l.firstByte = time.Now()
		}
	})
}

// went counts bytes that were forwarded.
func (l *link) went(t *traffic, n int) {
	l.proxy.note(func() { t.went += int64(n) })
}

// stream is one direction of a link.
type stream struct {
	link         *link
	traffic      *traffic
	src, dst     *net.TCPConn
	cut, swallow Mode

	under *rule // the rule of the last piece
	count int64 // bytes forwarded under it
	lost  bool  // bytes are missing, so nothing may follow them
}

func (s *stream) isResponse() bool { return s.traffic == &s.link.response }

// pump forwards pieces until the source ends or the link is broken.
func (s *stream) pump() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := s.src.Read(buffer)
		if n > 0 {
			s.link.came(s.traffic, n)
			if !s.forward(buffer[:n]) {
				s.link.reset()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if !(s.lost && s.isResponse()) {
				_ = s.dst.CloseWrite() // fails if the other side is gone
			}
			return
		case err != nil:
			s.link.reset() // a reset goes on as a reset
			return
		}
	}
}

// forward does with a piece what the plan says. False means: break the link.
func (s *stream) forward(piece []byte) bool {
	rule, ok := s.await()
	if !ok || rule.Mode == Reset {
		return false
	}
	if s.lost {
		return true
	}
	if rule != s.under {
		s.under, s.count = rule, 0
	}
	if rule.Mode == s.cut || rule.Mode == s.swallow {
		room := rule.Bytes - s.count
		s.lost = room < int64(len(piece))
		piece = piece[:min(room, int64(len(piece)))]
	}
	n, err := s.dst.Write(piece)
	s.count += int64(n)
	s.link.went(s.traffic, n)
	full := rule.Mode == s.cut && s.count == rule.Bytes
	return err == nil && !full
}

// await returns the rule for the next piece once it may go on, and false if
// the proxy closes first.
func (s *stream) await() (*rule, bool) {
	for {
		rule := s.link.current()
		var due <-chan time.Time
		switch {
		case rule.Mode == Hold && !s.isResponse(): // until it ends
		case rule.Delay > 0:
			due = time.After(rule.Delay)
		default:
			return rule, true
		}
		select {
		case <-due:
			return rule, true
		case <-rule.ended:
		case <-s.link.proxy.ctx.Done():
			return nil, false
		}
	}
}
