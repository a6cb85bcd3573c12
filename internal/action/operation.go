package action

import "strconv"

// Operation is the resolved form of an action: what will be sent, where, and with which credential by reference. Its
// bytes are recorded before the first send, and every later attempt sends the recorded bytes.
type Operation struct {
	Channel    string // "http"
	Target     Target
	Method     string
	Path       string // escaped path as it goes on the wire; protected, since it may name a tenant
	Query      string // raw query without "?"; protected
	Template   string // the path's shape, safe to show: /v1/releases/{name}
	Headers    []Header
	Body       []byte
	MediaType  string // of Body; "" without a body
	Credential string // reference; "" for none
	Key        KeyPlace
	Timeout    int64 // milliseconds for one attempt
	MaxResult  int64 // bytes of the answer that are kept

	Secrets []SealedArgument `json:",omitempty"` // their references stand in Body
}

// Target is the place an operation goes to: everything that decides who receives it.
type Target struct {
	Scheme  string   // "https" or "http"
	Host    string   // lower case, without user-info, trailing dot or brackets
	Port    int      // always present
	Private []string // address ranges (CIDR) that the contract allows beside public ones
}

// Header is one header field that the contract sets. Secrets are never here: the executor adds them last.
type Header struct{ Name, Value string }

// KeyPlace says where the target wants its idempotency token. The token is the action's id.
type KeyPlace struct {
	Header string // header name, or ""
}

// Address is host and port as a dialer wants them.
func (t Target) Address() string { return bracket(t.Host) + ":" + strconv.Itoa(t.Port) }

// String is scheme, host and port.
func (t Target) String() string { return t.Scheme + "://" + t.Address() }

// URL is the whole destination. It may hold personal data: it goes into keyed digests and protected records only.
func (o Operation) URL() string {
	u := o.Target.String() + o.Path
	if o.Query != "" {
		u += "?" + o.Query
	}
	return u
}

func bracket(host string) string {
	for i := range len(host) {
		if host[i] == ':' {
			return "[" + host + "]"
		}
	}
	return host
}

// Step is one step from what was asked to what will be sent: a default filled in, a template expanded, a credential chosen.
type Step struct {
	Kind   string // "default", "normalize", "template", "credential", "key", "header", "body"
	Field  string // what it decided
	Detail string // never an argument's value
}
