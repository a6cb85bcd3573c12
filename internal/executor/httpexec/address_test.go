package httpexec

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
)

// Case 114: addresses that no target may have, as they are and in disguise.
var refusedAddresses = []string{
	"127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::", // this machine
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fc00::1", "fdff::1", // private
	"169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "febf::1", "fec0::1", // link-local, site-local
	"fd00:ec2::254", "100.100.100.200", "192.0.0.192", // metadata
	"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1", "255.255.255.255", "240.0.0.1", // multicast, reserved
	"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.0.0.8", "2001:db8::1", "3fff::1", // documentation, tests
	"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:0.0.0.0", // mapped
	"::127.0.0.1", "::a9fe:a9fe", "::808:808", // compatible, out of use
	"64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808", // NAT64
	"2002:a9fe:a9fe::1", "2002:7f00:1::", "2002:a00:1::1", // 6to4
	"2001:0:7f00:1::1", "2001:0:808:808::1", "2001:10::1", "2001:20::1", // Teredo, ORCHID
	"100::1", "5f00::1", "4000::1", "64:ff9a::1", "::ffff:0:7f00:1", // discard, segment routing, nobody's, SIIT
}

// Addresses of the public Internet.
var publicAddresses = []string{
	"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.169.0.1", "169.253.1.1",
	"2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
}

func TestAddressRule(t *testing.T) {
	var nothing, privately allowance
	privately, _ = allowances([]string{"10.0.0.0/8", "127.0.0.1", "fd00::/8", "169.254.0.0/16", "2001:db8::/32"})
	exactly, _ := allowances([]string{"169.254.169.254", "fd00:ec2::254/128"})
	all, _ := allowances([]string{"0.0.0.0/0", "::/0"})
	check := func(w allowance, address string, want bool) {
		t.Helper()
		if got := w.allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s with %v: allowed is %t, want %t", address, w, got, want)
		}
	}
	for _, a := range refusedAddresses {
		check(nothing, a, false)
	}
	for _, a := range publicAddresses {
		check(nothing, a, true)
		check(privately, a, true)
	}
	for _, a := range []string{"10.1.2.3", "127.0.0.1", "::ffff:10.1.2.3", "fd12::1", "169.254.1.1", "2001:db8::5"} {
		check(privately, a, true)
	}
	for _, a := range []string{"127.0.0.2", "64:ff9b::a00:1", "2002:a00:1::1", "192.168.0.1"} {
		check(privately, a, false)
	}
	for a := range metadata { // a wide range does not let them in, the exact address does
		check(privately, a.String(), false)
		check(all, a.String(), false)
	}
	check(exactly, "169.254.169.254", true)
	check(exactly, "::ffff:169.254.169.254", true)
	check(exactly, "fd00:ec2::254", true)
	for _, zoned := range []string{"fe80::1%eth0", "::1%lo", "fd00::1%0"} {
		check(all, zoned, false)
	}
	if nothing.allows(netip.Addr{}) || all.allows(netip.Addr{}) {
		t.Error("no address at all is allowed")
	}
	for _, bad := range []string{"", "10.0.0.0", "10.0.0.0/33", "x", "fe80::1%eth0", "fe80::1%eth0/64"} {
		if w, ok := allowances([]string{bad}); ok && bad != "10.0.0.0" {
			t.Errorf("%q was read as %v", bad, w)
		}
	}
}

// answers is a resolver that gives one list after the other, the last one for ever.
type answers struct {
	mu    sync.Mutex
	lists [][]string
	asked int
}

func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []netip.Addr
	for _, s := range a.lists[min(a.asked, len(a.lists)-1)] {
		out = append(out, netip.MustParseAddr(s))
	}
	a.asked++
	return out, nil
}

func resolvesTo(lists ...[]string) *answers { return &answers{lists: lists} }

// watched counts who connects to this machine.
func watched(t *testing.T) *rawServer {
	return newRawServer(t, false, func(c *rawConn) {
		for c.request() != nil {
			c.say(okAnswer)
		}
	})
}

func dispatchToHost(t *testing.T, s *rawServer, host string, private ...string) action.Dispatch {
	d := resendDispatch(t, s.base, "POST", "Idempotency-Key", []byte("x"))
	d.Operation.Target.Host, d.Operation.Target.Private = host, private
	return d
}

