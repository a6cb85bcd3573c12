package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// tableTools are those of the owners' tests, one whose target's absence proves nothing, and one whose target finishes later.
var tableTools = ownersTools + "---" + strings.Replace(unknownQueryable, "tool: pay_invoice", "tool: guess_invoice", 1) + "---" +
	strings.NewReplacer("tool: pay_invoice", "tool: start_job", "class: status_queryable", "class: blocked_after_unknown").
		Replace(unknownQueryable[:strings.Index(unknownQueryable, "lookup:")]) + `poll:
  accepted_when: ${status == 202}
  job: ${body.id}
  request: {method: GET, url: "PROXY/v1/charges/{deed.job}", credential: provider}
  done_when: ${body.state == "done"}
  every: 1h
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
timeout: TIMEOUT
keep_result: 30d
`

// A table is a gateway that makes the prior, and another one that gets the call.
type table struct {
	*owners
	zero  *gateway.Gateway
	stage *valve // of zero's store
	clock rig.Clock
	held  chan struct{} // closed by the answer to zero's send, where that is to be waited for
}

func newTable(t *testing.T, lease time.Duration) *table {
	t.Helper()
	w := &table{stage: &valve{}, held: make(chan struct{})}
	w.owners = newOwners(t, rig.Options{Contracts: tableTools, Lease: lease, Timeout: "30s", Now: w.clock.Now})
	w.zero = w.Another(func(p *gateway.Options) {
		w.stage.Store = p.Store
		p.Store = w.stage
	})
	t.Cleanup(w.stage.goOn)
	t.Cleanup(func() { w.Break() }) // what hangs comes to its end
	return w
}

func (w *table) first(tool string) *rig.Call {
	return w.Call(tool, tableArgs(tool)).Key("task", 1, "toolu_1").At(w.zero)
}

func tableArgs(tool string) string {
	switch tool {
	case "get_echo":
		return `{}`
	case "guess_invoice", "start_job":
		return ownersInvoice
	}
	return ownersArgs(tool)
}

// made makes the prior by a call that is answered.
func (w *table) made(tool string, faults ...provider.Fault) action.Action {
	w.Switch(provider.Switches{Faults: faults, Lookup: provider.LookupOff})
	return w.first(tool).Do().Action
}

// sent makes a prior whose answer does not come.
func (w *table) sent(tool string, fault provider.Kind) action.Action {
	w.Break(unknownTimes(fault, 1))
	w.first(tool).Go()
	w.AwaitRequests(1)
	return w.Only()
}

func (w *table) delivered(to action.Delivery) action.Action {
	a := w.made("charge")
	w.zero.Delivered(a.ID, to, "acknowledged")
	return w.Stored(a.ID)
}

func (w *table) status(code int, retryAfter string) provider.Fault {
	return provider.Fault{Kind: provider.AnswerStatus, Status: code, RetryAfter: retryAfter, Times: 1}
}

