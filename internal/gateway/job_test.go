package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

const (
	jobCharge  = `{"amount":900,"customer":"cus_job"}`
	jobByKey   = "class: repeatable_with_key, key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}, evidence: the provider of these tests"
	jobBlocked = "class: blocked_after_unknown"
	jobUsual   = "give_up_after: 1h"
)

// jobTool is a charge that the target takes on and makes later.
func jobTool(lost, poll, more string) string {
	return strings.NewReplacer("LOST", lost, "POLL", poll, "MORE", more).Replace(`
tool: charge_later
description: A charge that the target makes later.
input:
  type: object
  required: [amount, customer]
  properties:
    amount: {type: integer}
    customer: {type: string}
http:
  method: POST
  url: PROXY/v1/jobs/charges
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: usd, customer: "${args.customer}", metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response: {attach_for: 15m, LOST}
poll:
  accepted_when: ${status == 202}
  job: ${body.id}
  request: {method: GET, url: "PROVIDER/v1/jobs/{deed.job}"}
  done_when: ${body.status == "done"}
  no_effect_when: ${body.status == "cancelled"}
  result: ${body.charge}
  every: 100ms
  POLL
MORE
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
attempts: 3
timeout: TIMEOUT
keep_result: 30d
`)
}

// jobRig is a rig with that tool, whose target keeps jobs running until it is told otherwise.
func jobRig(t *testing.T, o rig.Options) *rig.Rig {
	t.Helper()
	if o.Contracts == "" {
		o.Contracts = jobTool(jobByKey, jobUsual, "")
	}
	r := rig.New(t, o)
	r.Switch(provider.Switches{Jobs: provider.HoldJobs})
	return r
}

// taken waits until a target's id for the action is on record.
func taken(t *testing.T, r *rig.Rig) action.Action {
	t.Helper()
	r.AwaitRequests(1)
	return eventually(t, r, r.Only().ID, func(a action.Action) bool { return a.Job != "" })
}

// jobOnce checks that there was one effect, of one send.
func jobOnce(t *testing.T, r *rig.Rig) {
	t.Helper()
	if r.Effects() != 1 || sent(r, "POST") != 1 {
		t.Errorf("%d effects of %d sends, want 1 of 1", r.Effects(), sent(r, "POST"))
	}
}

// case 002, case 020, UN-10: accepted is not finished. Whoever asks meanwhile is told so, with the job; an equal call attaches;
// the callers who wait get the result when the job is done.
func TestCase020AJobIsAskedAboutUntilItIsDone(t *testing.T) {
	t.Parallel()
	r := jobRig(t, rig.Options{})
	call := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1")
	waiting := call.Go()
	a := taken(t, r)
	if a.State != action.Dispatched || a.TargetStatus != 202 {
		t.Errorf("the accepted work is %s with status %d", a.State, a.TargetStatus)
	}
	asked := action.Call{Actor: rig.Agent("agent", 4711)}
	seen, err := r.Gateway.Status(t.Context(), asked, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if s := seen.Status(); !s.Delegated || !strings.HasPrefix(s.Job, "job_") || s.Code != action.CodeInProgress || s.Result != "" ||
		!slices.Contains(s.Next, action.NextStatus) || slices.Contains(s.Next, action.NextRetry) || !strings.Contains(s.Message, "accepted") {
		t.Errorf("while it runs the caller is told %+v", s)
	}
	others := make(chan []action.Answer)
	go func() { others <- call.Parallel(5) }()
	unknownAttached(t, r, 5)
	r.Break()
	for _, b := range append(<-others, waiting.Answer()) {
		if b.Action.ID != a.ID || b.Action.State != action.Completed || b.SettledBy != action.SettledByPoll || !sameJSON(t, b.Result, r.Provider.Effects()[0].Body) {
			t.Errorf("a caller is told %s is %s, settled by %q, with %s", b.Action.ID, b.Action.State, b.SettledBy, b.Result)
		}
	}
	jobOnce(t, r)
	all, err := r.Store.Observations(t.Context(), a.ID)
	if err != nil || len(all) == 0 || all[len(all)-1].Finding != action.Found || all[len(all)-1].Kind != action.ByPoll || all[len(all)-1].Evidence == "" {
		t.Errorf("observed %+v (%v)", all, err)
	}
	job, err := r.Store.Payload(t.Context(), store.Job, string(a.ID))
	if err != nil || strings.Contains(r.Export(), string(job)) {
		t.Errorf("the target's id %q stands in the journal, or is not kept (%v)", job, err)
	}
}

// case 020: the job is finished long after everybody has left and after the gateway was killed. It is asked about again
// without any call, and the same call gets the result.
func TestCase020AJobOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	r := jobRig(t, rig.Options{Wait: 100 * time.Millisecond})
	first := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Do()
	if s := first.Status(); s.State != action.Dispatched || !s.Delegated || s.Job == "" {
		t.Errorf("the caller is told %+v", s)
	}
	r.CrashWith(func() { r.Break() })
	scheduled(t, r)
	a := eventually(t, r, first.Action.ID, inState(action.Completed))
	if a.Attempt != 1 {
		t.Errorf("%d attempts", a.Attempt)
	}
	again := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Do()
	if again.Action.ID != a.ID || !sameJSON(t, again.Result, r.Provider.Effects()[0].Body) || !again.Status().Replayed {
		t.Errorf("the same call is told %s with %s", again.Action.State, again.Result)
	}
	jobOnce(t, r)
}

