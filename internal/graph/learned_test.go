package graph

import (
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

const told = action.ID("act_01j4k8j7dx7v00000000000001")

// story makes a journal of one action out of what happened to it, in order, by hand: for events that no gateway of this
// version may write yet.
func story(channel string, happened ...action.Event) *Journal {
	j := &Journal{histories: map[action.ID]*history{told: {id: told}}}
	opening := action.Event{Kind: action.ActionAccepted, AcceptedBody: &action.Action{ID: told, Channel: channel, Run: "run_1", Class: action.StatusQueryable}}
	for i, ev := range append([]action.Event{opening}, happened...) {
		ev.Action, ev.Time = told, time.Unix(int64(i), 0)
		j.add(record{Seq: int64(i), Event: ev})
		j.last = int64(i)
	}
	return j
}

func moved(m action.Moved) action.Event {
	return action.Event{Kind: action.MovedTo(m.Transition.To()), MoveBody: &m}
}

func observation(o action.Observation) action.Event {
	return action.Event{Kind: action.ActionObserved, ObservedBody: &action.Observed{Observation: o}}
}

func sent() action.Event {
	return moved(action.Moved{Transition: action.T11, Started: &action.Attempt{Number: 1, State: action.AttemptSent}})
}

func ended(t action.Transition, a action.Attempt) action.Event {
	a.Number = 1
	return moved(action.Moved{Transition: t, Ended: &a, Reason: a.Reason})
}

var lost = ended(action.T16, action.Attempt{State: action.AttemptTimeout, Reason: "timeout", BytesSent: 100})

// AU-19: a response to the attempt, what a look-up found, what came late and what a person decided are told apart.
func TestTheThirdAnswerTellsItsSourcesApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel  string
		happened []action.Event
		want     string // of the answer
		ends     string // of the conclusion
	}{
		"a look-up found it": {"http", []action.Event{sent(), lost,
			observation(action.Observation{Kind: action.ByLookup, Finding: action.Found}), moved(action.Moved{Transition: action.T17})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. The target was asked afterwards: the effect is there, with the marker of this action.",
			"One action, one effect."},
		"asked twice, learned nothing": {"http", []action.Event{sent(), lost,
			observation(action.Observation{Kind: action.ByLookup, Finding: action.Absent}),
			{Kind: action.ReconcileStarted, ObservedBody: &action.Observed{Observation: action.Observation{Kind: action.ByLookup}}},
			observation(action.Observation{Kind: action.ByLookup, Reason: "timeout"})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. The target was asked afterwards, 2 times; the newest answer: nothing was learned (timeout).",
			"whether it did is not known (timeout)."},
		"a late answer": {"http", []action.Event{sent(), lost,
			observation(action.Observation{Kind: action.ByLate, Status: 201, Certainty: action.EffectProven}), moved(action.Moved{Transition: action.T17})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. The attempt's own answer came late with status 201, which proves the effect.",
			"One action, one effect."},
		"an overtaken owner": {"http", []action.Event{sent(), lost, observation(action.Observation{Kind: action.ByStale, Status: 201, Certainty: action.EffectProven})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. A gateway that had been overtaken reported an answer with status 201, which was kept and not acted on.",
			"whether it did is not known (timeout)."},
		"a person says it happened": {"http", []action.Event{sent(), lost,
			moved(action.Moved{Transition: action.T21, Review: &action.Review{Decision: action.Happened, Reviewer: "token:anna"}})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. A person, token:anna, decided that it happened.",
			"One action, one effect. That is a person's decision, and not an answer of the target."},
		"a person says it did not": {"http", []action.Event{sent(), lost,
			moved(action.Moved{Transition: action.T20, FailureClass: action.NoEffectConfirmed, Review: &action.Review{Decision: action.DidNot, Reviewer: "token:anna"}})},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. A person, token:anna, decided that it did not happen.",
			"One action without effect (no_effect_confirmed). That is a person's decision, and not an answer of the target."},
		"closed without knowing": {"http", []action.Event{sent(), lost,
			{Kind: action.ActionRecovered, MoveBody: &action.Moved{Transition: action.T19, Reason: "abandoned", Review: &action.Review{Decision: action.Abandon, Reviewer: "token:anna"}}}},
			"No. Attempt 1 got no response (timeout); 100 bytes had been sent. A person, token:anna, decided to close it without knowing.",
			"whether it did is not known (abandoned). That is a person's decision, and not an answer of the target."},
		"taken on, then done": {"http", []action.Event{sent(),
			{Kind: action.ActionDelegated, DelegatedBody: &action.Delegated{Job: "c", Ended: &action.Attempt{Number: 1, State: action.AttemptCompleted, Status: 202}}},
			observation(action.Observation{Kind: action.ByPoll, Finding: action.Found}), moved(action.Moved{Transition: action.T12})},
			"Yes. The target answered attempt 1 with status 202, which proves nothing. The target took it on under a job of its own and finishes later; its word for that is no outcome. " +
				"The target was asked afterwards: the effect is there, with the marker of this action.",
			"One action, one effect."},
		"an exit status": {"ssh", []action.Event{sent(), ended(action.T12, action.Attempt{State: action.AttemptCompleted, Certainty: action.EffectProven})},
			"Yes. The target answered attempt 1 with exit status 0, which proves the effect.", "One action, one effect."},
		"never sent": {"http", []action.Event{sent(), ended(action.T15, action.Attempt{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: "dial_refused"})},
			"No. Attempt 1 was not sent (dial_refused).", "One action without effect ()."},
		"not dispatched": {"http", nil, "There was none to get: nothing was dispatched.", "One action, accepted: nothing of it has taken effect so far."},
	} {
		report, err := story(c.channel, c.happened...).Investigate(told, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := report.Answers[2].Answer; got != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
		if !strings.HasSuffix(report.Conclusion, c.ends) {
			t.Errorf("%s: concluded %s; want it to end %s", name, report.Conclusion, c.ends)
		}
	}
}

// Every finding has words of its own, so that none is told as another.
func TestEveryFindingHasWordsOfItsOwn(t *testing.T) {
	t.Parallel()
	words := map[string]action.Finding{}
	for _, f := range action.Findings {
		text := finding(action.Observation{Finding: f})
		if other, ok := words[text]; ok {
			t.Errorf("%q and %q are both told as %q", f, other, text)
		}
		words[text] = f
	}
}

// A deliberate repeat, an undoing and a second action for one intent are connected by an event; each is told as what it is.
func TestWhatConnectsTwoActions(t *testing.T) {
	t.Parallel()
	digests := action.Digests{KeyID: "k1", Fingerprint: "f", Effect: "e", Args: "a"}
	a := action.Action{ID: "act_a", Intent: "int_a", Contract: "c", Digests: digests}
	b := action.Action{ID: "act_b", Intent: "int_b", Contract: "c", Digests: digests}
	for want, change := range map[Finding]func(*action.Action){
		TwoIntents:  func(*action.Action) {},
		OnPurpose:   func(b *action.Action) { b.Repeats = "act_a" },
		Undone:      func(b *action.Action) { b.Compensates = "act_a" },
		SameIntent:  func(b *action.Action) { b.Intent = "int_a" },
		NotCompared: func(b *action.Action) { b.Digests.KeyID = "k2" },
		Different: func(b *action.Action) {
			b.Digests = action.Digests{KeyID: "k1", Fingerprint: "g", Effect: "h", Args: "i"}
		},
	} {
		b := b
		change(&b)
		first, second := &history{id: a.ID}, &history{id: b.ID}
		first.add(record{Event: action.Event{AcceptedBody: &a}})
		second.add(record{Event: action.Event{AcceptedBody: &b}})
		if l := (&Journal{}).link(first, second); l.finding != want || l.made == "" {
			t.Errorf("got %s (%s), want %s", l.finding, l.made, want)
		}
		b.Similar = a.ID // connects nothing
		if l := (&Journal{}).link(first, second); l.finding != want {
			t.Errorf("with a resemblance: got %s, want %s", l.finding, want)
		}
	}
	// Other contract versions normalise differently: unequal digests then say nothing.
	other := b
	other.Contract, other.Digests = "d", action.Digests{KeyID: "k1", Fingerprint: "g", Effect: "h", Args: "i"}
	if f, _ := compare(a, other); f != NotCompared {
		t.Errorf("under two contract versions: %s", f)
	}
}

// Long lists and long stretches of time stay readable.
func TestAReportOfManyDaysAndEvents(t *testing.T) {
	t.Parallel()
	happened := []action.Event{sent(), lost}
	for range 40 {
		happened = append(happened, observation(action.Observation{Kind: action.ByLookup, Finding: action.Absent}))
	}
	j := story("http", happened...)
	j.histories[told].learned[39].Event.Time = time.Unix(0, 0).Add(48 * time.Hour)
	report, err := j.Investigate(told, "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.Print(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "… and 29 more; --json has them all") || !strings.Contains(b.String(), "1970-01-01 00:00:02.000") {
		t.Errorf("the report is\n%s", b.String())
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if len([]rune(line)) > width {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}