// RM-07, RM-10, RM-12, RM-13, RM-20, RM-22, ST-08, ST-25: the table of 4.4 for what is under way, unknown or over: by key and
// by fingerprint, while the owner of the prior lives and when it is gone.
func TestAttachActsByWhatIsKnownAndWhoKnowsIt(t *testing.T) {
	t.Parallel()
	type want struct {
		same  bool
		state action.State
		code  action.Code
		mode  action.EffectMode
		sends int
	}
	drop := unknownTimes(provider.CommitThenDrop, 1)
	inProgress := want{true, action.Dispatched, action.CodeInProgress, action.NoEffect, 0}
	unknown := want{true, action.Unknown, action.CodeOutcomeUnknown, action.NoEffect, 0}
	resent := want{true, action.Completed, "", action.Fresh, 1}
	found := want{true, action.Completed, "", action.Replay, 0}
	fresh := want{false, action.Completed, "", action.Fresh, 1}
	for name, c := range map[string]struct {
		prior func(w *table) action.Action
		tool  string
		state action.State
		live  [2]want // by key, by fingerprint, while the owner lives
		dead  [2]want // the same when it is gone
	}{
		"dispatched, read": {
			func(w *table) action.Action { return w.sent("get_echo", provider.HangAfterRead) },
			"get_echo", action.Dispatched, [2]want{inProgress, inProgress}, [2]want{resent, resent},
		},
		"dispatched, key honoured": {
			func(w *table) action.Action { return w.sent("charge", provider.CommitThenHang) },
			"charge", action.Dispatched, [2]want{inProgress, inProgress}, [2]want{resent, resent},
		},
		"dispatched, can be asked": {
			func(w *table) action.Action { return w.sent("pay_invoice", provider.CommitThenHang) },
			"pay_invoice", action.Dispatched, [2]want{inProgress, inProgress}, [2]want{found, found},
		},
		"dispatched, no way to ask": {
			func(w *table) action.Action { return w.sent("send_email", provider.CommitThenHang) },
			"send_email", action.Dispatched, [2]want{inProgress, inProgress}, [2]want{unknown, unknown},
		},
		"taken on as a job": {
			func(w *table) action.Action {
				return w.made("start_job",
					provider.Fault{Kind: provider.AnswerStatus, Method: "POST", Status: 202, Body: `{"id":"j1"}`, Times: 1},
					provider.Fault{Kind: provider.AnswerStatus, Method: "GET", Status: 200, Body: `{"state":"running"}`})
			},
			"start_job", action.Dispatched, [2]want{inProgress, inProgress}, [2]want{inProgress, inProgress},
		},
		"unknown, key honoured, asked to come later": {
			func(w *table) action.Action { return w.made("charge", drop, w.status(503, "3000")) },
			"charge", action.Unknown, [2]want{unknown, unknown}, [2]want{unknown, unknown},
		},
		"unknown, key honoured, answered without proof": {
			func(w *table) action.Action { return w.made("charge", drop, w.status(500, "")) },
			"charge", action.Unknown, [2]want{unknown, unknown}, [2]want{unknown, unknown},
		},
		"unknown, can be asked": {
			func(w *table) action.Action {
				a := w.made("pay_invoice", drop)
				w.Switch(provider.Switches{})
				w.clock.Move(time.Minute) // within the lease that is to hold
				return a
			},
			"pay_invoice", action.Unknown, [2]want{unknown, unknown}, [2]want{found, found},
		},
		"unknown, absent by an answer that proves nothing": {
			func(w *table) action.Action {
				w.Break(unknownTimes(provider.DropAfterRead, 1))
				a := w.first("guess_invoice").Do().Action
				w.clock.Move(time.Minute)
				return a
			},
			"guess_invoice", action.Unknown, [2]want{unknown, unknown}, [2]want{unknown, unknown},
		},
		"unknown, waits for a person": {
			func(w *table) action.Action { return w.made("send_email", drop) },
			"send_email", action.Unknown, [2]want{unknown, unknown}, [2]want{unknown, unknown},
		},
		"unknown, closed by a person": {
			func(w *table) action.Action {
				a := w.made("send_email", drop)
				_, err := w.zero.Review(w.T.Context(), rig.Agent("reviewer", 9), action.ReviewAsked{Action: a.ID, Decision: action.Abandon, Why: "nobody knows"})
				if err != nil {
					w.T.Fatal(err)
				}
				return w.Stored(a.ID)
			},
			"send_email", action.Unknown, [2]want{unknown, fresh}, [2]want{unknown, fresh},
		},
		"completed, not handed over": {
			func(w *table) action.Action { return w.made("charge") },
			"charge", action.Completed, [2]want{found, found}, [2]want{found, found},
		},
		"completed, interrupted": {
			func(w *table) action.Action { return w.delivered(action.DeliveryInterrupted) },
			"charge", action.Completed, [2]want{found, found}, [2]want{found, found},
		},
		"completed, unconfirmed": {
			func(w *table) action.Action { return w.delivered(action.DeliveryUnconfirmed) },
			"charge", action.Completed, [2]want{found, found}, [2]want{found, found},
		},
		"completed, unconfirmed, the window is over": {
			func(w *table) action.Action {
				a := w.delivered(action.DeliveryUnconfirmed)
				w.clock.Move(16 * time.Minute)
				return a
			},
			"charge", action.Completed, [2]want{found, fresh}, [2]want{found, fresh},
		},
		"completed, delivered": {
			func(w *table) action.Action { return w.delivered(action.Delivered) },
			"charge", action.Completed, [2]want{found, fresh}, [2]want{found, fresh},
		},
		"rejected, vault locked": {
			func(w *table) action.Action {
				w.Vault.Lock()
				defer w.Vault.Unlock()
				return w.made("charge")
			},
			"charge", action.Rejected,
			[2]want{{true, action.Rejected, action.CodeVaultLocked, action.NoEffect, 0}, fresh},
			[2]want{{true, action.Rejected, action.CodeVaultLocked, action.NoEffect, 0}, fresh},
		},
	} {
		for _, owner := range []string{"owner lives", "owner is gone"} {
			for i, how := range []string{"by key", "by fingerprint"} {
				t.Run(strings.Join([]string{name, owner, how}, "/"), func(t *testing.T) {
					t.Parallel()
					lease, expect := 3*time.Hour, c.live[i]
					if owner == "owner is gone" {
						lease, expect = ownersLease, c.dead[i]
					}
					w := newTable(t, lease)
					prior := c.prior(w)
					if owner == "owner is gone" {
						w.stage.stop()
						time.Sleep(ownersLease + 100*time.Millisecond)
					}
					if prior = w.Stored(prior.ID); prior.State != c.state {
						t.Fatalf("the prior is %s (%s), want %s", prior.State, prior.Reason, c.state)
					}
					before, sends := w.Effects(), w.sends()
					call := w.Call(c.tool, tableArgs(c.tool)).Run("task").ID("42", "t")
					if how == "by key" {
						call.Key("task", 1, "toolu_1")
					}
					a := call.Do()
					if a.Attached != expect.same || (a.Action.ID == prior.ID) != expect.same || a.Held {
						t.Errorf("the call is %s (attached %t, held %t), the prior %s; want the same: %t", a.Action.ID, a.Attached, a.Held, prior.ID, expect.same)
					}
					stored := w.Stored(a.Action.ID)
					if a.Action.State != expect.state || stored.State != expect.state || a.Code != expect.code || a.EffectMode != expect.mode {
						t.Errorf("told %s, %q, %s, on record %s; want %s, %q, %s", a.Action.State, a.Code, a.EffectMode, stored.State, expect.state, expect.code, expect.mode)
					}
					if !expect.same && stored.Similar != prior.ID {
						t.Errorf("the new action is similar to %q, want %s", stored.Similar, prior.ID)
					}
					got := w.sends() - sends
					if c.tool == "get_echo" {
						got = w.Requests() - 1
					}
					effects := before
					if !expect.same && expect.sends > 0 {
						effects++
					}
					if got != expect.sends || w.Effects() != effects {
						t.Errorf("%d sends and %d effects after %d; want %d and %d", got, w.Effects(), before, expect.sends, effects)
					}
					if expect.state == action.Completed && expect.same && c.tool == "charge" && string(a.Result) != string(w.Provider.Effects()[0].Body) {
						t.Errorf("the result is %s", a.Result)
					}
					w.attached(t, prior, expect.same, how)
				})
			}
		}
	}
}

