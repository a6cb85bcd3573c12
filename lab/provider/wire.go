package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is a request as it was seen on the wire.
type Request struct {
	Number     int       `json:"number"`
	Time       time.Time `json:"time"`
	Connection int       `json:"connection"` // counts accepted connections from 1
	RemoteAddr string    `json:"remote_addr"`
	Proto      string    `json:"proto"`
	Method     string    `json:"method"`
	URI        string    `json:"uri"`

	// Headers are in the order and the spelling of the client for plain
	// HTTP/1.1. Over TLS they are sorted and spelt as net/http does.
	Headers []Header `json:"headers"`

	Body       string `json:"body"`
	BodyDigest string `json:"body_digest"` // SHA-256 in hex; empty if the body was not read to its end
	Fault      Kind   `json:"fault,omitempty"`
}

// Header is one header line.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Values returns the values of all lines with that name, in any spelling.
func (r Request) Values(name string) []string {
	var values []string
	for _, header := range r.Headers {
		if strings.EqualFold(header.Name, name) {
			values = append(values, header.Value)
		}
	}
	return values
}

// headersOf returns the header lines of a request that has just arrived.
func headersOf(wire *wire, r *http.Request) []Header {
	if r.TLS == nil && r.ProtoMajor == 1 {
		if headers := wire.takeHeaders(); headers != nil {
			return headers
		}
	}
	headers := []Header{{"Host", r.Host}}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			headers = append(headers, Header{name, value})
		}
	}
	return headers
}

// wire is a connection with a number. It remembers the bytes of a request
// header, because net/http keeps neither the order nor the spelling.
type wire struct {
	net.Conn
	count int

	mu     sync.Mutex
	head   []byte
	paused bool // between the header of a request and the end of its answer
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.paused {
		w.head = append(w.head, p[:n]...)
	}
	return n, err
}

// takeHeaders parses the bytes read so far and stops remembering. The first
// line is not looked at: net/http may have read its first byte too early.
func (w *wire) takeHeaders() []Header {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	head, _, whole := bytes.Cut(w.head, []byte("\r\n\r\n"))
	w.head, w.paused = nil, true
	if !whole {
		return nil
	}
	var headers []Header
	for _, line := range strings.Split(string(head), "\r\n")[1:] {
		name, value, _ := strings.Cut(line, ":")
		headers = append(headers, Header{name, strings.Trim(value, " \t")})
	}
	return headers
}

// expect makes ready for the next request on the connection.
func (w *wire) expect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
}

// number is zero for a connection that this package did not accept.
func (w *wire) number() int {
	if w == nil {
		return 0
	}
	return w.count
}

type wireListener struct {
	net.Listener
	server *Server
}

func (l wireListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.conns++
	return &wire{Conn: conn, count: l.server.conns}, nil
}

type wireKey struct{}

func withWire(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, wireKey{}, wireUnder(conn))
}

func wireOf(r *http.Request) *wire {
	w, _ := r.Context().Value(wireKey{}).(*wire)
	return w
}

func watchIdle(conn net.Conn, state http.ConnState) {
	if w := wireUnder(conn); w != nil && state == http.StateIdle {
		w.expect()
	}
}

func wireUnder(conn net.Conn) *wire {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	w, _ := conn.(*wire)
	return w
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