// case 020: an error about the question says nothing about the job.
func TestAPollThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]provider.Fault{
		"500":     {Kind: provider.AnswerStatus, Status: 500, Body: `{"status":"cancelled"`},
		"404":     {Kind: provider.AnswerStatus, Status: 404},
		"nothing": {Kind: provider.DropAfterRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := jobRig(t, rig.Options{})
			fault.Times = 1
			r.Break(onGet(fault))
			a := r.Call("charge_later", jobCharge).Do()
			if got := findings(t, r, a.Action.ID); a.Action.State != action.Completed || len(got) != 2 || got[1] != "poll found" {
				t.Errorf("it is %s; learned %q", a.Action.State, got)
			}
			jobOnce(t, r)
		})
	}
}

// case 020: a job that ends without an effect is a failure, and known as one.
func TestAJobThatWasCancelledHadNoEffect(t *testing.T) {
	t.Parallel()
	r := jobRig(t, rig.Options{})
	r.Switch(provider.Switches{Jobs: provider.CancelJobs})
	a := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Do()
	if a.Action.State != action.Failed || a.SettledBy != action.SettledByPoll || a.Action.FailureClass != action.RejectedByTarget {
		t.Errorf("it is %s (%s, %s)", a.Action.State, a.Action.FailureClass, a.Action.Reason)
	}
	b := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Do()
	if b.Action.ID != a.Action.ID || b.Code != action.CodePreviouslyFailed || r.Effects() != 0 || sent(r, "POST") != 1 {
		t.Errorf("the same call is told %s, %s; %d effects of %d sends", b.Action.ID, b.Code, r.Effects(), sent(r, "POST"))
	}
}

// case 020, UN-26: a job that never ends is handed to a person with what is known of it. It is not sent again, and a person's
// finding settles it.
func TestAJobThatNeverEndsIsHandedToAPerson(t *testing.T) {
	t.Parallel()
	r := jobRig(t, rig.Options{Contracts: jobTool(jobByKey, "give_up_after: 1s", "")})
	a := r.Call("charge_later", jobCharge).Do()
	s := a.Status()
	if a.Action.State != action.Unknown || s.Recovery != action.ReviewRequired || s.ErrorType != action.NeedsHumanApproval || s.Job == "" {
		t.Errorf("the caller is told %+v, want a person and the job", s)
	}
	r.Break()
	r.AwaitEffects(1) // it ends after all
	asked := action.ReviewAsked{Action: a.Action.ID, Decision: action.Happened, Evidence: "the provider's console", Result: r.Provider.Effects()[0].Body}
	settled, err := r.Gateway.Review(t.Context(), reviewer, asked)
	if err != nil || settled.Action.State != action.Completed {
		t.Fatalf("after the review it is %s, %v", settled.Action.State, err)
	}
	if b := r.Call("charge_later", jobCharge).Do(); b.Action.ID != a.Action.ID || !sameJSON(t, b.Result, r.Provider.Effects()[0].Body) {
		t.Errorf("the same call is told %s with %s", b.Action.ID, b.Result)
	}
	jobOnce(t, r)
}

