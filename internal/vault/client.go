package vault

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// client makes the requests by which the vault itself gets at a value, and those that check one: to addresses that stand
// in the list of credentials, never by way of a proxy, and never where a redirect points.
func (v *Vault) client() *http.Client {
	dialer := &net.Dialer{Timeout: patience, Control: refuseLinkLocal}
	return &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: v.roots},
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: patience,
		},
	}
}

// refuseLinkLocal looks at the address that is dialled, whatever its name was. Token servers and stores of secrets stand in
// private networks, where an operator names them; nothing of that kind is where machines get their metadata.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if a := at.Addr().Unmap(); a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a == awsMetadata6 {
		return errors.New("this address is not for credentials")
	}
	return nil
}

// awsMetadata6 is where machines of one provider get their metadata over IPv6; it is no link-local address.
var awsMetadata6 = netip.MustParseAddr("fd00:ec2::254")
