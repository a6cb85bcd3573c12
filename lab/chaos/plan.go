package chaos

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plan says what the proxy does to connections. The zero value passes all.
type Plan struct {
	Mode  Mode
	Bytes int64 // the n of the mode

	// Delay holds each piece of data back, in both directions. In the mode
	// Twice it is instead the pause between the two deliveries.
	Delay time.Duration

	// Connections limits the plan to so many connections yet to come; the
	// others pass. Zero means each connection, also those that are open:
	// there the bytes are counted from the moment when the plan was set.
	Connections int
}

// Mode is a way to break a connection. "Request" is the direction from client
// to target, "response" the other; a connection may carry many of each.
type Mode string

// The zero Mode means Pass.
const (
	Pass Mode = "pass"

	// Refuse closes the listener, so that dialling fails. Open connections go
	// on. Setting another plan listens on the same port again.
	Refuse Mode = "refuse"

	// Reset accepts a connection and resets it without dialling the target.
	// The client learns of it from its dial or from its first read or write.
	// Open connections are reset at once.
	Reset Mode = "reset"

	// CutRequest forwards n bytes to the target and resets both sides when
	// they are reached. With n = 0 it resets when the first byte comes.
	CutRequest Mode = "cut_request"

	// SwallowRequest forwards n bytes to the target and loses the rest for as
	// long as the connection lives. Both sides stay connected.
	SwallowRequest Mode = "swallow_request"

	// CutResponse is CutRequest in the other direction. With n = 0 the target
	// has had the request and has answered, and the client gets a reset
	// instead of the first byte.
	CutResponse Mode = "cut_response"

	// SwallowResponse is SwallowRequest in the other direction. If the target
	// closes, the client is not told.
	SwallowResponse Mode = "swallow_response"

	// Hold keeps what the client sends until the next plan is set, and then
	// does with it as that plan says.
	Hold Mode = "hold"

	// Twice delivers an HTTP/1.1 request to the target twice, each time on a
	// new connection, and answers with the last response. It takes one request
	// per client connection and closes it then. It works on connections that
	// are accepted while it is set. Expect: 100-continue is not supported.
	Twice Mode = "twice"
)

func (p Plan) complete() (Plan, error) {
	if p.Mode == "" {
		p.Mode = Pass
	}
	modes := []Mode{Pass, Refuse, Reset, CutRequest, SwallowRequest, CutResponse, SwallowResponse, Hold, Twice}
	switch {
	case !slices.Contains(modes, p.Mode):
		return p, fmt.Errorf("unknown mode %q", p.Mode)
	case p.Bytes < 0 || p.Delay < 0 || p.Connections < 0:
		return p, errors.New("bytes, delay and connections cannot be negative")
	case p.Mode == Refuse && p.Connections > 0:
		return p, errors.New("a refused connection cannot be counted")
	}
	return p, nil
}
