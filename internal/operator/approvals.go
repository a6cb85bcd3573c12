package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// Request is one request to a person, with what is asked. Texts that came from an agent or a contract are neutralised.
type Request struct {
	ApprovalID   action.DecisionID    `json:"approval_id"`
	ActionID     action.ID            `json:"action_id"`
	TraceID      string               `json:"trace_id"`
	Asks         string               `json:"asks"` // "each_use": about this action; "run": about the run of the agent's process
	State        action.ApprovalState `json:"state"`
	Why          string               `json:"why,omitempty"` // of a void request
	ActionState  string               `json:"action_state"`
	Tool         string               `json:"tool"`
	Actor        string               `json:"actor"`
	Process      string               `json:"process"` // who asks, as far as it was proved
	RunID        action.RunID         `json:"run_id"`
	Target       string               `json:"target"` // method, address and path template
	Credential   string               `json:"credential_ref,omitempty"`
	Class        action.Class         `json:"class"`
	Requested    string               `json:"requested_at"`
	Expires      string               `json:"expires_at"`
	Needed       int                  `json:"needed"`
	NotRequester bool                 `json:"not_requester,omitempty"`
	Decisions    []Said               `json:"decisions"`
	Dispatched   string               `json:"first_dispatch,omitempty"`
	Outcome      string               `json:"known_outcome"`
	NotSent      string               `json:"why_not_sent"`

	Full *Asked `json:"asked,omitempty"` // not in a list
}

// Said is what an approver has said already.
type Said struct {
	Approver string                  `json:"approver"`
	Decision action.ApprovalDecision `json:"decision"`
	Strength action.ApprovalStrength `json:"approval_strength"`
	At       string                  `json:"at"`
}

// Asked is what exactly is asked, and all that is needed to sign an answer. Operation and Salt together give the commitment
// that the binding is made over, so that whoever signs can check that what was shown is what is bound.
type Asked struct {
	Binding    string            `json:"binding_digest"`
	Nonce      string            `json:"nonce"`
	Impact     string            `json:"impact,omitempty"`
	Commitment action.Commitment `json:"commitment"`
	Operation  []byte            `json:"operation"` // base64
	Salt       []byte            `json:"salt"`
	Run        *RunAsked         `json:"run,omitempty"` // with asks "run"
}

// RunAsked is the process whose run is asked about.
type RunAsked struct {
	RunID      action.RunID    `json:"run_id"`
	Kind       string          `json:"kind"`
	Identity   string          `json:"identity"`
	Evidence   action.Evidence `json:"evidence"`
	Authorizes string          `json:"authorizes"`
}

// ApprovalDecision is what an approver has signed. Bytes are in base64.
type ApprovalDecision struct {
	ActionID          action.ID               `json:"action_id"`
	Decision          action.ApprovalDecision `json:"decision"`
	Approver          string                  `json:"approver"`
	Key               []byte                  `json:"key"`
	Signature         []byte                  `json:"signature"`
	AuthenticatorData []byte                  `json:"authenticator_data,omitempty"`
	ClientData        []byte                  `json:"client_data,omitempty"`
}

// Revoke names what is to be revoked: one of the four.
type Revoke struct {
	Action action.ID       `json:"action,omitempty"`
	Intent action.IntentID `json:"intent,omitempty"`
	Run    action.RunID    `json:"run,omitempty"`
	Actor  string          `json:"actor,omitempty"`
	Why    string          `json:"why"`
}

// Revoked is what a revocation came to.
type Revoked struct {
	ID       action.DecisionID `json:"decision_id"`
	Rejected []action.ID       `json:"rejected"` // nothing of them was sent, and nothing will be
	Sent     []action.ID       `json:"sent"`     // they go on, and are not sent again
	Settled  int               `json:"settled"`  // they were over before
}

// Pending lists the requests that wait for a person, those that expire first coming first.
func (s *Server) Pending(ctx context.Context) ([]Request, error) {
	open, err := s.o.Records.Pending(ctx, mostListed)
	if err != nil {
		return nil, s.unreadable(err)
	}
	all := make([]Request, 0, len(open))
	for _, p := range open {
		act, err := s.o.Records.Action(ctx, p.Action)
		if err != nil {
			return nil, s.unreadable(err)
		}
		all = append(all, request(p, act))
	}
	return all, nil
}

