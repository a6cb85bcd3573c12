package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/store"
)

// asked is a call after resolution: one concrete operation, and all by which a repeat of it is recognised.
type asked struct {
	action.Asked
	run        action.Run
	contract   *contract.Contract
	resolved   contract.Resolved
	idemKey    string
	step       int64
	toolCallID string
	keySource  string
}

// resolve turns a call into one concrete operation under the tool's contract, and makes its digests.
func (g *Gateway) resolve(ctx context.Context, call action.Call, run action.Run) (asked, error) {
	c, ok := g.contracts.Tool(call.Tool)
	if !ok {
		return asked{}, action.Errorf(action.CodeUnknownTool, "there is no tool of this name; nothing was done")
	}
	resolved, err := c.Resolve(call.Arguments)
	if err != nil {
		return asked{}, err
	}
	a := asked{
		run: run, contract: c, resolved: resolved,
		step: call.Caller.Step, toolCallID: call.Caller.ToolCallID, keySource: call.Caller.Source,
	}
	if !call.Caller.Given() { // the caller's key is optional, deed's own is not
		a.step, a.toolCallID, a.keySource = 0, string(call.ID), "deed"
	}
	a.idemKey = digest.IdemKey(run.ID, a.step, a.toolCallID)
	a.Asked = action.Asked{
		Run: run.ID, Actor: call.Actor, Tool: c.Tool,
		Keyed: call.Caller.Given(), Hinted: call.Caller.Run != "",
		KeyOnly: c.KeyOnly, Repeat: resolved.RepeatOf != "", Undoes: call.Undoes,
	}
	if err := a.addVariants(g.keys, c, resolved); err != nil {
		return a, err
	}
	for _, older := range (*g.mattering.Load())[c.Tool] { // an action that was opened under it is still the same action
		if err := g.under(ctx, &a, call, older); err != nil {
			return a, err
		}
	}
	return a, nil
}

// addVariants makes the call's digests under one contract version, with each key that still matters.
func (a *asked) addVariants(keys *digest.Keys, c *contract.Contract, r contract.Resolved) error {
	record := digest.Record{
		Actor: a.Actor.String(), Tool: c.Tool, Channel: c.Channel, Target: r.Target(),
		CredentialRef: c.Credential, Method: c.Method, IntentScope: a.scope(c, r),
	}
	for _, key := range keys.All() {
		arguments, err := r.MeaningfulUnder(key.Secret)
		if err != nil {
			return err
		}
		record.Arguments = json.RawMessage(arguments)
		digests, err := key.Of(record, arguments, r.Resource)
		if err != nil {
			return err
		}
		a.Variants = append(a.Variants, action.Variant{Contract: c.Digest, Digests: digests})
	}
	return nil
}

// scope is the context in which an equal call counts as a retry.
func (a *asked) scope(c *contract.Contract, r contract.Resolved) string {
	switch c.Scope {
	case contract.ScopeActor:
		return "actor"
	case contract.ScopeResource:
		return "resource:" + r.Resource
	default:
		return "run:" + string(a.run.ID)
	}
}

// knows reports whether the call has digests under the contract version and the key that an action was made with.
func (a *asked) knows(act action.Action) (contract, key bool) {
	for _, v := range a.Variants {
		if v.Contract == act.Contract {
			contract = true
			key = key || v.Digests.KeyID == act.Digests.KeyID || v.Digests.KeyID == ""
		}
	}
	return contract, key
}

// olderContracts are contract versions that are no longer loaded, read back from the store when an action made under one
// is met.
type olderContracts struct {
	mu     sync.Mutex
	parsed map[string]*contract.Contract
}

// version gives the contract of an action: the one it was made under, loaded or read back.
func (g *Gateway) version(ctx context.Context, tool, digest string) (*contract.Contract, error) {
	if c, ok := g.contracts.Tool(tool); ok && c.Digest == digest {
		return c, nil
	}
	g.older.mu.Lock()
	defer g.older.mu.Unlock()
	if c, ok := g.older.parsed[digest]; ok {
		return c, nil
	}
	text, err := g.store.ContractText(ctx, digest)
	if err != nil {
		return nil, err
	}
	found, err := contract.Parse("recorded contract of "+tool, text)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		g.older.parsed[c.Digest] = c
	}
	c, ok := g.older.parsed[digest]
	if !ok {
		return nil, action.Errorf(action.CodeInternal, "the recorded contract of %s is not the one that its digest names", tool)
	}
	return c, nil
}

// under adds the digests of the call under an older contract version. Arguments that do not fit it match nothing there.
func (g *Gateway) under(ctx context.Context, a *asked, call action.Call, digest string) error {
	c, err := g.version(ctx, call.Tool, digest)
	if err != nil {
		return err
	}
	resolved, err := c.Resolve(call.Arguments)
	if err != nil {
		a.Variants = append(a.Variants, action.Variant{Contract: digest})
		return nil
	}
	return a.addVariants(g.keys, c, resolved)
}

// judge is what the action's own contract version says about answers. Without it no answer proves anything.
func (g *Gateway) judge(ctx context.Context, act action.Action) action.Judge {
	c, err := g.version(ctx, act.Tool, act.Contract)
	if err != nil {
		g.log.Error("the contract of an action cannot be read: its answer will prove nothing", "action_id", act.ID, "error", err)
		return func(action.Response) action.Verdict { return action.Verdict{Rule: "contract_unreadable"} }
	}
	return c.Judge
}

// underKey adds the digests of the call under a fingerprint key that is gone, if its arguments are those of the action
// that was made with it. They are compared as they were asked, under the action's own contract version.
func (g *Gateway) underKey(ctx context.Context, a *asked, call action.Call, act action.Action) error {
	c, err := g.version(ctx, act.Tool, act.Contract)
	if err != nil {
		return err
	}
	variant := action.Variant{Contract: act.Contract, Digests: action.Digests{KeyID: act.Digests.KeyID}}
	if c.TakesSecrets() { // whether the secret is the same cannot be told any more, so it counts as another
		a.Variants = append(a.Variants, variant)
		return nil
	}
	earlier, err := g.store.Payload(ctx, store.Arguments, string(act.Intent))
	if err != nil {
		return err
	}
	then, err := c.Resolve(earlier)
	if err != nil {
		return err
	}
	now, err := c.Resolve(call.Arguments)
	if err == nil && bytes.Equal(then.Meaningful, now.Meaningful) {
		variant.Digests.Args = act.Digests.Args
	}
	a.Variants = append(a.Variants, variant)
	return nil
}
