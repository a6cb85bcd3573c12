package contract

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
)

// Poll says how a target that finishes an action later is asked how far it is.
type Poll struct {
	Every       time.Duration // between two questions
	GiveUpAfter time.Duration // how long deed asks before a person is asked

	request      question
	job          *text
	doneWhen     *expression
	noEffectWhen *expression // nil where a job's end without effect is not told
	result       *text       // nil where the whole answer is the result
}

const (
	defaultEvery  = 2 * time.Second
	leastEvery    = 100 * time.Millisecond
	mostEvery     = time.Hour
	defaultGiveUp = day
	mostGiveUp    = 30 * day
	// maxJob bounds a target's id of a job, in bytes.
	maxJob = 1 << 10
)

// poll checks how the target is asked about work that it has taken on. What says that it has is one of the rules.
func (f *faults) poll(c *Contract, raw file) {
	if raw.Poll == nil {
		return
	}
	const at = "/poll"
	if c.Class == action.ReadOnly {
		f.addAt(f.places.key(at), at, "a read leaves no job behind", "leave it out")
		return
	}
	own := []string{"job", "action_id", "idem_key"}
	p := &Poll{request: f.question(at+"/request", c, raw.Poll.Request, own...)}
	if a := p.request.address; a != nil && !slices.Contains(slices.Concat(a.needs, a.names), "deed.job") {
		f.add(at+"/request/url", "this asks about no job", "put {deed.job} into the URL")
	}
	if raw.Poll.Job != "" {
		p.job = f.text(at+"/job", raw.Poll.Job, ofAnswer)
		if len(p.job.expressions()) == 0 && !f.any(at+"/job") {
			f.add(at+"/job", "the job is the same for every action", "write an expression, for example ${body.id}")
		}
	}
	p.doneWhen = f.finding(at+"/done_when", raw.Poll.DoneWhen, c, own)
	p.noEffectWhen = f.finding(at+"/no_effect_when", raw.Poll.NoEffectWhen, c, own)
	p.result = f.result(at+"/result", raw.Poll.Result, c, own)
	p.Every = f.duration(at+"/every", raw.Poll.Every, defaultEvery, leastEvery, mostEvery)
	p.GiveUpAfter = f.duration(at+"/give_up_after", raw.Poll.GiveUpAfter, defaultGiveUp, p.Every, mostGiveUp)
	f.contradictions(rule{at + "/done_when", "done_when", p.doneWhen, action.Verdict{}},
		rule{at + "/no_effect_when", "no_effect_when", p.noEffectWhen, action.Verdict{}})
	c.Poll = p
}

// PollOperation is the question to the target how far its job is. requested are the canonical arguments of the intent
// (Resolved.Requested). The error names what is missing, and never a value.
func (c *Contract) PollOperation(requested []byte, id Identity) (action.Operation, error) {
	if c.Poll == nil {
		return action.Operation{}, fmt.Errorf("poll of %s: %w", c.Tool, errors.New("the contract has none"))
	}
	op, err := c.ask(c.Poll.request, requested, id)
	if err != nil {
		return action.Operation{}, fmt.Errorf("poll of %s: %w", c.Tool, err)
	}
	return op, nil
}

// accepted is what an answer proves that says the target has taken the work on: nothing yet, and where to ask. Without a
// job that can be asked about it proves nothing at all.
func (p *Poll) accepted(a *reading) action.Verdict {
	value, present, err := a.value(p.job)
	if err != nil || !present {
		return action.Verdict{Rule: ruleError}
	}
	job, err := scalarText(value)
	if err != nil || !p.askable(job) {
		return action.Verdict{Rule: ruleError}
	}
	return action.Verdict{Rule: ruleAccepted, Job: job}
}

// askable reports whether the job can stand where the URL wants it, and nowhere else.
func (p *Poll) askable(job string) bool {
	if job == "" || len(job) > maxJob || !utf8.ValidString(job) {
		return false
	}
	if _, err := urlText(job); err != nil {
		return false
	}
	inPath := slices.ContainsFunc(p.request.address.segments, func(s segment) bool { return slices.Contains(s.names, "deed.job") })
	return !inPath || !escapes(job)
}

// Find says what the target's answer about its job means.
func (p *Poll) Find(r action.Response, id Identity) action.Finding {
	a := readAnswer(r, id)
	done, err := a.holds(p.doneWhen)
	if err != nil {
		return action.Inconclusive
	}
	ended := false
	if p.noEffectWhen != nil {
		if ended, err = a.holds(p.noEffectWhen); err != nil {
			return action.Inconclusive
		}
	}
	switch {
	case done && ended:
		return action.Contradictory
	case done:
		return action.Found
	case ended:
		return action.EndedWithout
	case a.succeeded() && a.intelligible():
		return action.Pending
	default:
		return action.Inconclusive
	}
}

// Result gives what the job brought as the tool's result, as canonical JSON. given is false where the contract names none:
// the whole answer is the result then. The error never holds a part of the answer.
func (p *Poll) Result(r action.Response, id Identity) (body []byte, given bool, err error) {
	return readAnswer(r, id).result(p.result)
}
