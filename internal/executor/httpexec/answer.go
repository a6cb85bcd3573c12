package httpexec

import (
	"net/http"
	"net/url"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// answer is what the target said, with the secret taken out. Nothing else of it leaves the executor.
type answer struct {
	status    int
	header    http.Header
	kept      []action.Header
	body      []byte
	mediaType string
	complete  bool
	withheld  bool
	size      int64
}

// never are the headers that nobody behind the executor gets to see.
var never = []string{"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info"}

// keptHeaders is the closed list of headers that are stored with a result.
var keptHeaders = []string{
	"Content-Type", "Content-Encoding", "Date", "Etag", "Idempotent-Replayed", "Last-Modified", "Location", "Request-Id",
	"Retry-After", "X-Amzn-Requestid", "X-Correlation-Id", "X-Github-Request-Id", "X-Request-Id",
}

// maxKept bounds one kept header, in bytes.
const maxKept = 512

func redacted(got exchanged, opened *vault.Opened) answer {
	a := answer{
		status: got.resp.StatusCode, header: http.Header{}, size: got.size,
		complete: got.err == nil && !got.tooLong,
	}
	for name, values := range got.resp.Header {
		for _, v := range values {
			a.header.Add(name, redact(opened, v))
		}
	}
	for _, name := range never {
		a.header.Del(name)
	}
	a.mediaType = mediaType(a.header.Get("Content-Type"))
	a.kept = kept(a.header, got.resp, opened)
	switch {
	case !identity(got.resp.Header.Values("Content-Encoding")), opened != nil && !searchable(got):
		a.withheld, a.complete = true, false
	case opened == nil:
		a.body = got.body
	case a.complete:
		a.body, _ = opened.Redact(got.body)
	default:
		a.body, _ = opened.RedactCut(got.body)
	}
	return a
}

func (a answer) response() action.Response {
	return action.Response{
		Status: a.status, Header: a.header, Body: a.body, MediaType: a.mediaType, Truncated: !a.complete,
	}
}

func (a answer) result() action.Result {
	return action.Result{
		Body: a.body, MediaType: a.mediaType, Complete: a.complete, Withheld: a.withheld, Size: a.size, Headers: a.kept,
	}
}

func redact(opened *vault.Opened, text string) string {
	if opened == nil {
		return text
	}
	out, _ := opened.RedactString(text)
	return out
}

// kept picks the headers that are stored.
func kept(h http.Header, resp *http.Response, opened *vault.Opened) []action.Header {
	var out []action.Header
	for _, name := range keptHeaders {
		value := h.Get(name)
		if name == "Location" && value != "" {
			value = redact(opened, place(resp))
		}
		if value == "" {
			continue
		}
		out = append(out, action.Header{Name: strings.ToLower(name), Value: value[:min(len(value), maxKept)]})
	}
	return out
}

// place is where a Location points, without path, query and user-info: those may hold a token.
func place(resp *http.Response) string {
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return "unreadable"
	}
	if resp.Request != nil && resp.Request.URL != nil {
		to = resp.Request.URL.ResolveReference(to)
	}
	return (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
}
