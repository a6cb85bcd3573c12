package provider_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/lab/provider"
)

func TestFaultsWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		fault provider.Fault
		error error // what the client meets instead of an answer
		reply reply
	}{
		{fault: provider.Fault{Kind: provider.ResetBeforeRead}, error: syscall.ECONNRESET},
		{fault: provider.Fault{Kind: provider.DropAfterRead}, error: io.EOF},
		{fault: provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "7"},
			reply: reply{status: 503, header: http.Header{"Retry-After": {"7"}}, body: `{"error":{"code":"switched","message":"a switch asked for status 503"}}`}},
		{fault: provider.Fault{Kind: provider.AnswerStatus, Status: 402, Body: `{"declined":true}`},
			reply: reply{status: 402, body: `{"declined":true}`}},
		{fault: provider.Fault{Kind: provider.AnswerStatus, Status: 204},
			reply: reply{status: 204}},
		{fault: provider.Fault{Kind: provider.Redirect, Status: 307, Location: "http://other.example/v1/charges", Body: "moved"},
			reply: reply{status: 307, header: http.Header{"Location": {"http://other.example/v1/charges"}}, body: "moved"}},
	} {
		t.Run(fmt.Sprint(c.fault.Kind, c.fault.Status), func(t *testing.T) {
			r := newRig(t)
			c.fault.Times = 1
			r.fault(c.fault)
			got := r.charge("k1")
			if !errors.Is(got.err, c.error) || got.status != c.reply.status || got.body != c.reply.body {
				t.Errorf("got %v, want %v with error %v", got, c.reply, c.error)
			}
			for name := range c.reply.header {
				if got.header.Get(name) != c.reply.header.Get(name) {
					t.Errorf("%s is %q, want %q", name, got.header.Get(name), c.reply.header.Get(name))
				}
			}
			r.expectEffects(0)
			if seen := r.Requests(); len(seen) != 1 || seen[0].Fault != c.fault.Kind {
				t.Errorf("seen %+v, want one request with the fault %s", seen, c.fault.Kind)
			}

			// The key was not used up, and the fault was.
			if again := r.expect(r.charge("k1"), http.StatusCreated); again.header.Get("Idempotent-Replayed") != "" {
				t.Error("the second request was a replay, want an effect")
			}
		})
	}
}

func TestCommitThenDropHasOneEffectAndNoAnswer(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.CommitThenDrop, Times: 2})
	for range 2 {
		if got := r.charge("k1"); !errors.Is(got.err, io.EOF) {
			t.Fatalf("got %v, want the end of the connection", got)
		}
		r.expectEffects(1)
	}
	got := r.expect(r.charge("k1"), http.StatusCreated)
	if got.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the third answer is not marked as replayed")
	}
	r.expectEffects(1)
}

func TestCommitThenHangKeepsSilentUntilTheSwitchesAreSetAnew(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	held := r.postLater(t.Context(), "/v1/charges", "k1", goodCharge)
	r.await(func() bool { return len(r.Effects()) == 1 })

	// Another request with the key need not wait for the first.
	replayed := r.expect(r.charge("k1"), http.StatusCreated)
	select {
	case got := <-held:
		t.Fatalf("the held request was answered: %v", got)
	default:
	}
	r.set(provider.Switches{})
	if got := r.expect(<-held, http.StatusCreated); got.body != replayed.body {
		t.Errorf("got %v, want %v", got, replayed)
	}
	r.expectEffects(1)
}

func TestHangAfterReadHasNoEffect(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.HangAfterRead})
	held := r.postLater(t.Context(), "/v1/charges", "k1", goodCharge)
	r.awaitRead(1)
	r.expectEffects(0)
	r.set(provider.Switches{})
	r.expectCode(<-held, http.StatusServiceUnavailable, "abandoned")
	r.expectEffects(0)
}

func TestHangEndsWhenTheClientLeavesOrTheProviderCloses(t *testing.T) {
	for _, kind := range []provider.Kind{provider.HangAfterRead, provider.CommitThenHang} {
		r := newRig(t)
		r.fault(provider.Fault{Kind: kind})
		ctx, leave := context.WithCancel(t.Context())
		left := r.postLater(ctx, "/v1/charges", "k1", goodCharge)
		stayed := r.postLater(t.Context(), "/v1/charges", "k2", goodCharge)
		r.awaitRead(2)
		leave()
		if got := <-left; !errors.Is(got.err, context.Canceled) {
			t.Errorf("%s: got %v, want context canceled", kind, got)
		}
		// Close waits for both.
		if err := r.Close(); err != nil {
			t.Errorf("%s: close: %v", kind, err)
		}
		if got := <-stayed; got.err == nil {
			t.Errorf("%s: got %v, want an error", kind, got)
		}
	}
}