// attached looks at what a call to a prior leaves in the journal: one event of it, and no second decision.
func (w *table) attached(t *testing.T, prior action.Action, same bool, how string) {
	t.Helper()
	var calls []rig.Event
	decisions := map[string]bool{}
	for _, e := range w.EventsOf(prior.ID) {
		if e.Kind() == "call.attached" && e.Text("call.request_id") == "42" {
			calls = append(calls, e)
		}
		if id := e.Text("binding.decision_id"); id != "" {
			decisions[id] = true
		}
	}
	if len(decisions) != 1 {
		t.Errorf("%d decisions about %s are on record", len(decisions), prior.ID)
	}
	if !same {
		if len(calls) != 0 {
			t.Errorf("a call that made a new action is on record as attached: %v", calls)
		}
		return
	}
	match := map[string]string{"by key": "key", "by fingerprint": "fingerprint"}[how]
	if len(calls) != 1 || calls[0].Text("call.match") != match || calls[0].Text("call.prior_state") != string(prior.State) {
		t.Errorf("attached calls on record: %v; want one by %s to %s", fmt.Sprint(calls), match, prior.State)
	}
}

// UN-10, RM-10: what waits for the vault says so, sends nothing while it is locked, and goes on when it is open.
func TestAnUnknownActionWaitsForTheVault(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"charge", "pay_invoice"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			w := newTable(t, ownersLease)
			prior := w.sent(tool, provider.CommitThenHang)
			w.stage.stop()
			time.Sleep(ownersLease + 100*time.Millisecond)
			w.Vault.Lock()
			for _, call := range []*rig.Call{w.Call(tool, tableArgs(tool)).Run("task"), w.Call(tool, tableArgs(tool)).Key("task", 1, "toolu_1")} {
				a := call.Do()
				if a.Action.ID != prior.ID || a.Action.State != action.Unknown || a.Action.Recovery != action.Reconciling || a.Action.Reason != "vault_locked" || a.Code != action.CodeOutcomeUnknown {
					t.Errorf("told %s, %s %s (%s), %s", a.Action.ID, a.Action.State, a.Action.Recovery, a.Action.Reason, a.Code)
				}
			}
			if w.Requests() != 1 {
				t.Errorf("%d requests with the vault locked", w.Requests()-1)
			}
			w.Vault.Unlock()
			if a := w.Call(tool, tableArgs(tool)).Run("task").Do(); a.Action.ID != prior.ID || a.Action.State != action.Completed || w.Effects() != 1 {
				t.Errorf("with the vault open it is %s (%s) with %d effects", a.Action.State, a.Action.Reason, w.Effects())
			}
			moves := ownersTransitions(w.EventsOf(prior.ID))
			if !slices.Contains(moves, "T19") || slices.Contains(moves, "T5") {
				t.Errorf("the moves are %v", moves)
			}
		})
	}
}
