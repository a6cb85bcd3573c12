package httpexec

import (
	"net"
	"sync"
	"sync/atomic"
)

// meter is a TCP connection that counts what the operating system took. It sits under TLS.
type meter struct {
	net.Conn
	mu   sync.Mutex // held while a write runs
	sent atomic.Int64
}

func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.Conn.Write(p)
	m.sent.Add(int64(n))
	return n, err
}

// count is what was sent so far. It waits for a write that runs.
func (m *meter) count() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.Load()
}

// soFar is what was sent so far, without waiting for a write that runs.
func (m *meter) soFar() int64 { return m.sent.Load() }

// cut ends the connection and gives the final count: a write that ran has ended, and none can follow.
func (m *meter) cut() int64 {
	_ = m.Close()
	return m.count()
}
