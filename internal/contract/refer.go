package contract

import (
	"fmt"
	"slices"
	"strings"
)

// uses checks that what expressions and the URL read is there whenever they are evaluated, so that no call finds out.
func (f *faults) uses(c *Contract) {
	if c.args.schema == nil {
		return
	}
	before := view{c.args, nil, nil}
	after := view{in: c.args, changed: map[string]bool{}, removed: map[string]bool{}}
	for _, n := range c.norms {
		after.changed[n.name] = true
		if e := n.text.whole(); e != nil && optional(e.kind) {
			after.removed[n.name] = true
		}
	}
	for _, n := range c.norms {
		f.textUses(n.text, before, n.text.whole() == nil)
	}
	for _, h := range c.headers {
		f.textUses(h.value, after, true)
	}
	if c.body != nil {
		for _, t := range c.body.texts() {
			f.textUses(t, after, t.whole() == nil)
		}
	}
	for _, t := range []*text{c.resource, c.impact} {
		if t != nil {
			f.textUses(t, after, true)
		}
	}
	f.addressUses("/http/url", c.address, after)
	if c.Lookup != nil {
		f.questionUses("/lookup/request", c.Lookup.request, after)
	}
	if c.Poll != nil {
		f.questionUses("/poll/request", c.Poll.request, after)
	}
	if c.Undo != nil {
		for _, t := range c.Undo.arguments.texts() {
			f.textUses(t, after, t.whole() == nil)
		}
	}
	f.volatileUses(c)
}

// view is what arguments look like at one point of the resolution.
type view struct {
	in      *input
	changed map[string]bool // normalized: the declared type may be gone
	removed map[string]bool // normalized to nothing, perhaps
}

func (v view) always(name string) bool {
	if v.changed[name] {
		return !v.removed[name]
	}
	return v.in.always(name)
}

// textUses checks the arguments that a text reads. becomesText says whether they have to become a part of a string.
func (f *faults) textUses(t *text, v view, becomesText bool) {
	for _, e := range t.expressions() {
		names, asked := e.members("args")
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			_, declared := v.in.declared[name]
			switch {
			case !declared && !v.in.open:
				f.unknownArgument(t.path, name, v.in)
			case !asked[name] && !v.always(name):
				f.add(t.path, fmt.Sprintf("args.%s may be absent", name),
					fmt.Sprintf("write args.?%s to leave the value out, ask has(args.%s), or give the argument a default", name, name))
			}
		}
		if becomesText {
			f.insideText(t.path, e, v)
		}
	}
}

// insideText refuses a bare argument inside text whose type has no single spelling there.
func (f *faults) insideText(path string, e *expression, v view) {
	name, ok := strings.CutPrefix(strings.TrimSpace(e.source), "args.")
	if !ok || v.changed[name] {
		return
	}
	for _, t := range typesOf(v.in.declared[name]) {
		if t != "string" && t != "integer" && t != "boolean" {
			f.add(path, fmt.Sprintf("args.%s may be of type %s, which has no place inside text", name, t),
				fmt.Sprintf("write string(args.%s) or another conversion", name))
		}
	}
}

// typesOf lists the JSON types that a property's schema names.
func typesOf(s any) []string {
	switch t := member(s, "type").(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				list = append(list, name)
			}
		}
		return list
	default:
		return nil
	}
}

// addressUses checks the arguments of a URL. deed.… names are the action's own.
func (f *faults) addressUses(path string, a *address, v view) {
	if a == nil {
		return
	}
	for i, name := range slices.Concat(a.needs, a.names) {
		first, _, nested := strings.Cut(name, ".")
		needed := i < len(a.needs)
		_, declared := v.in.declared[first]
		switch {
		case first == "deed" && path != "/http/url":
			continue
		case !declared && !v.in.open:
			f.unknownArgument(path, first, v.in)
		case needed && !v.always(first):
			f.add(path, fmt.Sprintf("the argument %q may be absent and stands in the URL", first),
				"make it required or give it a default")
		case !nested && !v.changed[first]:
			for _, t := range typesOf(v.in.declared[first]) {
				if t == "object" || t == "null" || t == "array" && needed {
					f.add(path, fmt.Sprintf("the argument %q may be of type %s, which has no place in the URL", first, t),
						"use text, a number or a truth value")
				}
			}
		}
	}
}

// questionUses checks the arguments of a request that asks the target.
func (f *faults) questionUses(path string, q question, v view) {
	f.addressUses(path+"/url", q.address, v)
	for _, h := range q.headers {
		f.textUses(h.value, v, true)
	}
}

// volatileUses refuses to call an argument meaningless that decides where the request goes or what it touches.
func (f *faults) volatileUses(c *Contract) {
	for i, pointer := range c.Volatile {
		name := tokens(pointer)[0]
		used := c.resource != nil && slices.ContainsFunc(c.resource.expressions(), func(e *expression) bool {
			names, _ := e.members("args")
			return slices.Contains(names, name)
		})
		if c.address != nil {
			used = used || slices.ContainsFunc(slices.Concat(c.address.needs, c.address.names), func(n string) bool {
				first, _, _ := strings.Cut(n, ".")
				return first == name
			})
		}
		if used {
			f.add(item("/volatile", i), fmt.Sprintf("%s decides what the request goes to", pointer), "take it out of volatile")
		}
	}
}
