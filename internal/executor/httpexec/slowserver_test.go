package httpexec

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// slowServer takes each request whole and then does what the test tells it, step by step.
type slowServer struct {
	base        string
	requests    func() int
	connections func() int
	steps       chan string
}

// Steps of a slow server. A number is a status: the header section of an answer whose body has two halves.
const (
	firstHalf  = "first half" // names the credential that came with the request
	secondHalf = "second half"
	cutOff     = "cut off"
)

func newSlowServer(t *testing.T, protocol string) *slowServer {
	t.Helper()
	s := &slowServer{steps: make(chan string, 8)}
	next := func() string {
		select {
		case step := <-s.steps:
			return step
		case <-t.Context().Done():
			return cutOff
		}
	}
	if protocol == "HTTP/2" {
		var raw *rawH2
		raw = newRawH2(t, func(c *h2Conn, stream uint32) {
			raw.mu.Lock()
			first, second := halves(raw.fields[len(raw.fields)-1]["authorization"])
			raw.mu.Unlock()
			for step := next(); ; step = next() {
				switch step {
				case firstHalf:
					_ = c.WriteData(stream, false, []byte(first))
				case secondHalf:
					_ = c.WriteData(stream, true, []byte(second))
					return
				case cutOff:
					_ = c.tcp.Close()
					return
				default:
					c.head(stream, step)
				}
			}
		})
		s.base, s.requests, s.connections = raw.base, raw.seen, raw.connections
		return s
	}
	raw := newRawServer(t, protocol == "TLS", func(c *rawConn) {
		for {
			req := c.request()
			if req == nil {
				return
			}
			first, second := halves(req.Header.Get("Authorization"))
			for step := next(); ; step = next() {
				if step == cutOff {
					return
				}
				switch step {
				case firstHalf:
					c.say(first)
				case secondHalf:
					c.say(second)
				default:
					c.say(fmt.Sprintf("HTTP/1.1 %s x\r\nContent-Length: %d\r\n\r\n", step, len(first)+len(second)))
				}
				if step == secondHalf {
					break
				}
			}
		}
	})
	s.base, s.connections = raw.base, raw.connections
	s.requests = func() int { return len(raw.seen()) }
	return s
}

func halves(authorization string) (first, second string) {
	return `{"got":` + strconv.Quote(authorization), `,"id":"ch_1"}`
}

// head begins an answer.
func (c *h2Conn) head(stream uint32, status string) {
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
}

// say tells the server its next steps.
func (s *slowServer) say(steps ...string) {
	for _, step := range steps {
		s.steps <- step
	}
}
