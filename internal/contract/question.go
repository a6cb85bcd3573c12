package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// Identity are the values by which an action can be found at its target.
type Identity struct {
	Action  action.ID
	IdemKey string
	Job     string // the target's id of the work that it has taken on; "" where it has taken on none
}

// values are the identity as expressions and URLs see it, under deed. What is not known is left out: it must not become a
// search for nothing.
func (id Identity) values() map[string]any {
	values := map[string]any{}
	for name, v := range map[string]string{"action_id": string(id.Action), "idem_key": id.IdemKey, "job": id.Job} {
		if v != "" {
			values[name] = v
		}
	}
	return values
}

// longestQuestion bounds how long an answer to a question is waited for: it can be asked again.
const longestQuestion = 30 * time.Second

// question is a request without effect.
type question struct {
	method     string
	credential string
	address    *address
	headers    []field
	uses       []string // what of the identity stands in the request
}

// question reads a request that asks the target. own names what of the identity it may use.
func (f *faults) question(path string, c *Contract, raw questionPart, own ...string) question {
	q := question{method: raw.Method, credential: raw.Credential}
	if q.credential == "" {
		q.credential = c.Credential
	}
	if raw.URL != "" {
		if q.address = f.address(path+"/url", raw.URL); q.address != nil {
			q.address.target.Private = c.Host.Private
			for _, name := range slices.Concat(q.address.needs, q.address.names) {
				if first, rest, _ := strings.Cut(name, "."); first == "deed" {
					f.own(path+"/url", rest, c, own)
					q.uses = append(q.uses, rest)
				}
			}
		}
	}
	q.headers, _ = f.headers(path+"/headers", raw.Headers, ofQuestion, "")
	for _, h := range q.headers {
		q.uses = append(q.uses, f.owns(h.value.path, h.value.expressions(), c, own)...)
	}
	return q
}

// owns checks what expressions use of the identity, and lists it.
func (f *faults) owns(path string, list []*expression, c *Contract, own []string) []string {
	var names []string
	for _, e := range list {
		for _, u := range e.uses {
			if u.variable == "deed" {
				f.own(path, u.member, c, own)
				names = append(names, u.member)
			}
		}
	}
	return names
}

// own checks one value of the identity: there is such a value, and it goes to the target at all.
func (f *faults) own(path, name string, c *Contract, own []string) {
	switch {
	case name == "":
		f.add(path, "deed is read as a whole", "use deed."+strings.Join(own, " or deed."))
	case !slices.Contains(own, name):
		f.add(path, fmt.Sprintf("deed has no %q", name), "use deed."+strings.Join(own, " or deed."))
	case name == "action_id" && !c.Key.Given():
		f.add(path, "nothing carries action_id to the target", "say on_lost_response.key")
	case name == "idem_key" && !c.metadata.given():
		f.add(path, "nothing carries idem_key to the target", "say metadata")
	}
}

// ask makes the request of a question about an action. requested are the arguments as they came: they get defaults and their
// one spelling again, so that the question may use what the request uses.
func (c *Contract) ask(q question, requested []byte, id Identity) (action.Operation, error) {
	args, err := c.recorded(requested)
	if err != nil {
		return action.Operation{}, err
	}
	deed := id.values()
	for _, name := range append([]string{"action_id"}, q.uses...) {
		if deed[name] == nil {
			return action.Operation{}, fmt.Errorf("the action has no %s yet", name)
		}
	}
	values := maps.Clone(args)
	values["deed"] = deed
	op := action.Operation{
		Channel:    c.Channel,
		Target:     q.address.target,
		Method:     q.method,
		Template:   q.address.shape,
		Credential: q.credential,
		Timeout:    min(c.Timeout, longestQuestion).Milliseconds(),
		MaxResult:  c.ResponseLimit,
	}
	op.Target.Private = slices.Clone(op.Target.Private)
	if op.Path, op.Query, err = q.address.expand(values); err != nil {
		return action.Operation{}, err
	}
	if op.Headers, err = expandHeaders(q.headers, map[string]any{"args": args, "deed": deed}); err != nil {
		return action.Operation{}, err
	}
	return op, nil
}
