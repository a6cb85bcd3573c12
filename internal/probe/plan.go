package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
)

// Executor makes one attempt of one operation. *httpexec.Executor is one.
type Executor interface {
	Perform(context.Context, action.Dispatch) action.Outcome
}

// Recorder keeps the record of probes. Planned returns when the plan is durable; without it nothing is sent.
type Recorder interface {
	Planned(context.Context, Plan) error
	Observed(context.Context, Report) error
}

// Setup is what a probe is made of.
type Setup struct {
	Contract *contract.Contract
	First    []byte         // JSON arguments
	Changed  []byte         // others, which the target would take under a key of their own
	Failing  []byte         // some that the target answers with an error; nil to leave stored errors out
	Against  *action.Target // a sandbox in the place of the contract's own target; nil for that one
	Ignore   []string       // JSON pointers of members of an answer that differ each time; * is any element
	Now      func() time.Time
}

// Plan is what a probe is going to send. It holds neither arguments nor bodies.
type Plan struct {
	Tool       string          `json:"tool"`
	Contract   string          `json:"contract"` // digest of the contract version
	Target     string          `json:"target"`
	Host       string          `json:"host"`
	Method     string          `json:"method"`
	Template   string          `json:"path_template"`
	Credential string          `json:"credential_ref,omitempty"`
	KeyPlace   string          `json:"key_place"`
	Declared   contract.Repeat `json:"declared"`
	Requests   []Request       `json:"requests"`
	At         time.Time       `json:"planned_at"`
}

// Request is one request of a plan.
type Request struct {
	Name  Name      `json:"request"`
	Token action.ID `json:"key"` // an action id that no action has
}

// Name says which request it is.
type Name string

// The requests of a probe, in their order.
const (
	First        Name = "first"
	Same         Name = "same"
	Changed      Name = "changed"
	Failing      Name = "failing"
	FailingAgain Name = "failing_again"
)

// Probe is a plan with its bytes. Make one with New; Run it once.
type Probe struct {
	Plan  Plan
	setup Setup
	sends []send
	ran   bool
}

type send struct {
	Request
	operation action.Operation
}

// New resolves the arguments and plans the requests. Errors say what is wrong with the arguments or the contract; nothing
// is sent here.
func New(s Setup) (*Probe, error) {
	c := s.Contract
	if !c.Key.Given() {
		return nil, fmt.Errorf("%s sends no key, so there is nothing to probe; on_lost_response.key says where a target takes one", c.Tool)
	}
	if err := checkPointers(s.Ignore); err != nil {
		return nil, err
	}
	p := &Probe{setup: s}
	key, own := newToken(), newToken()
	first, err := p.operation("the arguments", s.First, key)
	if err != nil {
		return nil, err
	}
	changed, err := p.operation("the changed arguments", s.Changed, key)
	if err != nil {
		return nil, err
	}
	if alike(first, changed) {
		return nil, errors.New("the changed arguments ask for the same request as the arguments; change something that is sent")
	}
	p.sends = []send{{Request{First, key}, first}, {Request{Same, key}, first}, {Request{Changed, key}, changed}}
	if s.Failing != nil {
		failing, err := p.operation("the failing arguments", s.Failing, own)
		if err != nil {
			return nil, err
		}
		p.sends = append(p.sends, send{Request{Failing, own}, failing}, send{Request{FailingAgain, own}, failing})
	}
	p.Plan = Plan{
		Tool: c.Tool, Contract: c.Digest, Target: shortTarget(first.Target), Host: first.Target.Host, Method: c.Method,
		Template: c.Template, Credential: c.Credential, KeyPlace: c.Key.Place(), Declared: c.Key.Repeat, At: s.Now(),
	}
	for _, s := range p.sends {
		p.Plan.Requests = append(p.Plan.Requests, s.Request)
	}
	return p, nil
}

// Target is where the requests go, as the vault wants to know it.
func (p *Probe) Target() action.Target { return p.sends[0].operation.Target }

func (p *Probe) operation(what string, args []byte, key action.ID) (action.Operation, error) {
	resolved, err := p.setup.Contract.Resolve(args)
	if err != nil {
		return action.Operation{}, fmt.Errorf("%s: %w", what, err)
	}
	if len(resolved.Secrets) > 0 {
		return action.Operation{}, fmt.Errorf("%s: the tool takes secret arguments, and a probe sends none; probe the target with another tool", what)
	}
	op, err := resolved.Operation(key, digest.IdemKey(action.RunID("probe"), 0, string(key)))
	if err == nil && p.setup.Against != nil {
		private := op.Target.Private // the ranges are the contract's: another host is no leave to look around
		op.Target = *p.setup.Against
		op.Target.Private = private
	}
	return op, err
}

func alike(a, b action.Operation) bool {
	return a.Path == b.Path && a.Query == b.Query && bytes.Equal(a.Body, b.Body) && slices.Equal(a.Headers, b.Headers)
}

// newToken is an action id made of random bits alone: no action has it, and none will.
func newToken() action.ID { return action.ID(action.Prefix + randomText()) }

func randomText() string {
	const letters = "0123456789abcdefghjkmnpqrstvwxyz"
	text := make([]byte, 26)
	_, _ = rand.Read(text) // never fails
	for i := range text {
		text[i] = letters[text[i]%32]
	}
	return string(text)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
