package vault

import "strings"

// check refuses a credential that is incomplete or could go where nobody meant it to.
func (c Credential) check() error {
	switch {
	case !name(c.Ref):
		return problem(c.Line, "ref is required, and made of letters, digits, dot, dash and underscore")
	case len(c.Hosts) == 0:
		return problem(c.Line, "hosts is required: a credential is sent to named hosts only")
	case (c.Source.Env == "") == (c.Source.File == ""):
		return problem(c.Line, "exactly one of env and file says where the value is")
	case c.Source.Env != "" && !variable(c.Source.Env):
		return problem(c.Line, "env is the name of an environment variable, not its value")
	}
	return c.checkKind()
}

func (c Credential) checkKind() error {
	switch c.Kind {
	case Bearer, Basic:
		if c.Header != "" {
			return problem(c.Line, "a %s credential goes into Authorization; header does not apply", c.Kind)
		}
	case Header:
		if !token(c.Header) || reserved[strings.ToLower(c.Header)] {
			return problem(c.Line, "header is the name of the header that the value goes into, and none that HTTP itself needs")
		}
	case Query:
		if !token(c.Header) {
			return problem(c.Line, "parameter is the name of the query parameter that the value goes into")
		}
	default:
		return problem(c.Line, "kind is bearer, basic, header or query")
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
