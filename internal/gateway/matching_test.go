package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/storetest"
	"deed.dev/deed/lab/provider"
)

const (
	matchingCharge = `{"amount":25000,"customer":"cus_42"}`
	matchingMail   = `{"to":"a"}`
	matchingStep   = 7
	matchingBlock  = "toolu_planted"
)

func matchingArgs(tool string) string {
	if tool == "charge" {
		return matchingCharge
	}
	return matchingMail
}

// matchingPlant puts an action on record that an equal call of run "task" matches, brought along the moves. A real call that
// its target refused gives it its operation and its digests.
func matchingPlant(t *testing.T, r *rig.Rig, tool string, reason action.RejectReason, moves ...action.Transition) action.Action {
	t.Helper()
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 422, Times: 1})
	template := r.Call(tool, matchingArgs(tool)).Run("task").Do().Action
	if template.State != action.Failed {
		t.Fatalf("the template is %s", template.State)
	}
	recorded, err := r.Reader().Payload(context.Background(), store.Operation, string(template.ID))
	if err != nil {
		t.Fatal(err)
	}
	var op action.Operation
	if err := json.Unmarshal(recorded, &op); err != nil {
		t.Fatal(err)
	}

	k := &storetest.Kit{}
	claim := k.Claim(action.Run{ID: template.Run, Actor: rig.Agent("agent", 4711)})
	claim.Intent.Tool, claim.Intent.Contract = tool, template.Contract
	claim.Intent.Step, claim.Intent.ToolCallID = matchingStep, matchingBlock
	claim.Intent.IdemKey = digest.IdemKey(template.Run, matchingStep, matchingBlock)
	act := template
	act.ID, act.Intent = claim.Action.ID, claim.Intent.ID
	act.State, act.Delivery, act.FailureClass, act.Reason = action.Accepted, action.DeliveryNone, "", ""
	act.Attempt, act.Binding, act.TargetStatus, act.Result, act.RepeatToken = 0, action.Binding{}, 0, "", ""
	act.AuthorizedAt, act.DispatchedAt, act.FinishedAt, act.ResendBefore = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	act.Owner, act.Epoch, act.UnknownAt = "", 0, time.Time{}
	err = r.Store.Commit(context.Background(), func(tx store.Tx) (err error) {
		if act.Operation, err = tx.PutPayload(store.Operation, string(act.ID), recorded); err != nil {
			return err
		}
		act.AcceptedAt, act.UpdatedAt, claim.Intent.At = tx.Now(), tx.Now(), tx.Now()
		claim.Action = act
		for _, ev := range k.Accepted(claim) {
			ev.Time = tx.Now()
			if err := tx.Append(ev); err != nil {
				return err
			}
		}
		for _, move := range moves {
			now, err := tx.Action(act.ID)
			if err != nil {
				return err
			}
			ev := k.Move(now, move)
			m := ev.MoveBody
			switch {
			case m.Binding != nil:
				if m.Binding.Digest, err = digest.Binding(act.ID, op, act.Operation); err != nil {
					return err
				}
			case m.Started != nil:
				m.ResendBefore = tx.Now().Add(act.KeyLife)
			case m.RejectReason != "":
				m.RejectReason = reason
			case m.Recovery != "" && tool == "send_email":
				m.Recovery = action.ReviewRequired
			}
			if err := tx.Append(ev); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("plant an action by %v: %v", moves, err)
	}
	return r.Stored(act.ID)
}

// RM-07, RM-10, RM-11, RM-12, RM-14, ST-28, EX-02: what an equal call does depends on the state that it finds, by key and
// by fingerprint, and the target sees what the table allows and no more.
func TestAttachActsByTheStateThatItFinds(t *testing.T) {
	t.Parallel()
	type want struct {
		same  bool // the call belongs to the action that existed
		state action.State
		code  action.Code
		sends int
	}
	carried := want{true, action.Completed, "", 1}
	fresh := want{false, action.Completed, "", 1}
	refused := want{true, action.Rejected, action.CodeRejected, 0}
	failed := want{true, action.Failed, action.CodePreviouslyFailed, 0}
	open := want{true, action.Unknown, action.CodeOutcomeUnknown, 0}
	waiting := want{true, action.AwaitingApproval, action.CodeNeedsApproval, 0}
	move := func(list ...action.Transition) []action.Transition { return list }
	for name, c := range map[string]struct {
		tool   string
		reason action.RejectReason
		moves  []action.Transition
		prior  action.State
		key    want
		equal  want
	}{
		"accepted":                    {"charge", "", nil, action.Accepted, carried, carried},
		"awaiting approval":           {"charge", "", move(action.T4), action.AwaitingApproval, waiting, waiting},
		"authorized":                  {"charge", "", move(action.T3), action.Authorized, carried, carried},
		"authorized, approved":        {"charge", "", move(action.T4, action.T6), action.Authorized, carried, carried},
		"orphaned, key honoured":      {"charge", "", move(action.T3, action.T11), action.Dispatched, carried, carried},
		"orphaned, no way to ask":     {"send_email", "", move(action.T3, action.T11), action.Dispatched, open, open},
		"unknown, key honoured":       {"charge", "", move(action.T3, action.T11, action.T16), action.Unknown, carried, carried},
		"unknown, no way to ask":      {"send_email", "", move(action.T3, action.T11, action.T16), action.Unknown, open, open},
		"failed, never sent":          {"charge", "", move(action.T3, action.T11, action.T15), action.Failed, carried, carried},
		"failed, refused by target":   {"charge", "", move(action.T3, action.T11, action.T13), action.Failed, failed, fresh},
		"failed, no effect confirmed": {"charge", "", move(action.T3, action.T11, action.T16, action.T20), action.Failed, failed, fresh},
		"rejected, denied":            {"charge", action.Denied, move(action.T4, action.T7), action.Rejected, refused, refused},
		"rejected, policy":            {"charge", action.Policy, move(action.T5), action.Rejected, refused, refused},
		"rejected, revoked":           {"charge", action.Revoked, move(action.T3, action.T10), action.Rejected, refused, refused},
		"rejected, expired":           {"charge", action.Expired, move(action.T4, action.T7), action.Rejected, fresh, fresh},
		"rejected, cancelled":         {"charge", action.Cancelled, move(action.T3, action.T10), action.Rejected, fresh, fresh},
	} {
		for how, w := range map[string]want{"by key": c.key, "by fingerprint": c.equal} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				r := rig.New(t, rig.Options{})
				prior := matchingPlant(t, r, c.tool, c.reason, c.moves...)
				if prior.State != c.prior {
					t.Fatalf("the prior is %s, want %s", prior.State, c.prior)
				}
				before := r.Requests()
				call, match := r.Call(c.tool, matchingArgs(c.tool)).Run("task").ID("42", "t"), action.MatchFingerprint
				if how == "by key" {
					call.Key("task", matchingStep, matchingBlock)
					match = action.MatchKey
				}
				a := call.Do()
				if same := a.Action.ID == prior.ID; same != w.same || a.Attached != w.same || a.Held {
					t.Errorf("the call is %s (attached %t, held %t), want %s: %t", a.Action.ID, a.Attached, a.Held, prior.ID, w.same)
				}
				stored := r.Stored(a.Action.ID)
				if stored.State != w.state || a.Action.State != w.state || a.Code != w.code {
					t.Errorf("it is %s, on record %s, told %q; want %s, %q", a.Action.State, stored.State, a.Code, w.state, w.code)
				}
				if sends := r.Requests() - before; sends != w.sends || r.Effects() != w.sends {
					t.Errorf("%d requests and %d effects, want %d", sends, r.Effects(), w.sends)
				}
				tokens := r.Tokens()
				if c.tool == "charge" && w.sends == 1 && tokens[len(tokens)-1] != string(a.Action.ID) {
					t.Errorf("the target was given %s, want %s", tokens[len(tokens)-1], a.Action.ID)
				}
				if !w.same {
					return
				}
				if a.Match != match || a.Status().AttachedTo != prior.ID {
					t.Errorf("it attached by %q to %q, want %q to %s", a.Match, a.Status().AttachedTo, match, prior.ID)
				}
				if prior.State == action.Rejected && stored.Binding != prior.Binding {
					t.Errorf("the decision was %+v and is %+v", prior.Binding, stored.Binding)
				}
				attached := r.EventsOf(prior.ID)
				if i := slices.IndexFunc(attached, func(e rig.Event) bool { return e.Kind() == "call.attached" }); i < 0 || attached[i].Text("call.prior_state") != string(c.prior) {
					t.Errorf("no attach to an action in %s is on record", c.prior)
				}
			})
		}
	}
}

