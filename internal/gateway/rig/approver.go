package rig

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/store"
)

// Approvers of every rig. Bob's agent is the token bobs-agent.
const (
	Ada = "ada"
	Bob = "bob"
)

// approverKey is the key of an approver: the same in every process, so that a failure can be looked at again.
func approverKey(name string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "key of the approver "+name)
	return ed25519.NewKeyFromSeed(seed)
}

// PolicyText is the policy that names the rig's approvers.
var PolicyText = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("approvers:\n")
	for _, name := range []string{Ada, Bob} {
		key, err := ssh.NewPublicKey(approverKey(name).Public())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "  - name: %s\n    keys: [%q]\n", name, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
		if name == Bob {
			b.WriteString("    actors: [\"token:bobs-agent\"]\n")
		}
	}
	return b.String()
})

// Policy is who may decide: gateways ask it each time.
type Policy struct {
	mu   sync.Mutex
	text string
	err  error
}

// Policy implements gateway.Approvers.
func (p *Policy) Policy() (*approval.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	if p.text == "" {
		p.text = PolicyText()
	}
	return approval.ParsePolicy([]byte(p.text))
}

// Set gives the policy another text, or an error in its place.
func (p *Policy) Set(text string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text, p.err = text, err
}

// Sign signs a statement with the key of an approver.
func Sign(approver string, s approval.Statement) action.Signed {
	digest, err := s.Digest()
	if err != nil {
		panic(err)
	}
	key := approverKey(approver)
	return action.Signed{Key: key.Public().(ed25519.PublicKey), Signature: ed25519.Sign(key, digest[:])}
}

// Signed is a decision of an approver about a request, signed.
func Signed(p action.Approval, approver string, d action.ApprovalDecision) action.ApprovalAsked {
	return action.ApprovalAsked{
		Approval: p.ID, Action: p.Action, Decision: d, Approver: approver, Signed: Sign(approver, approval.StatementOf(p, d, approver)),
	}
}

// Operator is who brings decisions: a process of deed's own user.
func Operator() action.Actor { return Agent("deed", 1) }

// Asked waits until a person is asked about the action, or about its run, and gives the request. Without an action it is the
// only request that is open.
func (r *Rig) Asked(id action.ID) action.Approval {
	r.T.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		open, err := r.Gateway.Pending(context.Background())
		r.must(err)
		for _, p := range open {
			if id == "" || p.Action == id {
				return p
			}
			act, err := r.Store.Action(context.Background(), id)
			if r.must(err); act.State == action.AwaitingApproval && act.Approval == p.ID {
				return p
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.T.Fatalf("nobody is asked about %s", id)
	return action.Approval{}
}

// Decide lets an approver sign a decision about what is asked of the action, and brings it to the gateway.
func (r *Rig) Decide(id action.ID, approver string, d action.ApprovalDecision) (action.Answer, error) {
	r.T.Helper()
	return r.Gateway.Decide(context.Background(), Operator(), Signed(r.Asked(id), approver, d))
}

// Approve lets Ada approve the action, and gives how it ended.
func (r *Rig) Approve(id action.ID) action.Answer {
	r.T.Helper()
	a, err := r.Decide(id, Ada, action.Approve)
	r.must(err)
	return a
}

// Deny lets Ada deny the action.
func (r *Rig) Deny(id action.ID) action.Answer {
	r.T.Helper()
	a, err := r.Decide(id, Ada, action.Deny)
	r.must(err)
	return a
}

// Requests of an action on record, oldest first.
func (r *Rig) RequestsAbout(id action.ID) []action.Approval {
	r.T.Helper()
	all, err := r.Store.Approvals(context.Background(), store.ApprovalQuery{Action: id})
	r.must(err)
	return all
}
