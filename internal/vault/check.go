package vault

import "strings"

// check refuses a credential that is incomplete or could go where nobody meant it to.
func (c Credential) check() error {
	switch {
	case !name(c.Ref):
		return problem(c.Line, "ref is required, and made of letters, digits, dot, dash and underscore")
	case len(c.Hosts) == 0:
		return problem(c.Line, "hosts is required: a credential is sent to named hosts only")
	case c.Source.count() != 1:
		return problem(c.Line, "exactly one of vault, env, file, command and openbao says where the value is")
	case c.Source.Env != "" && !variable(c.Source.Env):
		return problem(c.Line, "env is the name of an environment variable, not its value")
	}
	if err := c.checkKind(); err != nil {
		return err
	}
	if c.Check != "" {
		_, target, err := targetOf(c.Check, c.InsecureLoopback)
		if err != nil || !c.Bound(target) || c.Kind == OAuth {
			return problem(c.Line, "check is the https URL of a read-only request at one of the credential's own hosts, for a credential that is sent as it is")
		}
	}
	return nil
}

func (s Source) count() int {
	n := 0
	for _, set := range []bool{s.Env != "", s.File != "", s.Vault, len(s.Command) > 0, s.OpenBao != nil} {
		if set {
			n++
		}
	}
	return n
}

func (c Credential) checkKind() error {
	if _, known := natures[c.Kind]; !known {
		return problem(c.Line, "kind is bearer, basic, header, query, oauth, tls_client, ssh_key, ssh_certificate or database")
	}
	if (c.Kind == OAuth) != (c.OAuth != nil) {
		return problem(c.Line, "oauth says how a client secret is exchanged; it belongs to kind oauth, which needs it")
	}
	switch c.Kind {
	case Header:
		if !token(c.Header) || reserved[strings.ToLower(c.Header)] {
			return problem(c.Line, "header is the name of the header that the value goes into, and none that HTTP itself needs")
		}
	case Query:
		if !token(c.Header) {
			return problem(c.Line, "parameter is the name of the query parameter that the value goes into")
		}
	default:
		if c.Header != "" {
			return problem(c.Line, "a %s credential has its own place; header does not apply", c.Kind)
		}
	}
	if c.OAuth != nil {
		if _, _, err := targetOf(c.OAuth.TokenURL, c.InsecureLoopback); err != nil || c.OAuth.ClientID == "" {
			return problem(c.Line, "oauth needs token_url, an https URL in lower case, and client_id")
		}
	}
	return nil
}

// reserved headers frame the message or belong to deed.
var reserved = map[string]bool{
	"host": true, "content-length": true, "transfer-encoding": true, "connection": true, "upgrade": true, "te": true,
	"trailer": true, "expect": true, "keep-alive": true, "content-type": true, "traceparent": true, "tracestate": true,
}

func name(s string) bool {
	return made(s, 128, func(c byte) bool { return letter(c) || digit(c) || strings.IndexByte(".-_", c) >= 0 })
}

func variable(s string) bool {
	return !digit(s[0]) && made(s, 128, func(c byte) bool { return letter(c) || digit(c) || c == '_' })
}

// token is a header name as RFC 9110 has it.
func token(s string) bool {
	return made(s, 128, func(c byte) bool { return letter(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 })
}

func made(s string, most int, of func(byte) bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !of(s[i]) {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