func TestCommitThenStatusIsStoredUnderTheKey(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.CommitThenStatus, Status: 500, Times: 1, Body: `{"broken":"<yes>"}`})
	first := r.expect(r.charge("k1"), http.StatusInternalServerError)
	if first.body != `{"broken":"<yes>"}` {
		t.Errorf("got %v, want the body of the switch", first)
	}
	r.expectReplay(r.charge("k1"), first)
	row := r.expectEffects(1)[0]
	if row.Status != 500 || row.Answer != first.body || !strings.Contains(string(row.Body), `"amount":25000`) {
		t.Errorf("row %+v, want the status 500, the answer given and the charge made", row)
	}
	if found := r.expect(r.get("/v1/charges/"+row.ID), http.StatusOK); found.body != string(row.Body) {
		t.Errorf("look-up gives %v, want the charge %s", found, row.Body)
	}
}

func TestTruncatedBodyComesAfterTheEffectAndAFullHeader(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.TruncateBody, Times: 1})
	got := r.charge("k1")
	whole := string(r.expectEffects(1)[0].Body)
	if got.status != 201 || !errors.Is(got.err, io.ErrUnexpectedEOF) || got.body != whole[:len(whole)/2] {
		t.Errorf("got status %d, %q, %v; want 201, half of %q and an unexpected end", got.status, got.body, got.err, whole)
	}
	if got.header.Get("Content-Length") != fmt.Sprint(len(whole)) {
		t.Errorf("Content-Length %s, want %d", got.header.Get("Content-Length"), len(whole))
	}
}

func TestEarly413IsAnsweredBeforeTheBodyIsRead(t *testing.T) {
	for _, size := range []int{100, 8 << 20} {
		r := newRig(t)
		r.fault(provider.Fault{Kind: provider.Early413})
		conn := r.dial()
		fmt.Fprintf(conn, "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 413 {
			t.Errorf("%d bytes: got %d, %v; want 413", size, response.StatusCode, err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes: read after the answer: %v, want the end of the connection", size, err)
		}
		r.expectEffects(0)
		if seen := r.Requests(); len(seen) != 1 || seen[0].BodyDigest != "" {
			t.Errorf("%d bytes: seen %+v, want one request whose body was not read", size, seen)
		}
	}
}

func TestDelayComesBeforeTheEffect(t *testing.T) {
	r := newRig(t)
	const delay = 20 * time.Millisecond
	r.fault(provider.Fault{Kind: provider.Delay, Delay: delay, Times: 1})
	start := time.Now()
	r.expect(r.charge("k1"), http.StatusCreated)
	if took := time.Since(start); took < delay {
		t.Errorf("the answer took %v, want at least %v", took, delay)
	}

	r.fault(provider.Fault{Kind: provider.CommitThenDrop, Delay: time.Hour})
	late := r.postLater(t.Context(), "/v1/charges", "k2", goodCharge)
	r.awaitRead(2)
	r.expectEffects(1)
	r.set(provider.Switches{})
	if got := <-late; !errors.Is(got.err, io.EOF) {
		t.Errorf("got %v, want the fault after its delay", got)
	}
	r.expectEffects(2)
}

func TestClientThatLeavesDuringADelayDoesNotStopTheEffect(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.Delay, Delay: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	left := r.postLater(ctx, "/v1/charges", "k1", goodCharge)
	r.awaitRead(1)
	leave()
	if got := <-left; got.err == nil {
		t.Fatalf("got %v, want an error", got)
	}
	r.set(provider.Switches{})
	r.await(func() bool { return len(r.Effects()) == 1 })
}

func TestClosingDuringADelayHasNoEffect(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.Delay, Delay: time.Hour})
	late := r.postLater(t.Context(), "/v1/charges", "k1", goodCharge)
	r.awaitRead(1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-late; got.err == nil {
		t.Errorf("got %v, want an error", got)
	}
	r.expectEffects(0)
}

