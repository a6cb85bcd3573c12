package vault

import (
	"crypto/tls"
	"net/http"
)

// client makes the requests by which the vault itself gets at a value, and those that check one: to addresses that stand
// in the list of credentials, never by way of a proxy, and never where a redirect points.
func (v *Vault) client() *http.Client {
	return &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: v.roots},
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: patience,
		},
	}
}
