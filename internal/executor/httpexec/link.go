package httpexec

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// linkKey says for what a connection may be used again. The allowed ranges are in it, since another contract may not
// allow the address; and so is the credential, so that no answer meant for one can reach another.
type linkKey struct {
	scheme, host string
	port         int
	private      string
	credential   string
	certificate  string // digest of the one that was shown in the handshake
}

func keyOf(op action.Operation) linkKey {
	t := op.Target
	return linkKey{scheme: t.Scheme, host: t.Host, port: t.Port, private: strings.Join(t.Private, " "), credential: op.Credential}
}

// link is one connection. It carries one request at a time.
type link struct {
	key    linkKey
	meter  *meter
	conn   net.Conn // the meter, or TLS over it
	remote string

	request *bufio.Writer // HTTP/1.1
	answers *bufio.Reader // HTTP/1.1
	limit   *budget       // of answers
	h2      *http.ClientConn

	idle *time.Timer // runs while the link waits in the pool
	life time.Duration
}

// maxHead bounds the header section of an answer, in bytes.
const maxHead = 64 << 10

// connect dials the target and agrees on TLS and on the protocol, showing a certificate where there is one to show.
// Nothing of the request is sent here.
func (e *Executor) connect(ctx context.Context, key linkKey, target action.Target, shown *tls.Certificate) (*link, error) {
	raw, err := e.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	m := &meter{Conn: raw}
	l := &link{key: key, meter: m, conn: m, remote: raw.RemoteAddr().String()}
	if target.Scheme == "https" {
		if err := l.secure(ctx, e.tls, target, shown); err != nil {
			m.cut()
			return nil, &sendError{ReasonTLSFailed, err}
		}
	}
	if l.h2 == nil {
		l.limit = &budget{r: l.conn, left: math.MaxInt64}
		l.answers, l.request = bufio.NewReader(l.limit), bufio.NewWriter(l.conn)
	}
	return l, nil
}

func (l *link) secure(ctx context.Context, base *tls.Config, target action.Target, shown *tls.Certificate) error {
	cfg := base.Clone()
	cfg.ServerName = target.Host
	if shown != nil {
		cfg.Certificates = []tls.Certificate{*shown}
		cfg.ClientSessionCache = nil // a session that is taken up again would carry the certificate to other credentials
	}
	conn := tls.Client(l.meter, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	l.conn = conn
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		return nil
	}
	var err error
	l.h2, err = h2Over(ctx, conn, net.JoinHostPort(target.Host, strconv.Itoa(target.Port)))
	return err
}

// h2Over starts HTTP/2 on a connection. The transport is used for nothing else: a ClientConn is one connection, and what
// fails on it is not sent again.
func h2Over(ctx context.Context, conn *tls.Conn, address string) (*http.ClientConn, error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	t := &http.Transport{
		DialTLSContext:         func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHead,
	}
	return t.NewClientConn(ctx, "https", address)
}

// close ends a link that nobody uses, in the way that TLS and HTTP/2 want it.
func (l *link) close() {
	if l.h2 != nil {
		_ = l.h2.Close()
	}
	_ = l.conn.Close()
}

// drop ends a link without another byte, and gives the final count of those that were sent.
func (l *link) drop() int64 {
	sent := l.meter.cut()
	l.close()
	return sent
}

// budget stops a reader after a number of bytes, and remembers what ended it.
type budget struct {
	r    io.Reader
	left int64
	err  error
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = errTooLong
		return 0, b.err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if err != nil {
		b.err = err
	}
	return n, err
}
