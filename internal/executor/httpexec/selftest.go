package httpexec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"deed.dev/deed/internal/action"
)

// SelfTest shows that this executor, in this process, makes one request of one dispatch: it sends to a server of its own
// on the loopback interface, which breaks the connection, keeps silent, or answers 429, 500 or 503, each on a connection
// that was used before. The daemon runs it at its start, since the promise rests on the behaviour of libraries.
func (e *Executor) SelfTest(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("self-test of the HTTP executor: %w", err)
	}
	s := &testServer{listener: listener, open: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	defer s.close()
	for _, ending := range []string{"reset", "silence", "429", "500", "503"} {
		if err := s.check(ctx, e, ending); err != nil {
			return fmt.Errorf("self-test of the HTTP executor, %s: %w", ending, err)
		}
	}
	return nil
}

// testServer answers the path /ok and treats any other path as its name says. It counts the others.
type testServer struct {
	listener net.Listener
	running  sync.WaitGroup
	requests atomic.Int64

	mu   sync.Mutex
	open map[net.Conn]bool
}

func (s *testServer) check(ctx context.Context, e *Executor, ending string) error {
	before := s.requests.Load()
	if out := e.Perform(ctx, s.dispatch("/ok")); out.Status != http.StatusOK {
		return fmt.Errorf("the warm-up ended with %s (%s)", out.State, out.Reason)
	}
	d := s.dispatch("/" + ending)
	if ending == "silence" {
		d.Operation.Timeout = 200
	}
	out := e.Perform(ctx, d)
	switch {
	case out.Certainty != action.Indeterminate:
		return fmt.Errorf("the outcome is %s, and nothing was proved", out.Certainty)
	case out.BytesSent == 0:
		return errors.New("no byte is said to be sent")
	}
	for range 500 { // a busy machine may be late in reading the request that timed out
		if s.requests.Load() > before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if arrived := s.requests.Load() - before; arrived != 1 {
		return fmt.Errorf("%d requests arrived, want 1", arrived)
	}
	return nil
}

func (s *testServer) dispatch(path string) action.Dispatch {
	address := s.listener.Addr().(*net.TCPAddr)
	return action.Dispatch{
		Action: "self-test", Attempt: "self-test", Token: "self-test", Allowed: "self-test", Binding: "self-test",
		Trace: action.Trace{TraceID: "00000000000000000000000000000001", SpanID: "0000000000000001"},
		Operation: action.Operation{
			Channel: "http", Method: "POST", Path: path, Body: []byte("{}"), MediaType: "application/json",
			Target: action.Target{Scheme: "http", Host: "127.0.0.1", Port: address.Port, Private: []string{"127.0.0.1/32"}},
			Key:    action.KeyPlace{Header: "Idempotency-Key"}, Timeout: 10_000, MaxResult: 1024,
		},
	}
}

func (s *testServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[conn] = true
		s.mu.Unlock()
		s.running.Go(func() { s.serve(conn) })
	}
}

func (s *testServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	reader := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if req.URL.Path != "/ok" {
			s.requests.Add(1)
		}
		switch req.URL.Path {
		case "/ok":
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		case "/reset":
			_ = conn.(*net.TCPConn).SetLinger(0)
			return
		case "/silence": // the client leaves
		default:
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s x\r\nContent-Length: 0\r\n\r\n", req.URL.Path[1:])
		}
	}
}

func (s *testServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
