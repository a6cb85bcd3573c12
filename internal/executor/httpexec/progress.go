package httpexec

import (
	"io"
	"net/http"
	"slices"
	"sync"
)

// progress is how far an exchange has come, for one who does not wait for its end. Its zero value is a beginning.
type progress struct {
	mu    sync.Mutex
	whole bool // the whole request was handed to the connection
	resp  *http.Response
	body  []byte
}

// handed notes that the connection took the whole request.
func (p *progress) handed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole = true
}

// answered notes the header section of the answer.
func (p *progress) answered(resp *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resp = resp
}

// readBody reads to the end of r, as io.ReadAll does, and lets each piece be seen. What was seen once is not changed.
func (p *progress) readBody(r io.Reader) ([]byte, error) {
	body := make([]byte, 0, 512)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		p.mu.Lock()
		p.body = body
		p.mu.Unlock()
		switch {
		case err == io.EOF: //nolint:errorlint // a Reader gives it bare
			return body, nil
		case err != nil:
			return body, err
		}
		body = slices.Grow(body, 1)
	}
}

// soFar is the exchange as it stands, ended by err. whole says whether the target may have the whole request.
func (p *progress) soFar(keep int64, err error) (got exchanged, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got.resp, got.err = p.resp, err
	if got.resp != nil {
		got.keep(slices.Clone(p.body), keep)
	}
	return got, p.whole
}