// Case 114: each address as a literal and as what a name resolves to. None is connected to.
func TestRefusedAddressesAreNotDialled(t *testing.T) {
	s := watched(t)
	for _, a := range refusedAddresses {
		executor := newExecutor(t, Options{Resolver: resolvesTo([]string{a})})
		for _, host := range []string{a, "target.example"} {
			out := executor.Perform(t.Context(), dispatchToHost(t, s, host))
			want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonAddressRefused)
		}
	}
	// What only some resolvers read as an address is not even resolved.
	executor := newExecutor(t, Options{Resolver: resolvesTo([]string{"127.0.0.1"})})
	for _, host := range []string{"127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "127.0.0.0x1", "1.2.3.4.5", "127.0.0.01", "a.0x", "fe80::1%eth0", "::1%lo"} {
		out := executor.Perform(t.Context(), dispatchToHost(t, s, host, loopbackOnly...))
		want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonAddressRefused)
	}
	for _, host := range []string{"[::1]", "127.0.0.1.", "u:p@127.0.0.1", "127.0.0.1/x", "LOCALHOST", "", "a b", "a\x00b", "ä.example", "::g"} {
		out := executor.Perform(t.Context(), dispatchToHost(t, s, host, loopbackOnly...))
		want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonTargetRefused) // case 117
	}
	want(t, executor.Perform(t.Context(), dispatchToHost(t, s, "target.example", "127.0.0.0/99")),
		action.AttemptNotSent, action.NoEffectProven, ReasonTargetRefused)
	if s.connections() != 0 {
		t.Errorf("%d connections to this machine, want none", s.connections())
	}
}

// Case 114: an explicit entry for a private target works, and the outcome says where it went.
func TestAllowedPrivateTargetIsRecorded(t *testing.T) {
	s := watched(t)
	executor := newExecutor(t, Options{Resolver: resolvesTo([]string{"127.0.0.1"})})
	out := executor.Perform(t.Context(), dispatchToHost(t, s, "target.example", "127.0.0.1/32"))
	want(t, out, action.AttemptCompleted, action.EffectProven, "")
	if out.Remote != strings.TrimPrefix(s.base, "http://") {
		t.Errorf("the outcome says %q, the target is %s", out.Remote, s.base)
	}
}

// Case 113, HT-17: the name changes between check and connect, or has a public and a private address.
func TestNameThatResolvesDifferently(t *testing.T) {
	s := watched(t)
	public := "64:ff9b::808:808" // counts as public, and leads nowhere where there is no NAT64
	for name, resolver := range map[string]*answers{
		"second answer":         resolvesTo([]string{public}, []string{"127.0.0.1"}),
		"mixed, public first":   resolvesTo([]string{public, "127.0.0.1"}),
		"mixed, private first":  resolvesTo([]string{"127.0.0.1", public}),
		"mixed, other family":   resolvesTo([]string{public, "::1"}),
		"mixed, mapped private": resolvesTo([]string{public, "::ffff:127.0.0.1"}),
	} {
		executor := newExecutor(t, Options{Resolver: resolver})
		d := dispatchToHost(t, s, "target.example")
		d.Operation.Timeout = 200
		out := executor.Perform(t.Context(), d)
		if out.State != action.AttemptNotSent || out.Certainty != action.NoEffectProven || out.BytesSent != 0 {
			t.Errorf("%s: got %s, %s, %d bytes", name, out.State, out.Certainty, out.BytesSent)
		}
		if strings.HasPrefix(name, "mixed") && out.Reason != ReasonAddressRefused {
			t.Errorf("%s: reason %q", name, out.Reason)
		}
		if resolver.asked != 1 {
			t.Errorf("%s: the name was resolved %d times, want once", name, resolver.asked)
		}
	}
	if s.connections() != 0 {
		t.Errorf("%d connections to this machine, want none", s.connections())
	}
}

// HT-17: the check at the socket holds by itself, whatever was checked before it.
func TestSocketChecksItsOwnAddress(t *testing.T) {
	s := watched(t)
	executor := newExecutor(t, Options{})
	port := dispatchToHost(t, s, "x").Operation.Target.Port
	for _, a := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"} {
		conn, err := executor.connector(nil, port)(t.Context(), netip.MustParseAddr(a))
		if err == nil || conn != nil {
			t.Errorf("%s was dialled", a)
		}
	}
	if s.connections() != 0 {
		t.Errorf("%d connections to this machine, want none", s.connections())
	}
}

// The first family of addresses does not answer: the other one is tried beside it, and what is left over is closed.
func TestOtherFamilyIsTried(t *testing.T) {
	list := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("192.0.2.1")}
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	conn, err := race(t.Context(), list, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		if a.Is4() {
			return ours, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil || conn != ours {
		t.Errorf("got %v, %v", conn, err)
	}
	fail := func(context.Context, netip.Addr) (net.Conn, error) { return nil, errAddress }
	if _, err := race(t.Context(), list, fail); !errors.Is(err, errAddress) {
		t.Errorf("got %v", err)
	}
}
