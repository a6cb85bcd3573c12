package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/lab/chaos"
)

// target is a TCP server that hands its connections to the test.
type target struct {
	*testing.T
	addr  string
	conns chan net.Conn
}

func newTarget(t *testing.T) *target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := &target{T: t, addr: listener.Addr().String(), conns: make(chan net.Conn)}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case target.conns <- conn:
			case <-t.Context().Done():
				conn.Close()
			}
		}
	})
	t.Cleanup(func() {
		listener.Close()
		accepting.Wait()
	})
	return target
}

// take returns the next connection that the target accepted.
func (s *target) take() net.Conn {
	s.Helper()
	select {
	case conn := <-s.conns:
		s.Cleanup(func() { conn.Close() })
		return withDeadline(s.T, conn)
	case <-time.After(10 * time.Second):
		s.Fatal("the target was not dialled")
		return nil
	}
}

func newProxy(t *testing.T, addr string) *chaos.Proxy {
	t.Helper()
	proxy, err := chaos.New(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return proxy
}

func set(t *testing.T, proxy *chaos.Proxy, plan chaos.Plan) {
	t.Helper()
	if err := proxy.Set(plan); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, proxy *chaos.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return withDeadline(t, conn)
}

// withDeadline makes a test that would wait for ever fail.
func withDeadline(t *testing.T, conn net.Conn) net.Conn {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("send %q: %v", text, err)
	}
}

func expect(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(conn, got)
	if err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(conn)
	if len(rest) > 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read %q, %v; want a reset", rest, err)
	}
}

// expectResetOnDial allows for a reset that comes before the dial returns.
func expectResetOnDial(t *testing.T, proxy *chaos.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Addr())
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	expectReset(t, withDeadline(t, conn))
}

// expectSilence shows that nothing has come and that the connection is open.
// It is called after the proxy is known to have dealt with all bytes.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
	withDeadline(t, conn)
}

// await waits until the counts of the last connection are as wanted.
func await(t *testing.T, proxy *chaos.Proxy, until func(chaos.Connection) bool) chaos.Connection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var last chaos.Connection
	err := proxy.Await(ctx, func(all []chaos.Connection) bool {
		if len(all) == 0 {
			return false
		}
		last = all[len(all)-1]
		return until(last)
	})
	if err != nil {
		t.Fatalf("await: %v; counts are %+v", err, last)
	}
	return last
}

func expectCounts(t *testing.T, proxy *chaos.Proxy, fromClient, sent, fromTarget, received int64) {
	t.Helper()
	want := [4]int64{fromClient, sent, fromTarget, received}
	var got [4]int64
	await(t, proxy, func(c chaos.Connection) bool {
		got = [4]int64{c.FromClient, c.Sent, c.FromTarget, c.Received}
		return got == want
	})
}

func TestPassForwardsAndCountsBothDirections(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()

	before := time.Now()
	send(t, client, "request")
	expect(t, server, "request")
	send(t, server, "answer")
	expect(t, client, "answer")

	expectCounts(t, proxy, 7, 7, 6, 6)
	if c := proxy.Connections()[0]; c.Number != 1 || !c.Open || c.FirstByte.Before(before) || c.FirstByte.After(time.Now()) {
		t.Errorf("got %+v, want open connection 1 with a first byte after %v", c, before)
	}
}

func TestPassForwardsTheEndOfEitherSide(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()

	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(server); len(rest) > 0 || err != nil {
		t.Fatalf("target read %q, %v; want the end", rest, err)
	}
	send(t, server, "late answer")
	server.Close()
	if rest, err := io.ReadAll(client); string(rest) != "late answer" || err != nil {
		t.Fatalf("client read %q, %v; want the late answer and the end", rest, err)
	}
	await(t, proxy, func(c chaos.Connection) bool { return !c.Open })
}

func TestPassForwardsAReset(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()

	if err := server.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	server.Close()
	expectReset(t, client)
}

func TestPassCarriesManyBytesUnchanged(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)

	var sending sync.WaitGroup
	sending.Go(func() {
		if _, err := client.Write(want); err != nil {
			t.Errorf("send: %v", err)
		}
		client.(*net.TCPConn).CloseWrite()
	})
	got, err := io.ReadAll(server)
	sending.Wait()
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes, %v; want the same %d", len(got), err, len(want))
	}
	expectCounts(t, proxy, int64(len(want)), int64(len(want)), 0, 0)
}

func TestRefusedDialFailsAndThePortComesBack(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()

	set(t, proxy, chaos.Plan{Mode: chaos.Refuse})
	if conn, err := net.Dial("tcp", proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial: %v, %v; want connection refused", conn, err)
	}
	send(t, client, "still open")
	expect(t, server, "still open")

	set(t, proxy, chaos.Plan{})
	send(t, dial(t, proxy), "again")
	expect(t, target.take(), "again")
}

func TestResetEndsNewConnectionsWithoutDiallingTheTarget(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.Reset, Connections: 1})

	expectResetOnDial(t, proxy)
	send(t, dial(t, proxy), "second")
	expect(t, target.take(), "second") // the first connection that the target sees
	if got := proxy.Connections()[0]; got.FromClient != 0 || got.Sent != 0 {
		t.Errorf("got %+v, want a connection without bytes", got)
	}
}

