package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// keyed is the askable tool whose target also honours keys, for a day.
var keyed = strings.Replace(askable("review_after: 30d", askFound+", "+askSure), "class: status_queryable",
	"class: repeatable_with_key, key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}", 1)

// forgets makes the provider take a known key for a new one: a resend would be a second effect.
func forgets(faults ...provider.Fault) provider.Switches {
	return provider.Switches{KeyRetention: time.Nanosecond, Faults: faults}
}

// UN-28, IK-15, C-27, RM-27: where the target may have forgotten the key, nothing is sent under it: a look-up finds out. A clock
// that went back counts like one that went too far.
func TestWhenTheKeysLifeIsOverTheTargetIsAsked(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]time.Duration{"a day later": 25 * time.Hour, "long after": 300 * 24 * time.Hour, "with the clock set back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &rig.Clock{}
			r := rig.New(t, rig.Options{Now: clock.Now, Contracts: keyed})
			unknownSend(r, "pay", askCharge)
			r.CrashWith(func() { clock.Move(move); r.Switch(forgets()) })
			scheduled(t, r)
			a := eventually(t, r, r.Only().ID, inState(action.Completed))
			if r.Effects() != 1 || sent(r, "POST") != 1 || a.Attempt != 1 || findings(t, r, a.ID)[0] != "lookup found" {
				t.Errorf("%d effects of %d sends; learned %q", r.Effects(), sent(r, "POST"), findings(t, r, a.ID))
			}
		})
	}
}

// UN-28, UN-12: after the key's life only a proved absence allows another send.
func TestAfterTheKeysLifeAbsenceHasToBeProved(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now, Contracts: keyed})
	r.Break(onPost(provider.HangAfterRead))
	r.Call("pay", askCharge).Key("run", 1, "toolu_1").Go()
	r.AwaitRequests(1)
	r.CrashWith(func() { clock.Move(25 * time.Hour); r.Switch(forgets()) })
	scheduled(t, r)
	a := eventually(t, r, r.Only().ID, inState(action.Completed))
	got := findings(t, r, a.ID)
	if r.Effects() != 1 || a.Attempt != 2 || got[len(got)-1] != "lookup absent_settled" {
		t.Errorf("%d effects in %d attempts; learned %q", r.Effects(), a.Attempt, got)
	}
}

// UN-28: how long a key may be sent again is fixed at the first send. No restart, no resend, no other owner and no person's
// decision makes it longer.
func TestTheKeysLifeIsNeverExtended(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now, Timeout: "300ms", Contracts: strings.Replace(rig.Usual, "attempts: 5", "attempts: 9", 1)})
	unknownSend(r, "charge", unknownCharge)
	fixed := r.Only().ResendBefore
	if fixed.IsZero() {
		t.Fatal("no end is on record")
	}
	for n := range 3 { // each start sends again, and is killed in the middle
		r.CrashWith(func() { clock.Move(5 * time.Hour); r.Break(onPost(provider.CommitThenHang)) })
		r.AwaitRequests(n + 2)
		if a := r.Only(); !a.ResendBefore.Equal(fixed) || a.Attempt != n+2 {
			t.Errorf("in attempt %d the end is %s, want %s", a.Attempt, a.ResendBefore, fixed)
		}
	}
	r.CrashWith(func() { clock.Move(10 * time.Hour); r.Switch(provider.Switches{}) })
	a := eventually(t, r, r.Only().ID, func(a action.Action) bool { return a.Recovery == action.ReviewRequired })
	if r.Requests() != 4 || !a.ResendBefore.Equal(fixed) {
		t.Fatalf("%d requests, and the end is %s; want 4 and %s", r.Requests(), a.ResendBefore, fixed)
	}
	// A person has it sent once more, and that answer is lost too.
	r.Switch(forgets(onPost(provider.DropAfterRead)))
	b, err := r.Gateway.Review(t.Context(), reviewer, action.ReviewAsked{Action: a.ID, Decision: action.Redo, Why: "the shop has no such charge"})
	if err != nil || b.Action.State != action.Unknown || b.Action.Recovery != action.ReviewRequired || !b.Action.ResendBefore.Equal(fixed) {
		t.Errorf("after the redo it is %s, %s, end %s, %v", b.Action.State, b.Action.Recovery, b.Action.ResendBefore, err)
	}
	r.Restart("")
	r.Call("charge", unknownCharge).Key("run", 1, "toolu_1").Do()
	if r.Requests() != 5 || r.Effects() != 1 {
		t.Errorf("%d requests and %d effects, want the one that was decided more, and 1", r.Requests(), r.Effects())
	}
}

