package provider

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	controlPrefix = "/_control/"
	echoPath      = "/v1/echo"
	maxBody       = 16 << 20
)

// Server is the provider. Open makes one.
type Server struct {
	// Now is the clock of rows, key retention and look-up lag. Set it before
	// the first request. Delays do not use it.
	Now func() time.Time

	ledger  *ledger
	torn    []byte
	control http.Handler
	closing chan struct{}

	mu       sync.Mutex
	rows     []Row
	keys     map[string]int // key → index of the newest row that has it
	requests []Request
	jobs     []*job
	switches Switches
	freed    chan struct{} // closed when the switches are set anew
	changed  chan struct{} // closed when a request or an effect is added
	closed   bool
	conns    int
	servers  []*http.Server

	// busy counts requests, jobs and listeners. It is added to under mu, and never
	// once closed is true.
	busy   sync.WaitGroup
	failed []error // of listeners
}

// Open opens the ledger file, or creates it, and takes up its rows and keys.
// A torn last line is set aside; [Server.Torn] tells.
func Open(ledgerPath string) (*Server, error) {
	ledger, rows, torn, err := openLedger(ledgerPath)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Now:     time.Now,
		ledger:  ledger,
		torn:    torn,
		rows:    rows,
		keys:    make(map[string]int),
		closing: make(chan struct{}),
		freed:   make(chan struct{}),
		changed: make(chan struct{}),
	}
	for i, row := range rows {
		s.keys[row.Key] = i
	}
	s.switches, _ = Switches{}.complete()
	s.control = s.controlHandler()
	return s, nil
}

// Torn returns the torn last line that Open found, or nothing. Its bytes are
// kept beside the ledger, in a file whose name ends in .torn.
func (s *Server) Torn() []byte { return s.torn }

// Close ends all listeners and connections, lets no held request have an
// effect, and closes the ledger.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	servers := s.servers
	s.mu.Unlock()

	var errs []error
	for _, server := range servers {
		errs = append(errs, server.Close())
	}
	s.busy.Wait()
	return errors.Join(append(append(errs, s.failed...), s.ledger.close())...)
}

// Set replaces all switches. Requests that a fault holds go on.
func (s *Server) Set(switches Switches) error {
	switches, err := switches.complete()
	if err != nil {
		return fmt.Errorf("set switches: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switches = switches
	close(s.freed)
	s.freed = make(chan struct{})
	return nil
}

// Switches returns the switches as they are now: faults that were used up are
// gone, and the others show how many times are left.
func (s *Server) Switches() Switches {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.switches
	now.Faults = slices.Clone(now.Faults)
	return now
}

// Effects returns the ledger.
func (s *Server) Effects() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rows)
}

// Requests returns every request since Open in the order of arrival, with or
// without effect, except those to /_control/.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await returns when until is true. It asks again after each arrival of a
// request, each body read and each effect.
func (s *Server) Await(ctx context.Context, until func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if until() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return errors.New("the provider was closed")
		}
	}
}

// wake tells those who wait in Await. The caller holds mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Listen serves plain HTTP on addr until Close and returns the base URL.
func (s *Server) Listen(addr string) (url string, err error) {
	return s.listen(addr, "http://", nil)
}

// ListenTLS serves HTTP/1.1 and HTTP/2 over TLS on addr until Close and
// returns the base URL.
func (s *Server) ListenTLS(addr string, certificate tls.Certificate) (url string, err error) {
	return s.listen(addr, "https://", &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
	})
}

func (s *Server) listen(addr, scheme string, config *tls.Config) (string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:           s,
		TLSConfig:         config,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		ConnContext:       withWire,
		ConnState:         watchIdle,
		ErrorLog:          log.New(io.Discard, "", 0), // a broken connection is what this server is for
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errors.Join(errors.New("listen: the provider was closed"), listener.Close())
	}
	s.servers = append(s.servers, server)
	s.busy.Go(func() {
		var err error
		if numbered := (wireListener{listener, s}); config == nil {
			err = server.Serve(numbered)
		} else {
			err = server.ServeTLS(numbered, "", "")
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = append(s.failed, fmt.Errorf("serve %s: %w", listener.Addr(), err))
		}
	})
	return scheme + listener.Addr().String(), nil
}

