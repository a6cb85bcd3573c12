package httpexec

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawH2 is an HTTP/2 server made of frames, with a record of the requests that arrived.
type rawH2 struct {
	base string

	mu       sync.Mutex
	accepted int
	requests []uint32 // stream ids, in the order of arrival
	fields   []map[string]string
}

// h2Conn is one connection; answer is called when a request has arrived whole.
type h2Conn struct {
	*http2.Framer
	tcp    *net.TCPConn
	number int
	served int // requests on this connection
}

func newRawH2(t *testing.T, answer func(c *h2Conn, stream uint32)) *rawH2 {
	t.Helper()
	certificate, _ := authority()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawH2{base: "https://" + listener.Addr().String()}
	var running sync.WaitGroup
	var open sync.Map
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			s.mu.Lock()
			s.accepted++
			number := s.accepted
			s.mu.Unlock()
			running.Go(func() {
				defer func() { _ = c.Close() }()
				secure := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}})
				s.serve(secure, &h2Conn{tcp: c.(*net.TCPConn), number: number}, answer)
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

func (s *rawH2) serve(conn *tls.Conn, c *h2Conn, answer func(*h2Conn, uint32)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	c.Framer = http2.NewFramer(conn, conn)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if c.WriteSettings() != nil {
		return
	}
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.WriteSettingsAck()
			}
		case *http2.PingFrame:
			_ = c.WritePing(true, f.Data)
		case *http2.MetaHeadersFrame:
			fields := map[string]string{}
			for _, h := range f.Fields {
				fields[h.Name] = h.Value
			}
			s.mu.Lock()
			s.requests, s.fields = append(s.requests, f.StreamID), append(s.fields, fields)
			s.mu.Unlock()
			ended = f.StreamEnded()
		case *http2.DataFrame:
			if n := uint32(len(f.Data())); n > 0 {
				_ = c.WriteWindowUpdate(0, n)
				_ = c.WriteWindowUpdate(f.StreamID, n)
			}
			ended = f.StreamEnded()
		}
		if ended {
			c.served++
			answer(c, frame.Header().StreamID)
		}
	}
}

// ok answers 200 with a small body.
func (c *h2Conn) ok(stream uint32) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = e.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/plain"})
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = c.WriteData(stream, true, []byte("ok"))
}

func (c *h2Conn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

func (s *rawH2) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *rawH2) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}