func TestResetEndsOpenConnections(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()

	set(t, proxy, chaos.Plan{Mode: chaos.Reset})
	expectReset(t, client)
	expectReset(t, server)
}

func TestCutRequestForwardsExactlyNBytesAndResetsBothSides(t *testing.T) {
	for _, n := range []int64{0, 1, 5, 10} {
		target := newTarget(t)
		proxy := newProxy(t, target.addr)
		set(t, proxy, chaos.Plan{Mode: chaos.CutRequest, Bytes: n})
		client, server := dial(t, proxy), target.take()

		send(t, client, "0123456789")
		expect(t, server, "0123456789"[:n])
		expectReset(t, server)
		expectReset(t, client)
		expectCounts(t, proxy, 10, n, 0, 0)
	}
}

func TestCutRequestCountsOverSeveralPieces(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.CutRequest, Bytes: 6})
	client, server := dial(t, proxy), target.take()

	send(t, client, "abcd")
	expect(t, server, "abcd")
	send(t, client, "efgh")
	expect(t, server, "ef")
	expectReset(t, server)
}

func TestSwallowedRequestNeverReachesTheTargetAndBothSidesStayOpen(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.SwallowRequest, Bytes: 4})
	client, server := dial(t, proxy), target.take()

	send(t, client, "0123456789")
	expect(t, server, "0123")
	expectCounts(t, proxy, 10, 4, 0, 0)
	expectSilence(t, server)
	expectSilence(t, client)

	// What follows a gap would be taken for the missing bytes.
	set(t, proxy, chaos.Plan{})
	send(t, client, "more")
	expectCounts(t, proxy, 14, 4, 0, 0)
	expectSilence(t, server)

	send(t, server, "the other direction passes")
	expect(t, client, "the other direction passes")
}

func TestCutResponseAtZeroResetsAfterTheTargetHasAnswered(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.CutResponse})
	client, server := dial(t, proxy), target.take()

	send(t, client, "request")
	expect(t, server, "request")
	send(t, server, "answer")
	expectReset(t, client)
	expectCounts(t, proxy, 7, 7, 6, 0)
}

func TestCutResponseForwardsExactlyNBytes(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.CutResponse, Bytes: 4})
	client, server := dial(t, proxy), target.take()

	send(t, server, "answer")
	expect(t, client, "answ")
	expectReset(t, client)
	expectCounts(t, proxy, 0, 0, 6, 4)
}

func TestSwallowedResponseLeavesTheClientWaiting(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.SwallowResponse})
	client, server := dial(t, proxy), target.take()

	send(t, client, "request")
	expect(t, server, "request")
	send(t, server, "answer")
	server.Close()
	expectCounts(t, proxy, 7, 7, 6, 0)
	expectSilence(t, client)
	if !proxy.Connections()[0].Open {
		t.Error("the connection is closed, want it open")
	}
}

func TestPlanOnAKeptConnectionCountsFromTheMomentItWasSet(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	client, server := dial(t, proxy), target.take()
	send(t, client, "first request")
	expect(t, server, "first request")
	send(t, server, "first answer")
	expect(t, client, "first answer")
	expectCounts(t, proxy, 13, 13, 12, 12)

	set(t, proxy, chaos.Plan{Mode: chaos.CutResponse, Bytes: 6})
	send(t, client, "second request")
	expect(t, server, "second request")
	send(t, server, "second answer")
	expect(t, client, "second")
	expectReset(t, client)
}

func TestLimitedPlanAppliesToTheNextConnectionsOnly(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	old, oldServer := dial(t, proxy), target.take()
	set(t, proxy, chaos.Plan{Mode: chaos.CutRequest, Connections: 2})

	for range 2 {
		client, server := dial(t, proxy), target.take()
		send(t, client, "x")
		expectReset(t, server)
	}
	client, server := dial(t, proxy), target.take()
	send(t, client, "third")
	expect(t, server, "third")
	send(t, old, "old")
	expect(t, oldServer, "old")
}

func TestHeldBytesGoOnWithTheNextPlan(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.Hold})
	client, server := dial(t, proxy), target.take()

	send(t, client, "held")
	expectCounts(t, proxy, 4, 0, 0, 0)
	expectSilence(t, server)
	send(t, server, "not held")
	expect(t, client, "not held")
	set(t, proxy, chaos.Plan{Mode: chaos.CutRequest, Bytes: 2})
	expect(t, server, "he")
	expectReset(t, server)
}

func TestHeldBytesAreLostWhenTheConnectionIsResetOrTheProxyCloses(t *testing.T) {
	for name, end := range map[string]func(*chaos.Proxy) error{
		"reset": func(p *chaos.Proxy) error { return p.Set(chaos.Plan{Mode: chaos.Reset}) },
		"close": (*chaos.Proxy).Close,
	} {
		target := newTarget(t)
		proxy := newProxy(t, target.addr)
		set(t, proxy, chaos.Plan{Mode: chaos.Hold})
		client, server := dial(t, proxy), target.take()

		send(t, client, "held")
		expectCounts(t, proxy, 4, 0, 0, 0)
		if err := end(proxy); err != nil {
			t.Fatal(err)
		}
		expectReset(t, server)
		if got := await(t, proxy, func(c chaos.Connection) bool { return !c.Open }); got.Sent != 0 {
			t.Errorf("%s: %d bytes were sent, want 0", name, got.Sent)
		}
	}
}

