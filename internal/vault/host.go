package vault

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// splitHost reads "host", "host:port", "[v6]" or "[v6]:port". The host comes back as action.Target has it.
func splitHost(s string, usualPort int) (string, int, error) {
	host, rest := s, ""
	if inner, ok := strings.CutPrefix(s, "["); ok {
		v6, after, found := strings.Cut(inner, "]")
		if _, err := netip.ParseAddr(v6); !found || err != nil {
			return "", 0, fmt.Errorf("no host or host:port")
		}
		host, rest = v6, after
	} else if i := strings.IndexByte(s, ':'); i >= 0 {
		host, rest = s[:i], s[i:]
	}
	if !validHost(host) {
		return "", 0, fmt.Errorf("no host or host:port")
	}
	if rest == "" {
		return host, usualPort, nil
	}
	port, err := strconv.ParseUint(strings.TrimPrefix(rest, ":"), 10, 16)
	if err != nil || port == 0 || rest[0] != ':' {
		return "", 0, fmt.Errorf("no host or host:port")
	}
	return host, int(port), nil
}

// validHost accepts lower-case names and addresses in the one form that targets have. There are no patterns: a
// credential goes to hosts that somebody wrote down.
func validHost(h string) bool {
	if h == "" || strings.HasSuffix(h, ".") {
		return false
	}
	for _, c := range h {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == ':':
		default:
			return false
		}
	}
	return true
}

// loopback reports whether a host is this machine by its very name.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
