package httpexec

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
)

var (
	errTooLong  = errors.New("the header section of the answer is too long")
	errProtocol = errors.New("what came back is no HTTP answer")
)

// exchanged is what became of one request on the wire.
type exchanged struct {
	sent     int64
	resp     *http.Response // nil without an answer; its Body is read already
	body     []byte         // at most as much as is kept
	size     int64          // of the body, as far as it was seen or announced
	tooLong  bool           // the body goes on behind what is kept
	err      error          // what broke the exchange, before the answer or within its body
	reusable bool
	stream   bool // it was a stream of HTTP/2, which can be broken off alone
}

// exchange sends the request, once, and reads the answer. It keeps p up to date, and cuts the connection when ctx ends.
func (l *link) exchange(ctx context.Context, req *http.Request, keep int64, idle time.Duration, p *progress) exchanged {
	var got exchanged
	if l.h2 != nil {
		got = l.exchangeH2(ctx, req, keep, p)
	} else {
		got = l.exchangeH1(ctx, req, keep, p)
	}
	if got.sent == 0 {
		got.resp = nil // whatever came, it answers something else
	}
	if got.reusable {
		l.life = keepAlive(got.resp, idle)
	}
	return got
}

// inline is the size of a body that is written before reading starts: it fits into the buffers of an idle connection.
const inline = 8 << 10

func (l *link) exchangeH1(ctx context.Context, req *http.Request, keep int64, p *progress) (got exchanged) {
	before := l.meter.count()
	over := context.AfterFunc(ctx, func() { _ = l.meter.Close() })
	wrote := make(chan error, 1)
	if req.ContentLength <= inline {
		l.write(req, p, wrote)
	} else {
		go l.write(req, p, wrote) // a server may answer, and stop reading, before it has seen all
	}
	l.limit.left, l.limit.err = maxHead, nil
	got.resp, got.err = l.readHead(req) //nolint:bodyclose // closing would read the rest; the connection is cut instead
	l.limit.left = math.MaxInt64
	if got.resp != nil {
		got.read(keep, p)
	} else {
		got.err = errors.Join(got.err, l.limit.err) // half a line looks like a bad line
	}
	whole := got.resp != nil && got.err == nil && !got.tooLong && !got.resp.Close && l.answers.Buffered() == 0
	if whole {
		select {
		case err := <-wrote:
			got.reusable = err == nil && over()
			wrote <- err
		default: // an answer to a request that is still being sent: the rest is of no use
		}
	}
	if got.reusable {
		got.sent = l.meter.count() - before
		return got
	}
	over()
	got.sent = l.drop() - before
	if err := <-wrote; got.resp == nil && err != nil && got.err != nil {
		got.err = errors.Join(got.err, err)
	}
	return got
}

func (l *link) write(req *http.Request, p *progress, wrote chan<- error) {
	err := req.Write(l.request)
	if err == nil {
		err = l.request.Flush()
	}
	if err == nil {
		p.handed()
	}
	wrote <- err
}

// readHead reads the header section of the answer, past interim ones.
func (l *link) readHead(req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(l.answers, req)
		switch {
		case err != nil:
			return nil, err
		case resp.ProtoMajor != 1:
			return nil, errProtocol
		case resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode >= 200:
			return resp, nil
		case resp.StatusCode < 100:
			return nil, errProtocol
		}
	}
}

func (l *link) exchangeH2(ctx context.Context, req *http.Request, keep int64, p *progress) (got exchanged) {
	before := l.meter.count()
	got.stream = true
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			p.handed()
		}
	}})
	got.resp, got.err = l.h2.RoundTrip(req.WithContext(ctx))                         //nolint:bodyclose // it is, three lines down
	if got.resp != nil && (got.resp.StatusCode < 200 || got.resp.StatusCode > 999) { // three digits are not checked there
		_ = got.resp.Body.Close()
		got.resp, got.err = nil, errProtocol
	}
	if got.resp != nil {
		got.read(keep, p)
		_ = got.resp.Body.Close() // waits for the stream's end
	}
	if got.resp != nil && got.err == nil && !got.tooLong && l.h2.Err() == nil && l.h2.InFlight() == 0 {
		got.reusable = true
		got.sent = l.meter.count() - before
		return got
	}
	got.sent = l.drop() - before
	return got
}

// maxClaimed bounds a length that a target only claims: what a record can hold as an exact integer.
const maxClaimed = 1<<53 - 1

// read reads the body up to what is kept.
func (got *exchanged) read(keep int64, p *progress) {
	if got.resp.StatusCode == http.StatusSwitchingProtocols {
		got.err = errProtocol
		return
	}
	p.answered(got.resp)
	var body []byte
	body, got.err = p.readBody(io.LimitReader(got.resp.Body, keep+1))
	got.keep(body, keep)
}

// keep notes the body, or as much of it as is kept.
func (got *exchanged) keep(body []byte, keep int64) {
	got.size = int64(len(body))
	if int64(len(body)) > keep {
		body, got.tooLong = body[:keep], true
	}
	if got.tooLong || got.err != nil {
		got.size = min(max(got.size, got.resp.ContentLength), maxClaimed)
	}
	got.body = body
}

// keepAlive is how long the connection may wait: the executor's own limit, or less where the server says so.
func keepAlive(resp *http.Response, idle time.Duration) time.Duration {
	for part := range strings.SplitSeq(resp.Header.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		seconds, err := strconv.ParseUint(value, 10, 16)
		if strings.EqualFold(name, "timeout") && err == nil {
			idle = min(idle, time.Duration(seconds)*time.Second-time.Second)
		}
	}
	return idle
}
