package httpexec

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// rawServer is a TCP server that keeps a record of what arrived, byte by byte, and answers as a test says.
type rawServer struct {
	base string

	mu       sync.Mutex
	accepted int
	requests []*http.Request
	bytes    int
}

// rawConn is one accepted connection.
type rawConn struct {
	net.Conn
	server *rawServer
	number int // counts accepted connections from 1
	tcp    *net.TCPConn
	cork   *cork
	r      *bufio.Reader
}

// cork holds writes back, so that several TLS records leave in one piece.
type cork struct {
	net.Conn
	held []byte
	hold bool
}

func (c *cork) Write(p []byte) (int, error) {
	if c.hold {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// together says several things in one piece.
func (c *rawConn) together(texts ...string) {
	c.cork.hold = true
	for _, text := range texts {
		c.say(text)
	}
	c.cork.hold = false
	_, _ = c.cork.Write(c.cork.held)
}

// newRawServer serves each connection with serve, and closes it then. With tls the connection speaks TLS and HTTP/1.1.
func newRawServer(t testing.TB, withTLS bool, serve func(*rawConn)) *rawServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{base: "http://" + listener.Addr().String()}
	if withTLS {
		s.base = "https://" + listener.Addr().String()
	}
	var running sync.WaitGroup
	var open sync.Map
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.accepted++
			conn := &rawConn{server: s, number: s.accepted, tcp: c.(*net.TCPConn), cork: &cork{Conn: c}}
			conn.Conn = conn.cork
			s.mu.Unlock()
			if withTLS {
				certificate, _ := authority()
				conn.Conn = tls.Server(conn.cork, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}})
			}
			conn.r = bufio.NewReader(countedReader{conn})
			open.Store(c, nil)
			running.Go(func() {
				serve(conn)
				_ = conn.Close()
				open.Delete(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		running.Wait()
	})
	return s
}

// countedReader counts what a connection reads; above TLS where there is TLS.
type countedReader struct{ *rawConn }

func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.mu.Lock()
	c.server.bytes += n
	c.server.mu.Unlock()
	return n, err
}

// request reads one whole request, body and all, and puts it on record. It gives nil at the end of the connection.
func (c *rawConn) request() *http.Request {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.requests = append(c.server.requests, req)
	return req
}

func (c *rawConn) say(text string) { _, _ = io.WriteString(c.Conn, text) }

// reset breaks the connection with a TCP reset.
func (c *rawConn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

func (s *rawServer) seen() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *rawServer) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

func (s *rawServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