// ServeHTTP answers a request. Under a server other than those of Listen and
// ListenTLS the log has no connection numbers, and header names are as
// net/http writes them.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.busy.Add(1)
	s.mu.Unlock()
	defer s.busy.Done()

	if strings.HasPrefix(r.URL.Path, controlPrefix) {
		s.control.ServeHTTP(w, r)
		return
	}
	s.exchange(w, r)
}

// exchange is the way of one request. The fault decides where it leaves.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	x := s.arrive(w, r)
	switch x.fault.Kind {
	case ResetBeforeRead:
		x.reset()
	case Early413:
		x.write(refusal(http.StatusRequestEntityTooLarge, "too_large", "refused before the body was read"))
		x.flush()
		x.drop()
	}

	if err := s.read(x); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			x.write(refusal(http.StatusRequestEntityTooLarge, "too_large", "a body has at most 16 MiB"))
			return
		}
		x.drop()
	}
	if x.fault.Kind != CommitThenDelay {
		s.pause(x)
	}
	switch x.fault.Kind {
	case DropAfterRead:
		x.drop()
	case HangAfterRead:
		s.hold(x)
		x.write(refusal(http.StatusServiceUnavailable, "abandoned", "the request was held and had no effect"))
		return
	case AnswerStatus, Redirect:
		x.write(x.fault.answer())
		return
	}

	a := s.perform(x)
	switch x.fault.Kind {
	case CommitThenDrop:
		x.drop()
	case CommitThenHang:
		s.hold(x)
	case CommitThenDelay:
		s.pause(x)
	case TruncateBody:
		x.writeHalf(a)
		x.flush()
		x.drop()
	case EchoHeaders:
		a = a.withEcho(x.headers)
	case GzipEcho:
		a = a.withEcho(x.headers).gzipped()
	}
	x.write(a)
}

// arrive logs the request and gives it its fault.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request) *exchange {
	wire := wireOf(r)
	x := &exchange{w: w, r: r, wire: wire, id: "req_" + randomID(), headers: headersOf(wire, r)}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.fault = s.switches.takeFault(r)
	x.freed = s.freed
	x.number = len(s.requests) + 1
	s.requests = append(s.requests, Request{
		Number:     x.number,
		Time:       s.Now().UTC(),
		Connection: wire.number(),
		RemoteAddr: r.RemoteAddr,
		Proto:      r.Proto,
		Method:     r.Method,
		URI:        r.RequestURI,
		Headers:    x.headers,
		Fault:      x.fault.Kind,
	})
	s.wake()
	return x
}

// read takes in the whole body and logs it. Half a body is never acted on.
func (s *Server) read(x *exchange) error {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	s.mu.Lock()
	defer s.mu.Unlock()
	x.body = body
	s.requests[x.number-1].Body = string(body)
	if err == nil {
		s.requests[x.number-1].BodyDigest = digest(body)
	}
	s.wake()
	return err
}

// pause waits for the delay of the fault.
func (s *Server) pause(x *exchange) {
	if x.fault.Delay == 0 {
		return
	}
	x.liftDeadlines()
	timer := time.NewTimer(x.fault.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.freed:
	case <-s.closing:
		x.drop()
	}
}

// hold keeps silent until the switches are set anew. If the client leaves
// first, or the provider is closed, it does not return.
func (s *Server) hold(x *exchange) {
	x.liftDeadlines()
	select {
	case <-x.freed:
	case <-x.r.Context().Done():
		x.drop()
	case <-s.closing:
		x.drop()
	}
}

func randomID() string {
	return strings.ToLower(rand.Text())
}
