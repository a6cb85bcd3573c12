package probe

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"deed.dev/deed/internal/action"
)

// ParseTarget reads where to probe: scheme and host, perhaps a port, and nothing else.
func ParseTarget(text string) (*action.Target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is no target; write it as https://sandbox.example", text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("a target is scheme, host and port; the path comes from the contract, and the credential from the vault")
	}
	t := &action.Target{Scheme: u.Scheme, Host: strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), Port: usualPort(u.Scheme)}
	if u.Port() != "" {
		if t.Port, err = strconv.Atoi(u.Port()); err != nil || t.Port < 1 || t.Port > 65535 {
			return nil, fmt.Errorf("the port %q is not a number from 1 to 65535", u.Port())
		}
	}
	return t, nil
}

func usualPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

// shortTarget leaves the port out where the scheme implies it.
func shortTarget(t action.Target) string {
	if t.Port == usualPort(t.Scheme) {
		return strings.TrimSuffix(t.String(), ":"+strconv.Itoa(t.Port))
	}
	return t.String()
}