// RM-07: an equal fingerprint needs equal arguments, actor and scope. Whatever differs makes a new action.
func TestOnlyEqualArgumentsActorAndScopeMatch(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		args, agent, run := matchingCharge, "agent", "task"
		var differs []string
		if i&1 != 0 {
			args, differs = `{"amount":25000,"customer":"cus_43"}`, append(differs, "arguments")
		}
		if i&2 != 0 {
			agent, differs = "other", append(differs, "actor")
		}
		if i&4 != 0 {
			run, differs = "task-2", append(differs, "scope")
		}
		t.Run("other "+strings.Join(differs, ", "), func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.Options{})
			a := r.Call("charge", matchingCharge).Run("task").Do()
			b := r.From(rig.Agent(agent, 4711), "charge", args).Run(run).Do()
			same := len(differs) == 0
			if (a.Action.ID == b.Action.ID) != same || b.Attached != same {
				t.Errorf("the second call is %s (attached %t), the first %s; want the same: %t", b.Action.ID, b.Attached, a.Action.ID, same)
			}
			if want := map[bool]int{true: 1, false: 2}[same]; r.Effects() != want {
				t.Errorf("%d effects, want %d", r.Effects(), want)
			}
		})
	}
}

// matchingTwo are two tools that differ in their window and their scope.
func matchingTwo(window, scope string) string {
	other := strings.NewReplacer("tool: charge", "tool: deploy", "attach_for: 15m", "attach_for: "+window, "scope: run", "scope: "+scope)
	one, _, _ := strings.Cut(rig.Usual, "---\n")
	return strings.Replace(one, "attach_for: 15m", "attach_for: 5m", 1) + "---\n" + other.Replace(one)
}