func TestDelayHoldsEachPieceBackInBothDirections(t *testing.T) {
	const delay = 20 * time.Millisecond
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Delay: delay})
	client, server := dial(t, proxy), target.take()

	start := time.Now()
	send(t, client, "request")
	expect(t, server, "request")
	if took := time.Since(start); took < delay {
		t.Errorf("the request took %v, want at least %v", took, delay)
	}
	start = time.Now()
	send(t, server, "answer")
	expect(t, client, "answer")
	if took := time.Since(start); took < delay {
		t.Errorf("the answer took %v, want at least %v", took, delay)
	}
}

func TestTwiceDeliversTheSameBytesOnTwoConnectionsAndAnswersWithTheLast(t *testing.T) {
	type delivery struct{ remote, body, key string }
	var mu sync.Mutex
	var got []delivery
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, delivery{r.RemoteAddr, string(body), r.Header.Get("Idempotency-Key")})
		io.WriteString(w, []string{"first", "last"}[min(len(got), 2)-1])
	}))
	defer server.Close()
	proxy := newProxy(t, strings.TrimPrefix(server.URL, "http://"))
	set(t, proxy, chaos.Plan{Mode: chaos.Twice})

	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+proxy.Addr()+"/v1/charges", strings.NewReader(`{"amount":100}`))
	request.Header.Set("Idempotency-Key", "k1")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "last" || err != nil || !response.Close {
		t.Errorf("answer %q, %v, Connection: close %v; want the last one, and close", body, err, response.Close)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || got[0].remote == got[1].remote {
		t.Fatalf("deliveries %+v, want two on two connections", got)
	}
	for _, d := range got {
		if d.body != `{"amount":100}` || d.key != "k1" {
			t.Errorf("delivery %+v differs from the request", d)
		}
	}
	if c := proxy.Connections()[0]; c.Sent != 2*c.FromClient {
		t.Errorf("sent %d bytes for %d from the client, want twice as many", c.Sent, c.FromClient)
	}
}

func TestTwiceSendsAgainWhenTheFirstDeliveryGetsNoAnswer(t *testing.T) {
	target := newTarget(t)
	proxy := newProxy(t, target.addr)
	set(t, proxy, chaos.Plan{Mode: chaos.Twice})
	client := dial(t, proxy)
	const request = "GET / HTTP/1.1\r\nHost: a\r\nx-Odd-Case: 1\r\n\r\n"

	send(t, client, request)
	first := target.take()
	expect(t, first, request)
	first.Close()
	second := target.take()
	expect(t, second, request)
	send(t, second, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
	answer, err := io.ReadAll(client)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 201 ") || !strings.HasSuffix(string(answer), "ok") {
		t.Errorf("answer %q, %v; want the 201 and the end", answer, err)
	}
}

func TestUnreachableTargetResetsTheClient(t *testing.T) {
	gone := newProxy(t, "127.0.0.1:1")
	set(t, gone, chaos.Plan{Mode: chaos.Refuse})
	proxy := newProxy(t, gone.Addr())
	expectResetOnDial(t, proxy)
}

func TestCloseEndsWaitingConnections(t *testing.T) {
	for _, plan := range []chaos.Plan{
		{}, {Mode: chaos.Hold}, {Mode: chaos.SwallowRequest}, {Delay: time.Hour}, {Mode: chaos.Twice, Delay: time.Hour},
	} {
		target := newTarget(t)
		proxy := newProxy(t, target.addr)
		set(t, proxy, plan)
		client := dial(t, proxy)
		send(t, client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		server := target.take()
		await(t, proxy, func(c chaos.Connection) bool { return c.FromClient > 0 })
		if err := proxy.Close(); err != nil {
			t.Errorf("%+v: close: %v", plan, err)
		}
		if slices.ContainsFunc(proxy.Connections(), func(c chaos.Connection) bool { return c.Open }) {
			t.Errorf("%+v: a connection is open after Close", plan)
		}
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Errorf("%+v: the client can still read", plan)
		}
		server.Close()
		if err := proxy.Set(chaos.Plan{}); err == nil {
			t.Errorf("%+v: Set works after Close, want an error", plan)
		}
	}
}

func TestMeaninglessPlansAreRefused(t *testing.T) {
	proxy := newProxy(t, "127.0.0.1:1")
	for _, plan := range []chaos.Plan{
		{Mode: "explode"},
		{Bytes: -1},
		{Delay: -1},
		{Connections: -1},
		{Mode: chaos.Refuse, Connections: 1},
	} {
		if err := proxy.Set(plan); err == nil {
			t.Errorf("plan %+v was taken, want an error", plan)
		}
	}
}
