package gateway_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// answersCase is a way to an answer, and what the answer has to say.
type answersCase struct {
	ask        func(*testing.T) (*rig.Rig, action.Answer)
	state      action.State
	code       action.Code
	mode       action.EffectMode
	retryable  bool
	retryAfter bool
	attached   bool
	next       string // the first word of next
	sentence   string // ACT for the action, TIME for a time, APR for a decision
}

const answersMail = `{"to":"a"}`

func answersAfter(o rig.Options, set func(*rig.Rig), calls int) func(*testing.T) (*rig.Rig, action.Answer) {
	return func(t *testing.T) (*rig.Rig, action.Answer) {
		r := rig.New(t, o)
		set(r)
		var a action.Answer
		for range calls {
			a = r.Call("send_email", answersMail).Run("task").Do()
		}
		return r, a
	}
}

func answersBreak(f ...provider.Fault) func(*rig.Rig) {
	return func(r *rig.Rig) { r.Break(f...) }
}

func answersCases() map[string]answersCase {
	later := strings.Replace(rig.Usual, "no_effect_when: ${status in [400, 404, 422]}", "no_effect_when: ${status in [400, 404, 422]}\nretry_when: ${status == 503}", 1)
	person := strings.ReplaceAll(rig.Usual, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true")
	nothing := func(*rig.Rig) {}
	lost := answersBreak(provider.Fault{Kind: provider.CommitThenDrop})
	return map[string]answersCase{
		"completed": {answersAfter(rig.Options{}, nothing, 1), action.Completed, "", action.Fresh, false, false, false, action.NextRepeat,
			"Done, once: the target answered 201."},
		"completed, asked again": {answersAfter(rig.Options{}, nothing, 2), action.Completed, "", action.Replay, false, false, true, action.NextRepeat,
			"Nothing new was done; this is ACT of TIME. It completed at TIME (target status 201), but its answer is not known to have arrived; here it is. To do it again on purpose, pass repeat_of=REP."},
		"running": {answersAfter(rig.Options{Wait: 50 * time.Millisecond}, answersBreak(provider.Fault{Kind: provider.CommitThenHang}), 1), action.Dispatched, action.CodeInProgress, action.Fresh, true, false, false, action.NextWait,
			"It was sent and is still running. Do not send it in another way; make the same call to wait for it."},
		"unknown": {answersAfter(rig.Options{}, lost, 1), action.Unknown, action.CodeOutcomeUnknown, action.Fresh, true, false, false, action.NextReview,
			"It was sent at TIME and what came of it is not known (response_lost). It may have taken effect. There is no way to find out by itself, so it was not sent again; a person has to settle it."},
		"refused by target": {answersAfter(rig.Options{}, answersBreak(provider.Fault{Kind: provider.AnswerStatus, Status: 400}), 1), action.Failed, action.CodeTargetRefused, action.Fresh, false, false, false, action.NextChange,
			"The target refused it (refused_by_target, status 400), and its contract says that a refusal like this comes before any effect."},
		"not sent": {answersAfter(rig.Options{}, func(r *rig.Rig) { r.Cut(chaos.Plan{Mode: chaos.Refuse}) }, 1), action.Failed, action.CodeNotSent, action.NoEffect, true, false, false, action.NextRetry,
			"Nothing was sent: dial_failed. The same call tries again under the same action."},
		"come later": {answersAfter(rig.Options{Contracts: later}, answersBreak(provider.Fault{Kind: provider.AnswerStatus, Status: 503, RetryAfter: "3600"}), 1), action.Authorized, action.CodeTryLater, action.Fresh, true, true, false, action.NextRetry,
			"Nothing has taken effect yet (asked_to_come_later, attempt 1 of 5). The same call tries again under the same action."},
		// AP-23: a person's no is final, and the agent is told by which decision.
		"denied by a person": {func(t *testing.T) (*rig.Rig, action.Answer) {
			r := rig.New(t, rig.Options{Contracts: person})
			p := r.Call("send_email", answersMail).Run("task").Go()
			r.Deny(r.Asked("").Action)
			return r, p.Answer()
		}, action.Rejected, action.CodeRejected, action.NoEffect, false, false, false, action.NextChange,
			"Refused (denied), decision APR: nothing was sent."},
		"vault locked": {answersAfter(rig.Options{}, func(r *rig.Rig) { r.Vault.Lock() }, 1), action.Rejected, action.CodeVaultLocked, action.NoEffect, true, false, false, action.NextRetry,
			"Refused (vault_locked), decision APR: nothing was sent."},
		"waiting for a person": {func(t *testing.T) (*rig.Rig, action.Answer) {
			return answersAfter(rig.Options{Contracts: person, Wait: 50 * time.Millisecond}, nothing, 2)(t)
		}, action.AwaitingApproval, action.CodeNeedsApproval, action.NoEffect, true, false, true, action.NextWait,
			"Nothing new was done; this is ACT of TIME. Waiting for a person to approve POST TARGET/v1/objects/{to} with the credential provider (request APR, until TIME); nothing was sent yet."},
		"held": {func(t *testing.T) (*rig.Rig, action.Answer) {
			r, _ := answersAfter(rig.Options{}, lost, 1)(t)
			return r, r.Call("send_email", answersMail).Run("task-2").Do()
		}, action.Unknown, action.CodeHeld, action.NoEffect, true, false, false, action.NextWait,
			"Nothing was sent: this call is a possible duplicate of ACT or touches what it touches. ACT is unknown since TIME, and its effect may have happened. It has to be settled first."},
	}
}

var (
	answersTime = regexp.MustCompile(`\d\d:\d\d:\d\dZ on \d{4}-\d\d-\d\d`)
	answersRep  = regexp.MustCompile(`rep_[0-9a-z]{26}`)
)

// API-06, API-10, API-19: every answer says in data and in one sentence which action it is about, in what state, whether its
// effect is fresh, whether the call attached, and what to do next. No sentence hides that the effect may have happened.
func TestEveryAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for name, c := range answersCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, a := c.ask(t)
			defer r.Break()
			s := a.Status()
			if s.State != c.state || s.Code != c.code || s.EffectMode != c.mode || s.Retryable != c.retryable || (s.RetryAfter != nil) != c.retryAfter {
				t.Errorf("it says %s, %q, %s, retryable %t, after %v; want %s, %q, %s, %t, %t", s.State, s.Code, s.EffectMode, s.Retryable, s.RetryAfter, c.state, c.code, c.mode, c.retryable, c.retryAfter)
			}
			if len(s.Next) == 0 || s.Next[0] != c.next {
				t.Errorf("next is %q, want %s first", s.Next, c.next)
			}
			if attached := s.AttachedTo != ""; attached != c.attached || s.Replayed != (s.EffectMode == action.Replay) {
				t.Errorf("attached to %q, replayed %t", s.AttachedTo, s.Replayed)
			}
			id := a.Action.ID
			if a.Held {
				if s.HeldBy != id || s.ActionID != "" {
					t.Errorf("held by %q, action %q", s.HeldBy, s.ActionID)
				}
			} else if s.ActionID != id || s.ExecutionID != id || s.IntentID == "" || s.RunID == "" || s.Delivery != r.Stored(id).Delivery {
				t.Errorf("the identifiers are %q, %q, %q, %q, the delivery %q", s.ActionID, s.ExecutionID, s.IntentID, s.RunID, s.Delivery)
			}
			sentence := strings.ReplaceAll(s.Message, string(id), "ACT")
			sentence = answersRep.ReplaceAllString(answersTime.ReplaceAllString(sentence, "TIME"), "REP")
			if d := string(s.Decision); d != "" {
				sentence = strings.ReplaceAll(sentence, d, "APR")
			}
			sentence = strings.ReplaceAll(sentence, a.Action.Target.String(), "TARGET")
			if sentence != c.sentence {
				t.Errorf("it reads\n%q, want\n%q", sentence, c.sentence)
			}
		})
	}
}

