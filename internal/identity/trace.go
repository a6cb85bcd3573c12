package identity

import (
	"net/http"
	"strconv"
	"strings"

	"deed.dev/deed/internal/action"
)

// Bounds of what is kept of a caller's trace context. W3C asks for at least 512 characters of tracestate.
const (
	maxTraceparent = 256
	maxTracestate  = 512
)

// ParseTraceparent reads a W3C traceparent. Of a version later than 00 it reads the four fields that the specification
// promises to keep. ok is false for everything else, and then no part of it means anything.
func ParseTraceparent(s string) (traceID, spanID string, sampled, ok bool) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00")
	if len(s) < length || bounded(s, maxTraceparent) == "" || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return "", "", false, false
	}
	version, traceID, spanID, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !lowerHex(version) || !lowerHex(traceID) || !lowerHex(spanID) || !lowerHex(flags) {
		return "", "", false, false
	}
	switch {
	case version == "ff",
		version == "00" && len(s) != length,
		len(s) > length && s[length] != '-',
		strings.Trim(traceID, "0") == "",
		strings.Trim(spanID, "0") == "":
		return "", "", false, false
	}
	bits, err := strconv.ParseUint(flags, 16, 8)
	return traceID, spanID, bits&1 == 1, err == nil
}

func lowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Upstream takes the trace context that came with a call: from _meta if a traceparent stands there, else from the HTTP
// header. A value that does not parse is kept as unverified, if it is short and printable, and its tracestate is
// dropped. Nothing in it makes a call fail. header may be nil.
func Upstream(meta map[string]any, header http.Header, authenticated bool) action.Upstream {
	parent, state, given := fromMeta(meta)
	if !given {
		parent, state, given = fromHeader(header)
	}
	if !given {
		return action.Upstream{Source: action.UpstreamNone}
	}
	if _, _, _, ok := ParseTraceparent(parent); !ok {
		return action.Upstream{Source: action.UpstreamUnverified, Traceparent: bounded(parent, maxTraceparent)}
	}
	u := action.Upstream{Source: action.UpstreamUnverified, Traceparent: parent, Tracestate: bounded(state, maxTracestate)}
	if authenticated {
		u.Source = action.UpstreamVerified
	}
	return u
}

func fromMeta(meta map[string]any) (parent, state string, given bool) {
	parent, given = meta["traceparent"].(string)
	state, _ = meta["tracestate"].(string)
	return parent, state, given
}

// fromHeader joins repeated headers as HTTP does. Two traceparents so become one that does not parse.
func fromHeader(header http.Header) (parent, state string, given bool) {
	parents := header.Values("Traceparent")
	return strings.Join(parents, ","), strings.Join(header.Values("Tracestate"), ","), len(parents) > 0
}

// bounded keeps a text only if it is short and printable ASCII. It is never cut.
func bounded(s string, most int) string {
	if len(s) > most {
		return ""
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return s
}