// RM-27, UN-28: a clock that was far ahead, and is put right, gives no time back.
func TestAClockThatWasAheadGivesNoTimeBack(t *testing.T) {
	t.Parallel()
	clock := &rig.Clock{}
	r := rig.New(t, rig.Options{Now: clock.Now})
	unknownSend(r, "charge", unknownCharge)
	r.CrashWith(func() { clock.Move(23 * time.Hour); r.Break(onPost(provider.CommitThenHang)) })
	r.AwaitRequests(2) // in time by the clock on the wall
	r.CrashWith(func() { clock.Move(-23 * time.Hour); r.Switch(forgets()) })
	eventually(t, r, r.Only().ID, func(a action.Action) bool { return a.Recovery == action.ReviewRequired })
	if r.Requests() != 2 || r.Effects() != 1 {
		t.Errorf("%d requests with %d effects, want 2 and 1", r.Requests(), r.Effects())
	}
}

// IK-21: an error that the target stored is given again under the key. It is not looped on: where the target can be asked, it is.
func TestAStoredErrorIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 502} {
		r := rig.New(t, rig.Options{Contracts: keyed})
		r.Break(provider.Fault{Kind: provider.CommitThenStatus, Status: status, Times: 1, Method: "POST"})
		a := r.Call("pay", askCharge).Do()
		if a.Action.State != action.Completed || a.SettledBy != action.SettledByLookUp || !sameJSON(t, a.Result, r.Provider.Effects()[0].Body) {
			t.Errorf("after %d it is %s, settled by %q, with %s", status, a.Action.State, a.SettledBy, a.Result)
		}
		if r.Effects() != 1 || sent(r, "POST") != 2 || sent(r, "GET") != 1 {
			t.Errorf("after %d: %d effects, %d sends, %d questions; want 1, 2, 1", status, r.Effects(), sent(r, "POST"), sent(r, "GET"))
		}
	}
}

// UN-03, C-10: what was never sent is tried again under the same action, within its attempts over all callers and starts. Then
// it is told so, and nothing is sent any more.
func TestWhatWasNeverSentIsTriedWithinItsAttempts(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Cut(chaos.Plan{Mode: chaos.Refuse})
	ids := map[action.ID]bool{}
	var last action.Answer
	for n := range 8 {
		last = r.Call("send_email", unknownMail).Key("run", 1, "toolu_1").Do()
		ids[last.Action.ID] = true
		if last.Action.Attempt > 5 {
			t.Fatalf("call %d finds %d attempts of 5", n+1, last.Action.Attempt)
		}
		if n == 3 {
			r.Restart("")
		}
	}
	if s := last.Status(); len(ids) != 1 || last.Action.Attempt != 5 || s.Code != action.CodeAttemptsExhausted || s.Retryable || slices.Contains(s.Next, action.NextRetry) {
		t.Errorf("%d actions; the last call is told %s, retryable %t, next %v, after %d attempts", len(ids), s.Code, s.Retryable, s.Next, last.Action.Attempt)
	}
	r.Cut(chaos.Plan{})
	if b := r.Call("send_email", unknownMail).Key("run", 1, "toolu_1").Do(); b.Action.Attempt != 5 || r.Requests() != 0 || r.Effects() != 0 {
		t.Errorf("now that the target is there, %d attempts, %d requests, %d effects", b.Action.Attempt, r.Requests(), r.Effects())
	}
	for _, a := range r.AttemptsOf(last.Action.ID) {
		if a.State != action.AttemptNotSent || a.BytesSent != 0 {
			t.Errorf("attempt %d is %s with %d bytes", a.Number, a.State, a.BytesSent)
		}
	}
}