func TestHalfARequestHasNoEffect(t *testing.T) {
	r := newRig(t)
	conn := r.dial()
	fmt.Fprintf(conn, "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(goodCharge)+1, goodCharge)
	r.await(func() bool { return len(r.Requests()) == 1 })
	conn.Close()
	r.await(func() bool { return r.Requests()[0].Body == goodCharge })
	if got := r.Requests()[0].BodyDigest; got != "" {
		t.Errorf("the body has the digest %s, want none", got)
	}
	r.expectEffects(0)
}

func TestBodyAboveTheBoundIsRefused(t *testing.T) {
	r := newRig(t)
	large := `{"amount":1,"currency":"usd","pad":"` + strings.Repeat("x", 16<<20) + `"}`
	if got := r.post("/v1/charges", "", large); got.err == nil {
		r.expectCode(got, http.StatusRequestEntityTooLarge, "too_large")
	} // an error is as good: the answer can be lost when the server stops reading
	r.expectEffects(0)
}

func TestEchoGivesBackWhatWasSent(t *testing.T) {
	r := newRig(t)
	for _, method := range []string{"GET", "POST"} {
		got := r.expect(r.send(t.Context(), method, "/v1/echo?a=b", "secret-key", "hello"), http.StatusOK)
		for _, want := range []string{`"method":"` + method, `"uri":"/v1/echo?a=b"`, `{"name":"Idempotency-Key","value":"secret-key"}`, `"body":"hello"`} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s: got %v, want %s in it", method, got, want)
			}
		}
		if got.header.Get("X-Echo") != "" || got.header.Get("Location") != "" {
			t.Errorf("%s: header %v, want no echo in it", method, got.header)
		}
	}
	r.expectEffects(0)
}

func TestEchoHeadersPutsSecretsInEveryAnswer(t *testing.T) {
	for _, kind := range []provider.Kind{provider.EchoHeaders, provider.GzipEcho} {
		r := newRig(t)
		r.fault(provider.Fault{Kind: kind})
		for path, want := range map[string]string{"/v1/echo": "secret-key", "/v1/charges": `"amount":25000`} {
			got := r.post(path, "secret-key", goodCharge)
			for _, name := range []string{"X-Echo", "Set-Cookie", "Location"} {
				if all := strings.Join(got.header.Values(name), "\n"); !strings.Contains(all, "secret-key") {
					t.Errorf("%s %s: %s is %q, want the key in it", kind, path, name, all)
				}
			}
			if kind == provider.GzipEcho {
				if got.header.Get("Content-Encoding") != "gzip" {
					t.Fatalf("%s: header %v, want gzip", path, got.header)
				}
				reader, err := gzip.NewReader(strings.NewReader(got.body))
				if err != nil {
					t.Fatal(err)
				}
				plain, err := io.ReadAll(reader)
				if err != nil {
					t.Fatal(err)
				}
				got.body = string(plain)
			}
			if !strings.Contains(got.body, want) {
				t.Errorf("%s %s: body %q, want %s in it", kind, path, got.body, want)
			}
		}
	}
}

func TestFaultsAreAQueueNarrowedByPathAndMethod(t *testing.T) {
	r := newRig(t)
	r.set(provider.Switches{Faults: []provider.Fault{
		{Kind: provider.AnswerStatus, Status: 501, Times: 1, Path: "/v1/objects/"},
		{Kind: provider.AnswerStatus, Status: 502, Times: 2, Method: "POST"},
		{Kind: provider.CommitThenStatus, Status: 504, Times: 1},
		{Kind: provider.AnswerStatus, Status: 418, Path: "/v1/refund"},
	}})
	r.expect(r.get("/v1/charges"), http.StatusOK)
	r.expect(r.charge(""), http.StatusBadGateway)
	r.expect(r.send(t.Context(), "PUT", "/v1/objects/a", "", ""), http.StatusNotImplemented)
	r.expect(r.charge(""), http.StatusBadGateway)
	r.expectEffects(0)
	r.expect(r.get("/v1/charges"), http.StatusOK) // has no effect, so the third fault waits
	r.expect(r.post("/v1/echo", "", ""), http.StatusOK)
	r.expect(r.charge(""), http.StatusGatewayTimeout)
	r.expect(r.charge(""), http.StatusCreated)
	for range 3 {
		r.expect(r.post("/v1/refund", "", ""), http.StatusTeapot)
	}
	if left := r.Switches().Faults; len(left) != 1 || left[0].Status != 418 {
		t.Errorf("faults left are %+v, want the last only", left)
	}
}

// The rig must be able to show the fault that a careful client avoids.
func TestDefaultGoClientSendsAKeyedPostTwiceWhenAKeptConnectionDies(t *testing.T) {
	r := newRig(t)
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	warm, err := client.Get(r.url + "/v1/echo")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, warm.Body)
	warm.Body.Close()

	r.set(provider.Switches{Keys: provider.IgnoreKey, Faults: []provider.Fault{{Kind: provider.CommitThenDrop, Times: 1}}})
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v1/charges", strings.NewReader(goodCharge))
	request.Header.Set("Idempotency-Key", "k1")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 201 {
		t.Errorf("got %d, want 201", response.StatusCode)
	}
	r.expectEffects(2)
	if seen := r.Requests(); seen[0].Connection != 1 || seen[1].Connection != 1 || seen[2].Connection != 2 {
		t.Errorf("connections %d, %d, %d; want 1, 1, 2", seen[0].Connection, seen[1].Connection, seen[2].Connection)
	}
}

