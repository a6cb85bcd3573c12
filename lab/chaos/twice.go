package chaos

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"time"
)

// twice serves one HTTP request of the client as a proxy would that loses
// patience: it sends the same bytes again on another connection.
func (l *link) twice() {
	pause := l.current().Delay
	request, raw, err := l.readRequest()
	if err != nil {
		l.reset()
		return
	}
	// The first answer is lost, whatever it was.
	_, _ = l.deliver(request, raw)
	select {
	case <-time.After(pause):
	case <-l.proxy.ctx.Done():
		return
	}
	response, err := l.deliver(request, raw)
	if err != nil {
		l.reset()
		return
	}
	response.Close = true
	_ = response.Write(writer(func(p []byte) (int, error) { // the client may have left
		n, err := l.client.Write(p)
		l.went(&l.response, n)
		return n, err
	}))
}

// readRequest returns the client's request and its bytes as they came.
func (l *link) readRequest() (*http.Request, []byte, error) {
	var raw bytes.Buffer
	request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(l.client, writer(func(p []byte) (int, error) {
		l.came(&l.request, len(p))
		return raw.Write(p)
	}))))
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return nil, nil, err
	}
	return request, raw.Bytes(), nil
}

// deliver sends the bytes on a new connection and reads the whole response.
func (l *link) deliver(request *http.Request, raw []byte) (*http.Response, error) {
	target, err := l.dial()
	if err != nil {
		return nil, err
	}
	defer target.Close()
	n, err := target.Write(raw)
	l.went(&l.request, n)
	if err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(io.TeeReader(target, writer(func(p []byte) (int, error) {
		l.came(&l.response, len(p))
		return len(p), nil
	}))), request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
