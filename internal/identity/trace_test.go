package identity

import (
	"net/http"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	valid   = "00-" + traceID + "-" + spanID + "-01"
)

// case 089 and TR-19: of a later version the first four fields are read, and everything malformed means nothing.
func TestParseTraceparent(t *testing.T) {
	zeros := strings.Repeat("0", 32)
	for _, c := range []struct {
		name, in    string
		ok, sampled bool
	}{
		{"sampled", valid, true, true},
		{"not sampled", valid[:53] + "00", true, false},
		{"unknown flags", valid[:53] + "fe", true, false},
		{"all flags", valid[:53] + "ff", true, true},
		{"later version", "01" + valid[2:], true, true},
		{"later version with more", "01" + valid[2:] + "-extra", true, true},
		{"last version", "fe" + valid[2:], true, true},

		{"empty", "", false, false},
		{"version ff", "ff" + valid[2:], false, false},
		{"version in upper case", "0A" + valid[2:], false, false},
		{"trailing dot", valid + ".", false, false},
		{"trailing field on version 00", valid + "-extra", false, false},
		{"trailing hyphen on version 00", valid + "-", false, false},
		{"later version with more and no hyphen", "01" + valid[2:] + "0", false, false},
		{"trace id all zero", "00-" + zeros + "-" + spanID + "-01", false, false},
		{"span id all zero", "00-" + traceID + "-" + zeros[:16] + "-01", false, false},
		{"upper case", strings.ToUpper(valid), false, false},
		{"one upper-case digit", strings.Replace(valid, "af", "aF", 1), false, false},
		{"31 digits", "00-" + traceID[1:] + "-" + spanID + "-01", false, false},
		{"33 digits", "00-" + traceID + "0-" + spanID + "-01", false, false},
		{"15 digits of span", "00-" + traceID + "-" + spanID[1:] + "-01", false, false},
		{"wrong alphabet", strings.Replace(valid, "0af", "0ag", 1), false, false},
		{"flags of one digit", valid[:54], false, false},
		{"flags in upper case", valid[:53] + "0A", false, false},
		{"space before", " " + valid, false, false},
		{"space after", valid + " ", false, false},
		{"two joined", valid + "," + valid, false, false},
		{"two joined of a later version", "01" + valid[2:] + ",01" + valid[2:], false, false},
		{"10 kB", valid + strings.Repeat("-0", 5000), false, false},
		{"10 kB of a later version", "01" + valid[2:] + strings.Repeat("-0", 5000), false, false},
		{"control character", "01" + valid[2:] + "-\n", false, false},
		{"not ASCII", strings.Replace(valid, "b7", "\u00fc", 1), false, false},
		{"hyphens elsewhere", strings.ReplaceAll(valid, "-", "_"), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, span, sampled, ok := ParseTraceparent(c.in)
			if ok != c.ok || sampled != c.sampled {
				t.Errorf("ParseTraceparent(%.80q): sampled %v, ok %v, want %v, %v", c.in, sampled, ok, c.sampled, c.ok)
			}
			if c.ok && (trace != traceID || span != spanID) {
				t.Errorf("ids are %q and %q, want %q and %q", trace, span, traceID, spanID)
			}
			if !c.ok && trace+span != "" {
				t.Errorf("a refused value gives the ids %q and %q", trace, span)
			}
		})
	}
}

func TestUpstream(t *testing.T) {
	other := strings.Replace(valid, "b7", "c8", 1)
	header := http.Header{"Traceparent": {other}, "Tracestate": {"a=1", "b=2"}}
	long := strings.Repeat("x", maxTracestate+1)
	for _, c := range []struct {
		name          string
		meta          map[string]any
		header        http.Header
		authenticated bool
		want          action.Upstream
	}{
		{"nothing", nil, nil, true, action.Upstream{Source: "none"}},
		// case 092: _meta wins over the header, and what is no string is not there.
		{"both", map[string]any{"traceparent": valid, "tracestate": "m=1"}, header, true, action.Upstream{Source: "authenticated_mcp_client", Traceparent: valid, Tracestate: "m=1"}},
		{"_meta only", map[string]any{"traceparent": valid}, nil, false, action.Upstream{Source: "unverified_input", Traceparent: valid}},
		{"header only", map[string]any{"unknown": 1}, header, true, action.Upstream{Source: "authenticated_mcp_client", Traceparent: other, Tracestate: "a=1,b=2"}},
		{"not a string", map[string]any{"traceparent": 7, "tracestate": "m=1"}, header, false, action.Upstream{Source: "unverified_input", Traceparent: other, Tracestate: "a=1,b=2"}},
		{"not a string and no header", map[string]any{"traceparent": []any{valid}}, nil, true, action.Upstream{Source: "none"}},
		{"tracestate not a string", map[string]any{"traceparent": valid, "tracestate": 1}, nil, true, action.Upstream{Source: "authenticated_mcp_client", Traceparent: valid}},
		{"tracestate alone", map[string]any{"tracestate": "m=1"}, http.Header{"Tracestate": {"a=1"}}, true, action.Upstream{Source: "none"}},
		{"tracestate too long", map[string]any{"traceparent": valid, "tracestate": long}, nil, true, action.Upstream{Source: "authenticated_mcp_client", Traceparent: valid}},
		{"tracestate just short enough", map[string]any{"traceparent": valid, "tracestate": long[1:]}, nil, true, action.Upstream{Source: "authenticated_mcp_client", Traceparent: valid, Tracestate: long[1:]}},
		// case 089: a malformed parent is believed by nobody, and its tracestate is dropped.
		{"malformed", map[string]any{"traceparent": valid + ".", "tracestate": "m=1"}, header, true, action.Upstream{Source: "unverified_input", Traceparent: valid + "."}},
		{"two headers", nil, http.Header{"Traceparent": {valid, other}}, true, action.Upstream{Source: "unverified_input", Traceparent: valid + "," + other}},
		{"10 kB", map[string]any{"traceparent": strings.Repeat("x", 10<<10)}, nil, true, action.Upstream{Source: "unverified_input"}},
		{"control character", map[string]any{"traceparent": "a\nb"}, nil, true, action.Upstream{Source: "unverified_input"}},
		{"empty", map[string]any{"traceparent": ""}, header, true, action.Upstream{Source: "unverified_input"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Upstream(c.meta, c.header, c.authenticated); got != c.want {
				t.Errorf("Upstream = %+v, want %+v", got, c.want)
			}
		})
	}
}
