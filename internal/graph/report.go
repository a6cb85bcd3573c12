package graph

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// Questions are those of an investigation, in their order: each one is worth asking only when those before are answered.
var Questions = [5]string{
	"One process or two?",
	"Did the first get authorization and reach dispatch?",
	"Did the gateway get a response or an exit status?",
	"Did delivery fail after completion?",
	"Did the second reuse the execution id or key, or make a new attempt?",
}

// Report answers the five questions about one action or two, from the journal alone.
type Report struct {
	First      Subject   `json:"first"`
	Second     *Subject  `json:"second,omitempty"`
	Answers    [5]Answer `json:"answers"`
	Finding    Finding   `json:"finding"`
	Conclusion string    `json:"conclusion"`
	NotKnown   []string  `json:"not_known"`
	Read       Extent    `json:"read"`
}

// Subject is an action that the report is about, as the journal leaves it.
type Subject struct {
	ActionID action.ID       `json:"action_id"`
	IntentID action.IntentID `json:"intent_id"`
	RunID    action.RunID    `json:"run_id"`
	Actor    string          `json:"actor"`
	Tool     string          `json:"tool,omitempty"` // "" when the intent stands in another part of the journal
	State    action.State    `json:"effect_state"`
	Delivery action.Delivery `json:"delivery"`
	Shown    string          `json:"state"` // state and delivery as people read the pair
	Attempts int             `json:"attempts"`
	Calls    int             `json:"calls"` // that belong to it: the first, and those that attached
}

// Answer is what the journal says to one question, and where it says it.
type Answer struct {
	Question string      `json:"question"`
	Answer   string      `json:"answer"` // of two actions, a line for each where the answer is about one
	Events   []Reference `json:"events"`
}

// Reference is one journal event.
type Reference struct {
	Seq    int64            `json:"seq"`
	Event  action.EventKind `json:"event"`
	Time   time.Time        `json:"time"`
	Action action.ID        `json:"action_id,omitempty"` // that the event is about
	Note   string           `json:"note,omitempty"`
}

// Extent is the part of the journal that was read.
type Extent struct {
	First   int64 `json:"first_sequence"`
	Last    int64 `json:"last_sequence"`
	Skipped int   `json:"records_of_unknown_kind"` // about these actions
}

// Finding is the conclusion in one word for machines.
type Finding string

// Findings about one action, and about two. None is drawn from equality or from a count.
const (
	OneAction   Finding = "one_action"             // whatever came later belongs to it
	OnPurpose   Finding = "repeated_on_purpose"    // the second cites the completed result of the first
	Undone      Finding = "undone"                 // the second compensates the first
	SameIntent  Finding = "same_intent"            // one decision; its first action ended undecided and without effect
	TwoIntents  Finding = "two_intents_equal"      // equal content, and no event says that one repeats the other
	Different   Finding = "two_intents_different"  // different content
	NotCompared Finding = "two_intents_unmeasured" // the journal does not tell whether their content is equal
)

// answer collects the sentences and references of one answer.
type answer struct {
	sentences []string
	apart     []string // instead of sentences: a line for each of two actions
	events    []Reference
}

func (a *answer) say(sentence string) {
	if sentence != "" {
		a.sentences = append(a.sentences, printable(sentence))
	}
}

func (a *answer) cite(rec record, note string) {
	ev := rec.Event
	a.events = append(a.events, Reference{Seq: rec.Seq, Event: ev.Kind, Time: ev.Time, Action: ev.Action, Note: printable(note)})
}

func (a answer) text() string {
	if len(a.apart) > 0 {
		return strings.Join(a.apart, "\n")
	}
	return strings.Join(a.sentences, " ")
}

// done gives the answer with its events in journal order, each once.
func (a answer) done(question string) Answer {
	events := slices.Clone(a.events)
	slices.SortStableFunc(events, func(x, y Reference) int { return cmp.Compare(x.Seq, y.Seq) })
	events = slices.CompactFunc(events, func(x, y Reference) bool { return x.Seq == y.Seq })
	if events == nil {
		events = []Reference{}
	}
	return Answer{Question: question, Answer: a.text(), Events: events}
}