// API-06, API-07: the data of an answer has the members that every front door promises, by their names; the seconds may be null.
func TestTheDataOfAnAnswerHasItsMembers(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	_, err := r.Call("charge", `{}`).Try()
	var refusal *action.Error
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	for name, status := range map[string]action.Status{"answer": r.Call("send_email", answersMail).Do().Status(), "refusal": refusal.Status()} {
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		want := []string{"effect_mode", "replayed", "retryable", "retry_after_seconds", "next", "message"}
		if name == "answer" {
			want = append(want, "action_id", "execution_id", "intent_id", "run_id", "state", "delivery", "result_reference", "attempts")
		} else {
			want = append(want, "code")
		}
		for _, member := range want {
			if _, ok := members[member]; !ok {
				t.Errorf("the %s has no %s: %s", name, member, data)
			}
		}
		if list, ok := members["next"].([]any); !ok || len(list) == 0 {
			t.Errorf("the %s has the way on %v", name, members["next"])
		}
	}
}

// API-07: every code of the closed list sets retryable, and says what it means.
func TestEveryCodeSaysWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	for code, advice := range action.Codes {
		s := action.Errorf(code, "text").Status()
		if s.Code != code || s.Retryable != advice.Retryable || advice.Meaning == "" || len(s.Next) != 1 || s.EffectMode != action.NoEffect {
			t.Errorf("%s says %+v", code, s)
		}
		if (s.Next[0] == action.NextRetry) != s.Retryable {
			t.Errorf("%s is retryable %t and says next %q", code, s.Retryable, s.Next)
		}
		data, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(data), `"retryable":`) || !strings.Contains(string(data), `"retry_after_seconds":`) {
			t.Errorf("%s is %s (%v)", code, data, err)
		}
	}
}

