package httpexec

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"deed.dev/deed/internal/action"
)

// errRequest says nothing more: what is wrong may hold a secret. The contract's own checks name the field.
var errRequest = errors.New("the request cannot go out as it was written down")

// build makes the request from the recorded operation, byte for byte, without the credential. It refuses whatever
// net/http would mend or encode in another way.
func build(d action.Dispatch, userAgent string) (*http.Request, error) {
	op := d.Operation
	u, err := buildURL(op)
	if err != nil {
		return nil, err
	}
	header, err := buildHeader(d, userAgent)
	if err != nil {
		return nil, err
	}
	if !validMethod(op.Method) {
		return nil, errRequest
	}
	req := &http.Request{
		Method: op.Method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(op.Body)),
		// GetBody stays nil: nothing below may be able to send the body again.
	}
	if len(op.Body) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(op.Body))
	}
	return req, nil
}

func validMethod(m string) bool {
	if m == "" || m == http.MethodConnect {
		return false
	}
	for i := range len(m) {
		if m[i] < 'A' || m[i] > 'Z' {
			return false
		}
	}
	return true
}

func buildURL(op action.Operation) (*url.URL, error) {
	path := op.Path
	if path == "" {
		path = "/"
	}
	if path[0] != '/' || !plain(path) || !plain(op.Query) || strings.ContainsAny(path, "?#") || strings.Contains(op.Query, "#") {
		return nil, errRequest
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return nil, errRequest
	}
	u := &url.URL{Scheme: op.Target.Scheme, Host: hostHeader(op.Target), Path: decoded, RawPath: path, RawQuery: op.Query}
	if u.EscapedPath() != path {
		return nil, errRequest
	}
	return u, nil
}

// plain accepts visible ASCII, the only thing that belongs into a request line.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hostHeader leaves the port out where the scheme implies it.
func hostHeader(t action.Target) string {
	if t.Scheme == "https" && t.Port == 443 || t.Scheme == "http" && t.Port == 80 {
		return strings.TrimSuffix(t.Address(), ":"+strconv.Itoa(t.Port))
	}
	return t.Address()
}

// framing are the headers that HTTP itself, the executor or the vault sets.
var framing = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Keep-Alive": true,
	"Proxy-Connection": true, "Proxy-Authorization": true, "Te": true, "Trailer": true, "Upgrade": true, "Expect": true,
	"Http2-Settings": true, "Traceparent": true, "Tracestate": true,
}

func buildHeader(d action.Dispatch, userAgent string) (http.Header, error) {
	op := d.Operation
	h := http.Header{}
	for _, f := range op.Headers {
		if err := add(h, f.Name, f.Value); err != nil {
			return nil, err
		}
	}
	if op.MediaType != "" && !sameOnly(h, "Content-Type", op.MediaType) {
		return nil, errRequest
	}
	if op.Key.Header != "" {
		if len(h.Values(op.Key.Header)) > 0 {
			return nil, errRequest
		}
		if err := add(h, op.Key.Header, d.Token); err != nil {
			return nil, err
		}
	}
	h.Set("Traceparent", "00-"+d.Trace.TraceID+"-"+d.Trace.SpanID+"-01")
	if len(h.Values("User-Agent")) == 0 {
		h.Set("User-Agent", userAgent)
	}
	if len(h.Values("Accept-Encoding")) == 0 {
		h.Set("Accept-Encoding", "identity")
	}
	return h, nil
}

func add(h http.Header, name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		return errRequest
	}
	if framing[textproto.CanonicalMIMEHeaderKey(name)] {
		return errRequest
	}
	h.Add(name, value)
	return nil
}

// sameOnly sets a header that nobody set, and reports whether it now has this value and no other.
func sameOnly(h http.Header, name, value string) bool {
	if !httpguts.ValidHeaderFieldValue(value) {
		return false
	}
	if len(h.Values(name)) == 0 {
		h.Set(name, value)
	}
	return len(h.Values(name)) == 1 && h.Get(name) == value
}
