package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy forwards connections to its target. New makes one.
type Proxy struct {
	target string
	addr   string

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	workers sync.WaitGroup

	// setting is held by Set and Close, so that one at a time opens or closes
	// the listener.
	setting   sync.Mutex
	listener  net.Listener // nil while connections are refused
	accepting sync.WaitGroup

	mu      sync.Mutex
	rule    *rule  // what the plan says
	rest    *rule  // for connections that the plan is not for
	left    int    // connections that a limited plan is still for
	end     func() // ends the rules
	links   []*link
	changed chan struct{} // closed at each change of a count
}

// rule is a plan at work.
type rule struct {
	Plan
	ended <-chan struct{} // closed when another plan is set
}

// New starts a proxy on a free port of 127.0.0.1. It passes everything to the
// target, a host and port, until a plan is set.
func New(target string) (*Proxy, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{
		target:  target,
		addr:    "127.0.0.1:0",
		ctx:     ctx,
		cancel:  cancel,
		end:     func() {},
		changed: make(chan struct{}),
	}
	p.replace(Plan{Mode: Pass})
	if err := p.listen(); err != nil {
		cancel()
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// Addr is the address to connect to. It stays the same until Close.
func (p *Proxy) Addr() string { return p.addr }

// Close resets all connections and returns when nothing of the proxy runs.
func (p *Proxy) Close() error {
	p.setting.Lock()
	defer p.setting.Unlock()
	p.cancel()
	err := p.stopListening()
	p.mu.Lock()
	links := p.links
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
	p.workers.Wait()
	return err
}

// Set replaces the plan. A connection that has lost bytes loses all that
// follow in that direction, whatever the new plan says.
func (p *Proxy) Set(plan Plan) error {
	plan, err := plan.complete()
	if err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	p.setting.Lock()
	defer p.setting.Unlock()
	if p.ctx.Err() != nil {
		return errors.New("set plan: the proxy was closed")
	}
	for _, l := range p.replace(plan) {
		if plan.Mode == Reset {
			l.reset()
		}
	}
	if plan.Mode == Refuse {
		err = p.stopListening()
	} else if p.listener == nil {
		err = p.listenAgain()
	}
	if err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	return nil
}

// replace puts the plan in force. It returns the open connections that the
// plan is for.
func (p *Proxy) replace(plan Plan) []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	ended := make(chan struct{})
	p.end = func() { close(ended) }
	p.rule = &rule{plan, ended}
	p.rest = &rule{Plan{Mode: Pass}, ended}
	p.left = plan.Connections
	forOpen := p.rule
	if plan.Connections > 0 {
		forOpen = p.rest
	}
	var meant []*link
	for _, l := range p.links {
		l.rule = forOpen
		if l.open && forOpen == p.rule {
			meant = append(meant, l)
		}
	}
	return meant
}

// Connections returns all connections accepted since New, oldest first.
func (p *Proxy) Connections() []Connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := make([]Connection, len(p.links))
	for i, l := range p.links {
		seen[i] = Connection{
			Number:     i + 1,
			FromClient: l.request.came,
			Sent:       l.request.went,
			FromTarget: l.response.came,
			Received:   l.response.went,
			FirstByte:  l.firstByte,
			Open:       l.open,
		}
	}
	return seen
}

// Await returns when until is true. It asks again after each change of a
// count and each opening and closing of a connection.
func (p *Proxy) Await(ctx context.Context, until func([]Connection) bool) error {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if until(p.Connections()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ctx.Done():
			return errors.New("the proxy was closed")
		}
	}
}

// note changes what Connections returns and wakes those who wait in Await.
func (p *Proxy) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) listen() error {
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = listener
	p.accepting.Go(func() { p.accept(listener) })
	return nil
}

// listenAgain takes the port back. While it was free the system may have lent
// it to an outgoing connection, so it tries for some time.
func (p *Proxy) listenAgain() error {
	giveUp := time.After(5 * time.Second)
	for {
		err := p.listen()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-giveUp:
			return err
		}
	}
}

func (p *Proxy) stopListening() error {
	if p.listener == nil {
		return nil
	}
	err := p.listener.Close()
	p.listener = nil
	p.accepting.Wait()
	return err
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		l := p.admit(conn.(*net.TCPConn))
		p.workers.Go(l.run)
	}
}

// admit gives a new connection its number and its rule.
func (p *Proxy) admit(client *net.TCPConn) *link {
	l := &link{proxy: p, client: client, open: true}
	p.note(func() {
		l.rule = p.rule
		if p.rule.Connections > 0 && p.left == 0 {
			l.rule = p.rest
		} else if p.rule.Connections > 0 {
			p.left--
		}
		p.links = append(p.links, l)
	})
	return l
}
