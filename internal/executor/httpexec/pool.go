package httpexec

import (
	"sync"
	"time"
)

// pool keeps connections for a short time after an answer. A kept connection can always die in the moment of its next
// use, which costs an attempt with an unknown outcome; hence the time is short, and a connection is looked at before it
// is used.
type pool struct {
	perHost int

	mu     sync.Mutex
	links  map[linkKey][]*link
	closed bool
}

func newPool(perHost int) *pool { return &pool{perHost: perHost, links: map[linkKey][]*link{}} }

// take gives a connection that nothing speaks against, or nil.
func (p *pool) take(key linkKey) *link {
	for {
		l := p.pop(key)
		if l == nil {
			return nil
		}
		if l.idle.Stop() && l.usable() {
			return l
		}
		l.drop()
	}
}

func (p *pool) pop(key linkKey) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.links[key]
	if len(list) == 0 {
		return nil
	}
	l := list[len(list)-1]
	p.set(key, list[:len(list)-1])
	return l
}

// put keeps a connection, or closes it where there are enough.
func (p *pool) put(l *link) {
	p.mu.Lock()
	list := p.links[l.key]
	if p.closed || len(list) >= p.perHost || l.life <= 0 {
		p.mu.Unlock()
		l.close()
		return
	}
	p.links[l.key] = append(list, l)
	l.idle = time.AfterFunc(l.life, func() { p.expire(l) })
	p.mu.Unlock()
}

func (p *pool) expire(l *link) {
	p.mu.Lock()
	list := p.links[l.key]
	for i := range list {
		if list[i] == l {
			p.set(l.key, append(list[:i:i], list[i+1:]...))
			break
		}
	}
	p.mu.Unlock()
	l.close()
}

func (p *pool) set(key linkKey, list []*link) {
	if len(list) == 0 {
		delete(p.links, key)
		return
	}
	p.links[key] = list
}

func (p *pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *pool) close() {
	p.mu.Lock()
	links := p.links
	p.links, p.closed = map[linkKey][]*link{}, true
	p.mu.Unlock()
	for _, list := range links {
		for _, l := range list {
			l.idle.Stop()
			l.close()
		}
	}
}