// RM-15, EX-12: six minutes later the window of 5 minutes is over and that of 90 is not.
func TestTheWindowIsTheTools(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now, Contracts: matchingTwo("90m", "run")})
	short, long := r.Call("charge", matchingCharge).Do(), r.Call("deploy", matchingCharge).Do()
	clock.Move(4 * time.Minute)
	if b := r.Call("charge", matchingCharge).Do(); b.Action.ID != short.Action.ID {
		t.Errorf("after 4 of 5 minutes the call is new")
	}
	clock.Move(2 * time.Minute)
	if b := r.Call("charge", matchingCharge).Do(); b.Action.ID == short.Action.ID || b.Attached {
		t.Errorf("after 6 of 5 minutes the call attached to %s", b.Action.ID)
	}
	if b := r.Call("deploy", matchingCharge).Do(); b.Action.ID != long.Action.ID || !b.Attached {
		t.Errorf("after 6 of 90 minutes the call is %s, want %s", b.Action.ID, long.Action.ID)
	}
	if r.Effects() != 3 {
		t.Errorf("%d effects, want 3", r.Effects())
	}
}

// RM-15, EX-08: an action whose outcome is open attaches at any age.
func TestAnOpenActionAttachesAtAnyAge(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("send_email", matchingMail).Do()
	for range 3 {
		clock.Move(60 * 24 * time.Hour)
		if b := r.Call("send_email", matchingMail).Do(); b.Action.ID != a.Action.ID || b.Action.State != action.Unknown {
			t.Errorf("the call is %s, %s, want %s unknown", b.Action.ID, b.Action.State, a.Action.ID)
		}
	}
	if r.Effects() != 1 || r.Requests() != 1 {
		t.Errorf("%d effects of %d requests, want 1 of 1", r.Effects(), r.Requests())
	}
}

// RM-09, EX-08: hours later another run asks for the same: a new intent where the scope is the run, the same action where the
// scope is the resource.
func TestAnotherRunHoursLaterIsANewIntentUnlessTheScopeIsWider(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now, Contracts: matchingTwo("12h", "resource")})
	byRun, byResource := r.Call("charge", matchingCharge).Do(), r.Call("deploy", matchingCharge).Do()
	clock.Move(3 * time.Hour)
	later := rig.Agent("agent", 5000)
	if b := r.From(later, "charge", matchingCharge).Do(); b.Action.ID == byRun.Action.ID || b.Attached {
		t.Errorf("in another run the call attached to %s", b.Action.ID)
	}
	if b := r.From(later, "deploy", matchingCharge).Do(); b.Action.ID != byResource.Action.ID || !b.Attached {
		t.Errorf("on the same resource the call is %s, want %s", b.Action.ID, byResource.Action.ID)
	}
	if r.Effects() != 3 {
		t.Errorf("%d effects, want 3", r.Effects())
	}
}

// RM-27: a clock that steps back closes no window early and opens none again, also across a restart.
func TestWindowsSurviveRestartsAndClockSteps(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	a := r.Call("charge", matchingCharge).Do()
	same := func(when string) {
		t.Helper()
		if b := r.Call("charge", matchingCharge).Do(); b.Action.ID != a.Action.ID || !b.Attached {
			t.Errorf("%s the call is %s, want %s", when, b.Action.ID, a.Action.ID)
		}
	}
	clock.Move(-3 * time.Hour)
	same("with the clock turned back")
	r.Restart("")
	same("after a restart with the clock turned back")
	clock.Move(3*time.Hour + 14*time.Minute)
	same("after 14 of 15 minutes")
	clock.Move(2 * time.Minute)
	r.Call("send_email", `{"to":"journal goes on"}`).Do()
	clock.Move(-10 * time.Minute) // the journal has seen minute 16 already
	if b := r.Call("charge", matchingCharge).Do(); b.Action.ID == a.Action.ID {
		t.Error("turning the clock back opened a window that was over")
	}
}