// API-08: a 400, a 503, an unknown outcome, a rejection and a reused key are told apart by code, and by what may be done.
func TestFailuresAreNotAllAlike(t *testing.T) {
	t.Parallel()
	cases := answersCases()
	seen := map[action.Code]action.Status{}
	for _, name := range []string{"refused by target", "come later", "unknown", "denied by a person"} {
		r, a := cases[name].ask(t)
		r.Break()
		seen[a.Code] = a.Status()
	}
	r := rig.New(t, rig.Options{})
	r.Call("send_email", answersMail).Key("S", 1, "k").Do()
	_, err := r.Call("send_email", `{"to":"b"}`).Key("S", 1, "k").Try()
	var known *action.Error
	if !errors.As(err, &known) {
		t.Fatal(err)
	}
	seen[known.Code] = known.Status()
	want := map[action.Code]bool{action.CodeTargetRefused: false, action.CodeTryLater: true, action.CodeOutcomeUnknown: true, action.CodeRejected: false, action.CodeKeyReused: false}
	if len(seen) != len(want) {
		t.Errorf("five failures have the codes %v", seen)
	}
	for code, retryable := range want {
		if s, ok := seen[code]; !ok || s.Retryable != retryable {
			t.Errorf("%s: %t, retryable %t, want %t", code, ok, s.Retryable, retryable)
		}
	}
	if slices.Equal(seen[action.CodeTryLater].Next, seen[action.CodeOutcomeUnknown].Next) {
		t.Errorf("what may be sent again and what is unknown have the same way on: %q", seen[action.CodeTryLater].Next)
	}
}

// API-19: where the effect may have happened, no sentence speaks of failure or success; where it did not, none says maybe.
func TestNoSentenceHidesAmbiguity(t *testing.T) {
	t.Parallel()
	for _, state := range action.States {
		for _, class := range []action.FailureClass{action.NotSent, action.RejectedByTarget, action.NoEffectConfirmed} {
			for _, recovery := range []action.Recovery{action.Reconciling, action.ReviewRequired} {
				for _, attached := range []bool{false, true} {
					a := action.Answer{Attached: attached, Complete: true, Action: action.Action{
						ID: "act_0123456789abcdefghjkmnpqrs", State: state, FailureClass: class, RejectReason: action.Policy, Recovery: recovery,
						Attempt: 1, MaxAttempts: 5, TargetStatus: 500, Reason: "timeout", DispatchedAt: time.Now(),
					}}
					s := strings.ToLower(a.Sentence())
					switch state.Effect() {
					case action.EffectMaybe:
						for _, word := range []string{"fail", "done, once", "completed", "success", "no effect", "nothing was sent"} {
							if strings.Contains(s, word) {
								t.Errorf("%s says %q: %q", state, word, s)
							}
						}
						if state == action.Unknown && !strings.Contains(s, "may have taken effect") {
							t.Errorf("%s does not say that it may have happened: %q", state, s)
						}
					case action.EffectNo:
						if strings.Contains(s, "may have taken") || strings.Contains(s, "done, once") {
							t.Errorf("%s says %q", state, s)
						}
					case action.EffectOnce:
						if strings.Contains(s, "not known (") || strings.Contains(s, "fail") {
							t.Errorf("%s says %q", state, s)
						}
					}
				}
			}
		}
	}
}
