package httpexec

import (
	"errors"
	"net/netip"
	"strings"
)

// errAddress is what a refused address gives. It names none, since the address may be a secret of the network.
var errAddress = errors.New("the target's address is not allowed")

// allowance is a target's private ranges, parsed.
type allowance []netip.Prefix

// allowances parses the ranges of a contract. A single address is a range of one.
func allowances(private []string) (allowance, bool) {
	var out allowance
	for _, s := range private {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, err := netip.ParseAddr(s)
			if err != nil || a.Zone() != "" {
				return nil, false
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		out = append(out, p)
	}
	return out, true
}

// allows reports whether a connection to the address may be made: it is public, or inside a range that the contract
// names. A metadata service is reached only where the contract names exactly its address, since whole private networks
// are often allowed without a thought of it.
func (w allowance) allows(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	for _, p := range w {
		if p.Contains(a) && (!metadata[a] || p.IsSingleIP()) {
			return true
		}
	}
	return !metadata[a] && public(a)
}

// metadata are the addresses at which cloud providers hand out credentials.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // most
	netip.MustParseAddr("169.254.170.2"):   true, // Amazon ECS
	netip.MustParseAddr("169.254.170.23"):  true, // Amazon EKS
	netip.MustParseAddr("fd00:ec2::254"):   true,
	netip.MustParseAddr("fd00:ec2::23"):    true,
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle
	netip.MustParseAddr("fd20:ce::254"):    true, // Google
	netip.MustParseAddr("168.63.129.16"):   true, // Azure; it looks public
}

// public reports whether an address belongs to the public Internet, looking through the forms that carry an IPv4 address
// inside an IPv6 one. What is in no list is not public.
func public(a netip.Addr) bool {
	if a.Is4() {
		return !within(a, special4)
	}
	if v4, ok := embedded(a); ok {
		return public(v4)
	}
	return global6.Contains(a) && !within(a, special6)
}

// embedded gives the IPv4 address that a translator or a tunnel would send to. ::a.b.c.d is not among them: nothing
// routes it any more, so it is refused like the rest of ::/96.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	default:
		return netip.Addr{}, false
	}
}

var (
	global6   = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// special4 is the IANA registry of special-purpose IPv4 addresses, multicast and the reserved rest.
var special4 = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// special6 is what of 2000::/3 is not the public Internet: protocol assignments (Teredo and ORCHID among them),
// documentation and the AS112 service.
var special6 = prefixes("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// literal reads a host that is an address. looks is true for everything that some resolver would read as one, such as
// 127.1, 2130706433 or 0x7f.1: those are refused and never resolved.
func literal(host string) (a netip.Addr, is, looks bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true, true
	}
	if strings.ContainsAny(host, ":%") {
		return a, false, true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return a, false, last == "" || digits(last) || strings.HasPrefix(last, "0x")
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
