package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
)

var (
	label       = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numberLabel = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// parseAuthority reads host and port. What it returns is the one spelling that is approved, resolved and dialled.
func parseAuthority(scheme, authority string) (action.Target, error) {
	target := action.Target{Scheme: scheme, Port: 443}
	if scheme == "http" {
		target.Port = 80
	}
	if strings.Contains(authority, "@") {
		return target, errors.New("the URL has user-info; name a credential instead")
	}
	host, port, err := splitPort(authority)
	if err != nil {
		return target, err
	}
	if port != "" {
		if target.Port, err = strconv.Atoi(port); err != nil || target.Port < 1 || target.Port > 65535 || port[0] == '0' {
			return target, fmt.Errorf("the port %q is not a number from 1 to 65535", port)
		}
	}
	target.Host, err = parseHost(host)
	return target, err
}

func splitPort(authority string) (host, port string, err error) {
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return "", "", errors.New("the address in brackets is not closed")
		}
		host, port = authority[:end+1], authority[end+1:]
		if port == "" {
			return host, "", nil
		}
	} else {
		i := strings.IndexByte(authority, ':')
		if i < 0 {
			return authority, "", nil
		}
		host, port = authority[:i], authority[i:]
	}
	if len(port) < 2 || strings.Trim(port[1:], "0123456789") != "" || port[0] != ':' {
		return "", "", errors.New("what follows the host is no port")
	}
	return host, port[1:], nil
}

func parseHost(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		switch {
		case err != nil || !addr.Is6():
			return "", errors.New("the address in brackets is no IPv6 address")
		case addr.Zone() != "":
			return "", errors.New("an address with a zone means something else on every machine")
		case addr.Is4In6():
			return "", fmt.Errorf("write the IPv4 address %s instead", addr.Unmap())
		}
		return addr.String(), nil
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", errors.New("write the host in its ASCII form (xn--…)")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > 253 {
		return "", errors.New("the host is empty or too long")
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return "", fmt.Errorf("%q is no host name", host)
		}
	}
	// A name whose last label is a number is an IPv4 address to some programs, in spellings such as 127.1 or 0x7f000001.
	if numberLabel.MatchString(labels[len(labels)-1]) {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Errorf("%q is neither a host name nor a whole IPv4 address", host)
		}
		return addr.String(), nil
	}
	return host, nil
}

// private reads the address ranges that the contract allows beside public ones.
func (f *faults) private(path string, ranges []string) []string {
	var list []string
	for i, r := range ranges {
		prefix, err := netip.ParsePrefix(r)
		switch at := item(path, i); {
		case err != nil:
			f.add(at, fmt.Sprintf("%q is no address range", r), "write it as 10.20.0.0/16 or fd00::/8")
		case prefix.Masked() != prefix:
			f.add(at, fmt.Sprintf("%q has bits set behind its length", r), fmt.Sprintf("write %s", prefix.Masked()))
		case prefix.Bits() == 0:
			f.add(at, "this range is every address", "name the range that the host is in")
		case prefix.Addr().Is4In6():
			f.add(at, "an IPv4 range has to be written as one", "write it as 10.20.0.0/16")
		case slices.Contains(list, prefix.String()):
			f.add(at, "this range stands here twice", "keep one of them")
		default:
			list = append(list, prefix.String())
		}
	}
	slices.Sort(list)
	return list
}
