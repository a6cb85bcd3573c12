package provider

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// exchange is one request on its way to an answer.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	wire    *wire // nil under a foreign server
	id      string
	number  int
	headers []Header
	body    []byte
	fault   Fault
	freed   <-chan struct{} // closed when the switches are set anew
}

// answer is what the client is to be told.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// refusal is an answer without effect.
func refusal(status int, code, message string) answer {
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	return answer{status: status, body: encode(struct {
		Error problem `json:"error"`
	}{problem{code, message}})}
}

// answer is the one that the fault asks for.
func (f Fault) answer() answer {
	a := refusal(f.Status, "switched", fmt.Sprintf("a switch asked for status %d", f.Status))
	if f.Body != "" {
		a.body = []byte(f.Body)
	}
	a.header = make(http.Header)
	if f.RetryAfter != "" {
		a.header.Set("Retry-After", f.RetryAfter)
	}
	if f.Location != "" {
		a.header.Set("Location", f.Location)
	}
	return a
}

// withEcho sends the request headers back in places where secrets may leak.
func (a answer) withEcho(headers []Header) answer {
	a.header = a.header.Clone()
	if a.header == nil {
		a.header = make(http.Header)
	}
	query := make(url.Values)
	for _, header := range headers {
		a.header.Add("X-Echo", header.Name+": "+header.Value)
		a.header.Add("Set-Cookie", "echo-"+header.Name+"="+header.Value)
		query.Add(header.Name, header.Value)
	}
	a.header.Set("Location", echoPath+"?"+query.Encode())
	return a
}

// gzipped compresses the body. The answer must have a header already.
func (a answer) gzipped() answer {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(a.body) // a buffer takes everything
	_ = writer.Close()
	a.body = out.Bytes()
	a.header.Set("Content-Encoding", "gzip")
	return a
}

func (x *exchange) write(a answer) {
	x.writeHeader(a)
	_, _ = x.w.Write(a.body) // the client may have left
}

// writeHalf promises the whole body and sends half of it.
func (x *exchange) writeHalf(a answer) {
	x.writeHeader(a)
	_, _ = x.w.Write(a.body[:len(a.body)/2])
}

func (x *exchange) writeHeader(a answer) {
	header := x.w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	header.Set("Content-Type", "application/json")
	header.Set("Request-Id", x.id)
	if a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if x.fault.Kind == Early413 {
		// Without this net/http reads on before it answers.
		header.Set("Connection", "close")
	}
	x.w.WriteHeader(a.status)
}

func (x *exchange) flush() {
	_ = http.NewResponseController(x.w).Flush()
}

// liftDeadlines lets a request be held for longer than the server's timeouts.
func (x *exchange) liftDeadlines() {
	control := http.NewResponseController(x.w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

// drop closes the connection, and with it the other streams of HTTP/2. The
// system turns the close into a reset if it holds bytes that nobody read.
// It does not return.
func (x *exchange) drop() {
	if conn := x.conn(); conn != nil {
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// reset closes the connection with a TCP reset. It does not return.
func (x *exchange) reset() {
	if tcp, ok := x.conn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	x.drop()
}

// conn is the TCP connection, nil if a foreign server does not give it away.
func (x *exchange) conn() net.Conn {
	if x.wire == nil {
		if conn, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
			x.wire = &wire{Conn: conn}
		} else {
			return nil
		}
	}
	return x.wire.Conn
}