func TestDropsWorkUnderAnotherServer(t *testing.T) {
	server, err := provider.Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(server)
	r := &rig{T: t, Server: server, url: other.URL, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	r.fault(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	if got := r.charge("k1"); !errors.Is(got.err, io.EOF) {
		t.Errorf("got %v, want the end of the connection", got)
	}
	r.fault(provider.Fault{Kind: provider.ResetBeforeRead, Times: 1})
	if got := r.charge("k1"); !errors.Is(got.err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", got)
	}
	r.expect(r.charge("k1"), http.StatusCreated)
	if got := r.Requests()[0]; got.Connection != 0 || got.Values("idempotency-key")[0] != "k1" {
		t.Errorf("seen %+v, want connection 0 and the key", got)
	}

	r.fault(provider.Fault{Kind: provider.CommitThenHang})
	held := r.postLater(t.Context(), "/v1/charges", "k2", goodCharge)
	r.await(func() bool { return len(r.Effects()) == 2 })
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if got := <-held; got.err == nil {
		t.Errorf("got %v, want an error", got)
	}
	if got := r.charge("k1"); got.err == nil {
		t.Errorf("got %v after Close, want an error", got)
	}
	other.Close()
}

func (r *rig) dial() net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		r.Fatal(err)
	}
	return conn
}

func TestEveryRequestIsLoggedAsItWasOnTheWire(t *testing.T) {
	r := newRig(t)
	conn := r.dial()
	reader := bufio.NewReader(conn)
	body := strings.Repeat("no: header\r\n", 1000) // more than is read together with the header
	for range 2 {                                  // on one connection, so the log must find where each begins
		fmt.Fprintf(conn, "POST /v1/nothing?q=%%20 HTTP/1.1\r\nhOST: a\r\nx-api-KEY:  s3cret \r\nX-Api-Key: two\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	r.expect(r.get("/v1/echo"), http.StatusOK)

	seen := r.Requests()
	if len(seen) != 3 {
		t.Fatalf("seen %+v, want 3 requests", seen)
	}
	for i, got := range seen[:2] {
		want := []provider.Header{{"hOST", "a"}, {"x-api-KEY", "s3cret"}, {"X-Api-Key", "two"}, {"content-length", "12000"}}
		if fmt.Sprint(got.Headers) != fmt.Sprint(want) {
			t.Errorf("request %d: headers %v, want %v", i+1, got.Headers, want)
		}
		if got.Number != i+1 || got.Method != "POST" || got.URI != "/v1/nothing?q=%20" || got.Body != body || len(got.BodyDigest) != 64 ||
			got.RemoteAddr != conn.LocalAddr().String() || got.Connection != 1 || got.Time.IsZero() {
			t.Errorf("request %d: got %+v", i+1, got)
		}
		if values := got.Values("X-API-key"); fmt.Sprint(values) != "[s3cret two]" {
			t.Errorf("request %d: values %v, want both spellings", i+1, values)
		}
	}
	if seen[2].Connection != 2 {
		t.Errorf("the third request came on connection %d, want 2", seen[2].Connection)
	}
	r.expectEffects(0)
}

func TestMeaninglessSwitchesAreRefused(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.AnswerStatus, Status: 503})
	for _, switches := range []provider.Switches{
		{Keys: "honor_key"},
		{Lookup: "maybe"},
		{LookupLag: -1},
		{KeyRetention: -1},
		{Faults: []provider.Fault{{}}},
		{Faults: []provider.Fault{{Kind: "explode"}}},
		{Faults: []provider.Fault{{Kind: provider.Delay}}},
		{Faults: []provider.Fault{{Kind: provider.AnswerStatus}}},
		{Faults: []provider.Fault{{Kind: provider.CommitThenStatus, Status: 100}}},
		{Faults: []provider.Fault{{Kind: provider.Redirect, Status: 307}}},
		{Faults: []provider.Fault{{Kind: provider.Redirect, Status: 200, Location: "/"}}},
		{Faults: []provider.Fault{{Kind: provider.CommitThenDrop, Times: -1}}},
		{Faults: []provider.Fault{{Kind: provider.CommitThenDrop, Delay: -1}}},
	} {
		if err := r.Set(switches); err == nil {
			t.Errorf("%+v was taken, want an error", switches)
		}
	}
	r.expect(r.charge(""), http.StatusServiceUnavailable) // as before
}

func TestLargeEchoArrivesWhole(t *testing.T) {
	r := newRig(t)
	large := bytes.Repeat([]byte("x"), 1<<20)
	got := r.expect(r.post("/v1/echo", "", string(large)), http.StatusOK)
	if n := strings.Count(got.body, "x"); n < len(large) {
		t.Errorf("%d bytes came back, want %d", n, len(large))
	}
}
