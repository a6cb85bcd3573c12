package contract

import (
	"errors"
	"fmt"
	"time"

	"deed.dev/deed/internal/action"
)

// Lookup is a request without effect that asks the target what became of an action.
type Lookup struct {
	Authoritative bool          // "not found" proves that there was no effect
	Settle        time.Duration // how long after the send "not found" proves nothing yet

	request   question
	found     *expression
	absent    *expression // nil for the usual meaning of an answer without the effect
	result    *text       // nil where the whole answer is the result
	byRequest bool        // the question itself names the action, so the answer need not
}

// markerByRequest is the word for a look-up whose question names the action.
const markerByRequest = "by_request"

// lookup checks how the target can be asked what became of an action.
func (f *faults) lookup(c *Contract, raw file) {
	if raw.Lookup == nil {
		return
	}
	const at = "/lookup"
	if c.Class == action.ReadOnly {
		f.addAt(f.places.key(at), at, "a read needs no look-up", "leave it out")
		return
	}
	own := []string{"action_id", "idem_key"}
	l := &Lookup{Authoritative: raw.Lookup.Authoritative, byRequest: raw.Lookup.Marker == markerByRequest}
	l.request = f.question(at+"/request", c, raw.Lookup.Request, own...)
	l.found = f.finding(at+"/found", raw.Lookup.Found, c, own)
	l.absent = f.finding(at+"/absent", raw.Lookup.Absent, c, own)
	l.result = f.result(at+"/result", raw.Lookup.Result, c, own)
	l.Settle = f.duration(at+"/settle", raw.Lookup.Settle, 0, 0, day)
	if l.Authoritative && raw.Lookup.Settle == "" {
		f.add(at+"/authoritative", "a look-up proves absence only after a time to settle", "add settle, such as 30s")
	}
	named := len(l.request.uses) > 0 || l.found != nil && l.found.touches("deed")
	if l.byRequest && !named && !f.any(at+"/request") && !f.any(at+"/found") {
		f.add(at+"/marker", "neither the request nor found names the action", "use deed.action_id or deed.idem_key, or leave marker out")
	}
	if !c.Key.Given() && !c.metadata.given() {
		f.addAt(f.places.key(at), at, "nothing carries the action's id or idem_key to the target, so nothing there could be told from "+
			"a look-alike", "say metadata or on_lost_response.key")
	}
	f.contradictions(rule{at + "/found", "found", l.found, action.Verdict{}}, rule{at + "/absent", "absent", l.absent, action.Verdict{}})
	c.Lookup = l
}

// finding compiles a condition on an answer to a question.
func (f *faults) finding(path, source string, c *Contract, own []string) *expression {
	e := f.condition(path, source, ofFinding)
	if e != nil {
		f.owns(path, []*expression{e}, c, own)
	}
	return e
}

// result compiles what a question brings back as the tool's result: one expression, or nothing for the whole answer.
func (f *faults) result(path, source string, c *Contract, own []string) *text {
	if source == "" {
		return nil
	}
	t := f.text(path, source, ofFinding)
	if t.whole() == nil && !f.any(path) {
		f.add(path, "this is not one expression", "write ${…} around all of it, for example ${body.items[0]}")
	}
	f.owns(path, t.expressions(), c, own)
	return t
}

// LookupOperation is the question to the target what became of an action. requested are the canonical arguments of the
// intent (Resolved.Requested). The error names what is missing, and never a value.
func (c *Contract) LookupOperation(requested []byte, id Identity) (action.Operation, error) {
	if c.Lookup == nil {
		return action.Operation{}, fmt.Errorf("look-up of %s: %w", c.Tool, errors.New("the contract has none"))
	}
	op, err := c.ask(c.Lookup.request, requested, id)
	if err != nil {
		return action.Operation{}, fmt.Errorf("look-up of %s: %w", c.Tool, err)
	}
	return op, nil
}

// Find says what the target's answer means. That nothing was found proves nothing here: whether it does depends on
// Authoritative, and on the time since the send. Something that does not carry the action's id or idem_key is a
// look-alike: a target may ignore what it is searched by, and answer with what somebody else did.
func (l *Lookup) Find(r action.Response, id Identity) action.Finding {
	a := readAnswer(r, id)
	found, err := a.holds(l.found)
	if err != nil {
		return action.Inconclusive
	}
	absent := !found && a.knowsNone()
	if l.absent != nil {
		if absent, err = a.holds(l.absent); err != nil {
			return action.Inconclusive
		}
	}
	switch {
	case found && absent:
		return action.Contradictory
	case found && !l.byRequest && !carries(r, id):
		return action.LookAlike
	case found:
		return action.Found
	case absent && (a.knowsNone() || l.absent.touches("status")):
		return action.Absent
	default:
		return action.Inconclusive
	}
}

// Result gives what the look-up brought as the tool's result, as canonical JSON. given is false where the contract names
// none: the whole answer is the result then. The error never holds a part of the answer.
func (l *Lookup) Result(r action.Response, id Identity) (body []byte, given bool, err error) {
	return readAnswer(r, id).result(l.result)
}