// RM-11, EX-11: a target that asked to come later leaves its action authorized; after a restart the same call carries it on.
func TestAnActionThatWaitsIsCarriedOnAfterARestart(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "3600", Times: 1})
	a := r.Call("charge", matchingCharge).Do()
	if a.Action.State != action.Authorized || a.Code != action.CodeTryLater || a.Status().RetryAfter == nil || *a.Status().RetryAfter < 3500 {
		t.Errorf("the call is told %+v, want authorized, and when to come", a.Status())
	}
	r.Crash()
	if b := r.Call("charge", matchingCharge).Do(); b.Action.ID != a.Action.ID || b.Action.State != action.Authorized || r.Requests() != 1 {
		t.Errorf("too early it is %s, %s after %d requests; want %s authorized after 1", b.Action.ID, b.Action.State, r.Requests(), a.Action.ID)
	}
	clock.Move(61 * time.Minute)
	if b := r.Call("charge", matchingCharge).Do(); b.Action.ID != a.Action.ID || b.Action.State != action.Completed || r.Requests() != 2 || r.Effects() != 1 {
		t.Errorf("in time it is %s, %s after %d requests with %d effects; want %s completed after 2 with 1", b.Action.ID, b.Action.State, r.Requests(), r.Effects(), a.Action.ID)
	}
}

// RM-14: the same rejection with the same decision for each of three repeats, and one decision on record.
func TestARejectionIsRepeatedAndNotReopened(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Contracts: strings.ReplaceAll(rig.Usual, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true")})
	asking := r.Call("charge", matchingCharge).Go()
	r.Deny(r.Asked("").Action)
	first := asking.Answer()
	if first.Action.State != action.Rejected {
		t.Fatalf("the action is %s", first.Action.State)
	}
	for range 3 {
		b := r.Call("charge", matchingCharge).Do()
		s := b.Status()
		if s.ActionID != first.Action.ID || s.State != action.Rejected || s.Decision != first.Action.Binding.Decision || s.Decision == "" || s.Code != action.CodeRejected || s.Retryable {
			t.Errorf("a repeat says %+v, want the rejection of %s by %s", s, first.Action.ID, first.Action.Binding.Decision)
		}
	}
	decisions := map[string]bool{}
	for _, e := range r.Events() {
		for _, member := range []string{"binding.decision_id", "decision.approval_id", "approval.approval_id"} {
			if id := e.Text(member); id != "" {
				decisions[id] = true
			}
		}
	}
	if len(decisions) != 1 || r.BytesToProvider() != 0 {
		t.Errorf("%d decisions and %d bytes, want 1 and none", len(decisions), r.BytesToProvider())
	}
}

// RM-10, ST-28: nobody decided about an action that met a locked vault. Its own key gets the same refusal, and an equal call
// is a new action once the vault is open.
func TestALockedVaultIsNoDecision(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Vault.Lock()
	a := r.Call("charge", matchingCharge).Key("task", 1, "toolu_1").Do()
	if a.Action.State != action.Rejected || a.Code != action.CodeVaultLocked || !a.Retryable() {
		t.Errorf("the call is %s, %s", a.Action.State, a.Code)
	}
	r.Vault.Unlock()
	if b := r.Call("charge", matchingCharge).Key("task", 1, "toolu_1").Do(); b.Action.ID != a.Action.ID || b.Code != action.CodeVaultLocked || r.BytesToProvider() != 0 {
		t.Errorf("its own key is told %s, %s after %d bytes", b.Action.ID, b.Code, r.BytesToProvider())
	}
	if b := r.Call("charge", matchingCharge).Key("task", 2, "toolu_2").Do(); b.Action.ID == a.Action.ID || b.Action.State != action.Completed || r.Effects() != 1 {
		t.Errorf("an equal call is %s, %s with %d effects; want a new action, completed, 1", b.Action.ID, b.Action.State, r.Effects())
	}
	if got := r.Stored(a.Action.ID); got.State != action.Rejected || got.Attempt != 0 {
		t.Errorf("the refused action is %s after %d attempts", got.State, got.Attempt)
	}
}

// RM-10, EX-21: two calls that find an action unsent carry it on together, once.
func TestManyCallsCarryOneActionOnOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	prior := matchingPlant(t, r, "charge", "", action.T3)
	before := r.Requests()
	for i, a := range r.Call("charge", matchingCharge).Run("task").Parallel(20) {
		if a.Action.ID != prior.ID || a.Action.State != action.Completed {
			t.Errorf("answer %d is %s, %s", i, a.Action.ID, a.Action.State)
		}
	}
	if got := r.Requests() - before; got != 1 || r.Effects() != 1 || r.Stored(prior.ID).Attempt != 1 {
		t.Errorf("%d requests, %d effects, %d attempts; want one of each", got, r.Effects(), r.Stored(prior.ID).Attempt)
	}
}
