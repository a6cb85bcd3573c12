package vault

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"deed.dev/deed/internal/action"
)

// Kind says what a credential is and where it goes.
type Kind string

// Kinds of credential.
const (
	Bearer Kind = "bearer" // Authorization: Bearer …
	Basic  Kind = "basic"  // Authorization: Basic …; the value is user:password
	Header Kind = "header" // a header of its own name
	Query  Kind = "query"  // a query parameter; targets tend to log it, so it is the last choice
	OAuth  Kind = "oauth"  // Authorization: Bearer …, with a token that the client secret is exchanged for

	TLSClient      Kind = "tls_client"      // a certificate with its key, in PEM, shown in the TLS handshake
	SSHKey         Kind = "ssh_key"         // a private key, in PEM
	SSHCertificate Kind = "ssh_certificate" // a private key in PEM, and below it the line of its certificate
	Database       Kind = "database"        // the URL of a database, with user and password
)

// nature is what all credentials of a kind have in common.
type nature struct {
	schemes []string // of the targets that it may go to
	port    int      // of a host that is named without one
	check   func(Credential, string) error
}

var natures = map[Kind]nature{
	Bearer: {web, 443, plainValue}, Basic: {web, 443, basicValue}, Header: {web, 443, plainValue}, Query: {web, 443, plainValue},
	OAuth:          {web, 443, plainValue},
	TLSClient:      {[]string{"https"}, 443, certificateValue},
	SSHKey:         {[]string{"ssh"}, 22, sshValue},
	SSHCertificate: {[]string{"ssh"}, 22, sshValue},
	Database:       {[]string{"postgres"}, databasePort, databaseValue},
}

const databasePort = 5432

var web = []string{"https", "http"}

// Kinds lists all kinds, in the order in which the documentation explains them.
var Kinds = []Kind{Bearer, Basic, Header, Query, OAuth, TLSClient, SSHKey, SSHCertificate, Database}

// ManyLines reports whether a value of this kind is more than a line of text.
func (k Kind) ManyLines() bool { return k == TLSClient || k == SSHKey || k == SSHCertificate }

// Credential describes one secret: where it may be sent, in which form, and where its value is read.
type Credential struct {
	Ref    string
	Kind   Kind
	Header string   // name of the header, or of the query parameter
	Hosts  []string // "host" or "host:port"; without a port it is the usual one of the kind
	// InsecureLoopback allows plain http, towards this machine only. Everything else is encrypted.
	InsecureLoopback bool
	OAuth            *OAuthClient // of kind oauth
	Check            string       // URL of a read-only request that tells whether a value is the active one; "" for none
	EachUse          bool         // a person approves every action that it would be sent with
	Source           Source
	Line             int // in the file that it was loaded from
}

// OAuthClient says how a client secret is exchanged for an access token (RFC 6749, section 4.4).
type OAuthClient struct {
	TokenURL string
	ClientID string
	Scopes   []string
	Audience string // a parameter that some servers want; "" for none
	InBody   bool   // the client is named in the body, and not in Authorization
}

// Source says where a value is. Exactly one field is set. The value itself never stands here.
type Source struct {
	Env     string   // name of an environment variable
	File    string   // path of a file that only its owner may read
	Vault   bool     // the vault's own encrypted file
	Command []string // a program and its arguments; what it prints is the value
	OpenBao *OpenBao // a secret of OpenBao or HashiCorp Vault
}

// String names the place, without a path.
func (s Source) String() string {
	switch {
	case s.Vault:
		return "vault"
	case s.Env != "":
		return "env " + s.Env
	case s.File != "":
		return "file"
	case len(s.Command) > 0:
		return "command"
	case s.OpenBao != nil:
		return "openbao"
	}
	return "none"
}

// purpose is what decides where a value goes. It is sealed beside the value, so that a changed list of credentials cannot
// send a value to another place than the one it was given for.
type purpose struct {
	Kind             Kind     `json:"kind"`
	Header           string   `json:"header,omitzero"`
	Hosts            []string `json:"hosts"`
	InsecureLoopback bool     `json:"insecure_loopback,omitzero"`
	TokenURL         string   `json:"token_url,omitzero"`
	ClientID         string   `json:"client_id,omitzero"`
	Check            string   `json:"check,omitzero"`
}

func (c Credential) purpose() purpose {
	p := purpose{Kind: c.Kind, Header: c.Header, Hosts: slices.Clone(c.Hosts), InsecureLoopback: c.InsecureLoopback, Check: c.Check}
	if c.OAuth != nil {
		p.TokenURL, p.ClientID = c.OAuth.TokenURL, c.OAuth.ClientID
	}
	return p
}

// covers reports whether a value that was given for p may be used as c says: for the same thing, at the same hosts or fewer.
func (p purpose) covers(c Credential) bool {
	now := c.purpose()
	for _, h := range now.Hosts {
		if !slices.Contains(p.Hosts, h) {
			return false
		}
	}
	return p.Kind == now.Kind && p.Header == now.Header && (p.InsecureLoopback || !now.InsecureLoopback) &&
		p.TokenURL == now.TokenURL && p.ClientID == now.ClientID && (now.Check == "" || p.Check == now.Check)
}

// Bound reports whether the credential may be sent to the target: host and port are among its hosts, and the way there
// is encrypted, or stays on this machine where that is allowed.
func (c Credential) Bound(target action.Target) bool {
	kind := natures[c.Kind]
	if !slices.Contains(kind.schemes, target.Scheme) {
		return false
	}
	if target.Scheme == "http" && (!c.InsecureLoopback || !loopback(target.Host)) {
		return false
	}
	for _, h := range c.Hosts {
		host, port, err := splitHost(h, kind.port)
		if err == nil && host == target.Host && port == target.Port {
			return true
		}
	}
	return false
}

// targetOf reads an address that stands in the list of credentials: https, or http to this machine where that is allowed.
func targetOf(text string, insecureLoopback bool) (*url.URL, action.Target, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.User != nil, u.Fragment != "", u.Opaque != "", u.Host == "":
		return nil, action.Target{}, fmt.Errorf("no plain URL")
	case u.Scheme == "http" && insecureLoopback && loopback(u.Hostname()):
	case u.Scheme != "https":
		return nil, action.Target{}, fmt.Errorf("not encrypted")
	}
	port := map[string]int{"https": 443, "http": 80}[u.Scheme]
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return nil, action.Target{}, fmt.Errorf("no port")
		}
	}
	if !validHost(u.Hostname()) {
		return nil, action.Target{}, fmt.Errorf("no host in lower case")
	}
	return u, action.Target{Scheme: u.Scheme, Host: u.Hostname(), Port: port}, nil
}