// case 002: the gateway is killed when the work is accepted and nothing is written of it. With a key the same job comes back,
// with a look-up its effect is found; with neither a person is asked. Nothing is done twice.
func TestCase002KilledBeforeTheJobIsOnRecord(t *testing.T) {
	t.Parallel()
	ask := `lookup: {request: {method: GET, url: "PROVIDER/v1/charges?metadata%5Bidem_key%5D={deed.idem_key}"}, found: "${size(body.data) == 1}", result: "${body.data[0]}"}`
	for name, c := range map[string]struct {
		lost, more string
		state      action.State
		sends      int
	}{
		"a key":     {jobByKey, "", action.Completed, 2},
		"a look-up": {"class: status_queryable, evidence: the provider of these tests", ask, action.Completed, 1},
		"neither":   {jobBlocked, "", action.Unknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := jobRig(t, rig.Options{Contracts: jobTool(c.lost, jobUsual, c.more)})
			r.Break(onPost(provider.CommitThenHang)) // the answer is under way for ever
			r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Go()
			r.AwaitEffects(1)
			r.CrashWith(func() { r.Break() })
			scheduled(t, r)
			a := eventually(t, r, r.Only().ID, func(a action.Action) bool { return a.State == action.Completed || a.Recovery == action.ReviewRequired })
			for range 3 {
				b := r.Call("charge_later", jobCharge).Key("S", 1, "toolu_1").Do()
				if s := b.Status(); s.ActionID != a.ID || s.State != c.state || c.state == action.Unknown && (s.Code != action.CodeOutcomeUnknown || len(s.Next) == 0) {
					t.Errorf("the same call is told %+v, want %s %s", s, a.ID, c.state)
				}
			}
			if a.State != c.state || r.Effects() != 1 || sent(r, "POST") != c.sends {
				t.Errorf("it is %s (%s); %d effects of %d sends, want %s, 1 of %d", a.State, a.Reason, r.Effects(), sent(r, "POST"), c.state, c.sends)
			}
		})
	}
}

// case 001, case 020: the answer that the work is accepted comes after the timeout. From then on there is a job to ask about,
// also where nothing else could have told and a person was to be asked.
func TestALateAcceptanceGivesAJobToAskAbout(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{"blocked": jobBlocked, "a key": jobByKey + ", review_after: 1h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(jobTool(lost, jobUsual, ""), "attempts: 3", "attempts: 1", 1)
			r := rig.New(t, rig.Options{Timeout: "500ms", Contracts: text})
			r.Break(late(provider.Fault{Kind: provider.CommitThenDelay}, 1200*time.Millisecond))
			first := r.Call("charge_later", jobCharge).Do()
			if first.Action.State != action.Unknown {
				t.Fatalf("before the answer it is %s", first.Action.State)
			}
			scheduled(t, r)
			a := eventually(t, r, first.Action.ID, inState(action.Completed))
			if again := r.Call("charge_later", jobCharge).Do(); again.Action.ID != a.ID || again.SettledBy != action.SettledByPoll || !sameJSON(t, again.Result, r.Provider.Effects()[0].Body) {
				t.Errorf("the same call is told %s by %q with %s", again.Action.State, again.SettledBy, again.Result)
			}
			jobOnce(t, r)
		})
	}
}