// Request gives one request with the whole operation that is asked about, by its own id or its action's.
func (d Desk) Request(ctx context.Context, id string) (Request, error) {
	if !action.ValidID(action.Prefix, id) && !action.ValidID(action.DecisionPrefix, id) {
		return Request{}, action.Errorf(action.CodeNoSuchAction, "no such request is on record; nothing was done")
	}
	s, err := d.o.Gateway.Requested(ctx, d.By, id)
	if err != nil {
		return Request{}, err
	}
	r := request(s.Approval, s.Action)
	r.Process = process(s.Run)
	r.Full = &Asked{
		Binding: s.Approval.Binding, Nonce: s.Approval.Nonce, Impact: neutral(s.Impact), Commitment: s.Action.Operation,
		Operation: s.Recorded, Salt: s.Salt,
	}
	if s.Approval.Rule == action.AsksRun {
		r.Full.Run = &RunAsked{
			RunID: s.Run.ID, Kind: s.Run.Actor.Kind, Identity: s.Run.Actor.Identity, Evidence: s.Run.Actor.Evidence,
			Authorizes: "every tool that this process calls from now on, but for those that need a person each time",
		}
	}
	return r, nil
}

// Approve records what an approver has signed, an approval or a denial, and gives the action as it stands afterwards.
func (d Desk) Approve(ctx context.Context, id action.DecisionID, said ApprovalDecision) (action.Status, error) {
	a, err := d.o.Gateway.Decide(ctx, d.By, action.ApprovalAsked{
		Approval: id, Action: said.ActionID, Decision: said.Decision, Approver: said.Approver,
		Signed: action.Signed{Key: said.Key, Signature: said.Signature, AuthenticatorData: said.AuthenticatorData, ClientData: said.ClientData},
	})
	if err != nil {
		return action.Status{}, err
	}
	d.o.Log.Info("a person decided", "approval_id", id, "action_id", said.ActionID, "decision", said.Decision, "approver", said.Approver, "via", d.By.String())
	return a.Status(), nil
}

// Revoke takes back what was allowed or asked and not sent yet.
func (d Desk) Revoke(ctx context.Context, asked Revoke) (Revoked, error) {
	done, err := d.o.Gateway.Revoke(ctx, d.By, action.RevokeAsked{
		Action: asked.Action, Intent: asked.Intent, Run: asked.Run, Actor: asked.Actor, Why: strings.TrimSpace(asked.Why),
	})
	if err != nil {
		return Revoked{}, err
	}
	return Revoked{done.ID, append([]action.ID{}, done.Rejected...), append([]action.ID{}, done.Sent...), done.Settled}, nil
}

func request(p action.Approval, a action.Action) Request {
	r := Request{
		ApprovalID: p.ID, ActionID: p.Action, TraceID: a.Trace.TraceID, Asks: p.Rule, State: p.State, Why: p.Why,
		ActionState: action.Shown(a.State, a.Delivery), Tool: neutral(a.Tool), Actor: neutral(a.Actor), Process: neutral(a.Actor), RunID: p.Run,
		Target: neutral(target(a)), Credential: neutral(a.Credential), Class: a.Class,
		Requested: stamp(p.Requested), Expires: stamp(p.Expires), Needed: p.Needed, NotRequester: p.NotRequester, Decisions: []Said{},
		Dispatched: stamp(a.DispatchedAt),
	}
	for _, d := range p.Decisions {
		r.Decisions = append(r.Decisions, Said{d.Approver, d.Decision, d.Strength, stamp(d.At)})
	}
	r.Outcome, r.NotSent = outcome(a, p)
	return r
}

// outcome says what is known of the action, and why deed does not send it now. (AP-04)
func outcome(a action.Action, p action.Approval) (known, why string) {
	switch {
	case a.State == action.AwaitingApproval && a.Attempt > 0:
		return fmt.Sprintf("It was tried %s before, and it is proved that it had no effect.", plural(a.Attempt, "time")), "A person has to approve it anew."
	case a.State == action.AwaitingApproval && len(p.Decisions) > 0:
		return "Nothing was sent.", fmt.Sprintf("%d of %d approvers have approved it.", len(p.Decisions), p.Needed)
	case a.State == action.AwaitingApproval:
		return "Nothing was sent.", "Nobody has decided about it yet."
	case a.State.Effect() == action.EffectNo:
		return "It had no effect.", fmt.Sprintf("It is %s, and the request is %s.", a.State, p.State)
	case a.State == action.Completed:
		return "It took effect, once.", "It is done."
	default:
		return "It was sent, and it is not known whether it took effect.", "An answer to this request sends nothing again."
	}
}

// process says who asks, and how well that is known.
func process(run action.Run) string {
	e := run.Actor.Evidence
	s := run.Actor.String()
	if e.PID != 0 {
		s += fmt.Sprintf(", process %d", e.PID)
	}
	if e.Digest != "" {
		s += ", program sha256:" + e.Digest
	}
	if e.Via != "" {
		s += ", through " + e.Via
	}
	return neutral(fmt.Sprintf("%s (%s)", s, run.Actor.Strength))
}

// Left is how long a request still counts.
func (r Request) Left(now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, r.Expires)
	if err != nil {
		return 0
	}
	return at.Sub(now)
}
