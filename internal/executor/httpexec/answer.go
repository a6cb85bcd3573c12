package httpexec

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

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
	case !identity(got.resp.Header.Values("Content-Encoding")):
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

func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil || len(t) > maxKept {
		return ""
	}
	return t
}

// identity reports whether a body came as it is. Another one cannot be searched for secrets.
func identity(encodings []string) bool {
	for _, e := range encodings {
		for part := range strings.SplitSeq(e, ",") {
			if p := strings.TrimSpace(part); p != "" && !strings.EqualFold(p, "identity") {
				return false
			}
		}
	}
	return true
}

// maxRetryAfter bounds what a target may ask for.
const maxRetryAfter = time.Hour

// retryAfter reads seconds or a date. What cannot be read, and what is over, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if value = strings.TrimSpace(value); value == "" {
		return 0
	}
	if digits(value) {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return maxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now).Round(time.Second), maxRetryAfter)
}
